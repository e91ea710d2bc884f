"""The quick starts of docs/clients.md, run as they stand there, with this server's address and key."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from clients.conftest import trino_jar

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
KINDS = {
    kind: [text for found, text in BLOCKS if found == kind] for kind in ("python", "console", "go", "java", "yaml")
}
COMMANDS = [line.removeprefix("$ ") for block in KINDS["console"] for line in block.splitlines()]


def here(code: str, server: Any, secured: Any = None) -> str:
    """The code of the page, for this server; that of Trino's clients for one with a certificate."""
    if secured is not None and "localhost:8080" in code:
        changed = code.replace("localhost:8080", f"localhost:{secured.trino_port}")
        return changed.replace("sqe_…", secured.keys["etl"]).replace("ca.pem", str(secured.authority))
    changed = code.replace("localhost:50051", f"127.0.0.1:{server.port}").replace(
        "--port 50051", f"--port {server.port}"
    )
    changed = changed.replace("sqe_…", server.keys["etl"])
    assert changed != code
    return changed


def run(command: list[str], folder: Path, **more: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **more}, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_block_is_run_by_a_test_below() -> None:
    assert {kind for kind, _ in BLOCKS} == set(KINDS)
    assert len(KINDS["python"]) >= 7
    assert (len(KINDS["go"]), len(KINDS["java"]), len(KINDS["yaml"])) == (1, 2, 1)
    assert all(line.startswith(("SQE_", "TRINO_", "echo ", "pip install ", "go mod ")) for line in COMMANDS)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")  # SQLAlchemy
@pytest.mark.parametrize("number", range(len(KINDS["python"])))
def test_python(
    server: Any, tls_server: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    # They count for `requests` more than what the code says.
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    code = here(KINDS["python"][number], server, tls_server)
    exec(compile(code, f"docs/clients.md, block {number} of Python", "exec"), {})
    if "print(" in code:
        assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("command", [line for line in COMMANDS if "sqe-cli" in line])
def test_the_shell(server: Any, tmp_path: Path, command: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run(["bash", "-euo", "pipefail", "-c", here(command, server)], tmp_path, HOME=str(tmp_path), PATH=path)


@pytest.mark.timeout(600)
def test_go(server: Any, go: str, tmp_path: Path) -> None:
    for name in ("go.mod", "go.sum"):
        shutil.copy(ROOT / "tests" / "clients" / "go" / name, tmp_path / name)
    (tmp_path / "main.go").write_text(here(KINDS["go"][0], server), encoding="utf-8")
    built = [go, "build", "-buildvcs=false", "-gcflags=all=-N -l", "-ldflags=-s -w", "-o", "quickstart", "."]
    run(built, tmp_path, GOTOOLCHAIN="local", GOWORK="off", GOFLAGS="-mod=readonly", CGO_ENABLED="0")
    rows, row, rest = run([str(tmp_path / "quickstart")], tmp_path).partition("row 7\n")
    assert row
    assert not rest
    assert re.findall(r"\d", rows) == ["0", "1", "2"]


def test_java(server: Any, java: str, driver: Path, tmp_path: Path) -> None:
    (tmp_path / "QuickStart.java").write_text(here(KINDS["java"][0], server), encoding="utf-8")
    command = [java, "--add-opens=java.base/java.nio=ALL-UNNAMED", "-cp", str(driver), "QuickStart.java"]
    assert run(command, tmp_path) == "7\n8\n"


def test_java_with_trinos_driver(server: Any, tls_server: Any, java: str, tmp_path: Path) -> None:
    (tmp_path / "TrinoQuickStart.java").write_text(here(KINDS["java"][1], server, tls_server), encoding="utf-8")
    command = [java, "-cp", str(trino_jar("trino-jdbc-483.jar")), "TrinoQuickStart.java"]
    assert run(command, tmp_path) == "8\n9\n"


def test_trinos_command_line(server: Any, tls_server: Any, java: str, trino_cli: Path, tmp_path: Path) -> None:
    (command,) = [line for line in COMMANDS if line.startswith("TRINO_")]
    assert f" {trino_cli.name.partition('-')[2]} " in command
    written = here(command, server, tls_server).replace(trino_cli.name.partition("-")[2], str(trino_cli))
    written = written.replace(" java ", f" {java} ")
    assert run(["bash", "-euo", "pipefail", "-c", written], tmp_path, HOME=str(tmp_path)) == '"etl"\n'


def test_the_profile_of_dbt_is_that_of_the_project() -> None:
    project = (ROOT / "tests" / "clients" / "dbt" / "profiles.yml").read_text(encoding="utf-8")
    values = [("SHOP_KEY", "sqe_…"), ("SHOP_PORT", "8080"), ("SHOP_AUTHORITY", "ca.pem"), ("SHOP_SCHEMA", "shop")]
    for name, value in values:
        project = re.sub(rf"\"{{{{ env_var\('{name}'\)[^}}]*}}}}\"", value, project)
    assert project == KINDS["yaml"][0]


# What is said beside the blocks


def test_what_is_installed_is_what_is_tested() -> None:
    wanted = (ROOT / "tests" / "requirements.txt").read_text() + (ROOT / "sqe-core" / "pyproject.toml").read_text()
    for command in COMMANDS:
        if command.startswith("pip install "):
            for name in command.split()[2:]:
                assert re.search(rf"^\W*{name}[>=\[]", wanted, re.MULTILINE), name
        if command.startswith("go mod "):
            name, _, version = command.split()[-1].partition("@")
            assert f"{name} {version}\n" in (ROOT / "tests" / "clients" / "go" / "go.mod").read_text()


def test_the_jdbc_driver_is_the_tested_one(java: str, driver: Path, tmp_path: Path) -> None:
    lock = tomllib.loads((ROOT / "tests" / "clients" / "clients.lock.toml").read_text())
    assert f"`{lock['jar'][0]['artifact']}`" in TEXT
    (class_name,) = re.findall(r"^\| Class name \| `(.*)` \|$", TEXT, re.MULTILINE)
    (template,) = re.findall(r"^\| URL template \| `(.*?)`", TEXT, re.MULTILINE)
    url = template.replace("{host}", "localhost").replace("{port}", "50051")
    driver_made = f'(java.sql.Driver) Class.forName("{class_name}").getConstructor().newInstance()'
    body = f'System.out.println(({driver_made}).acceptsURL("{url}"));'
    code = f"public class Accepts {{ public static void main(String[] none) throws Exception {{ {body} }} }}"
    (tmp_path / "Accepts.java").write_text(code)
    command = [java, "--add-opens=java.base/java.nio=ALL-UNNAMED", "-cp", str(driver), "Accepts.java"]
    assert run(command, tmp_path) == "true\n"
