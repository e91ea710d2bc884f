"""`sqe`: what it prints, and its exit codes."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import ModuleType

import pytest

from sqe_core.cli import sqe
from sqe_core.cli.sqe import Surroundings, run


def call(folder: Path, *argv: str, environ: dict[str, str] | None = None) -> tuple[int, list[str], list[str]]:
    """Run a command; return exit code, lines of the answer, lines beside it."""
    output, errors = io.StringIO(), io.StringIO()
    here = Surroundings(environ=environ or {}, folder=folder, output=output, errors=errors)
    code = run(argv, here)
    return code, output.getvalue().splitlines(), errors.getvalue().splitlines()


def test_a_good_file(tmp_path: Path) -> None:
    (tmp_path / "sqe.toml").write_text(
        f'[catalog]\ntype = "sqlite"\ndirectory = "{tmp_path}/data"\n[query]\nstar_schema_reorder=true\n'
    )

    code, output, (note,) = call(tmp_path, "config", "check", environ={"XDG_STATE_HOME": str(tmp_path)})
    assert (code, output) == (0, ["ok"])
    assert note.endswith("sqe.toml:5: query.star_schema_reorder: has no effect: nothing reads it yet")
    # A rehearsal makes nothing.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sqe.toml"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            '[catalog.lake]\ntype = "sqlite"',
            "sqe.toml:1: catalog.lake: unknown key. Known keys: ",
        ),
        ('[catalog.lake]\ntype = "sqlite"', "; a catalog of that name is written [catalogs.lake]"),
        ('[auth.providers]\ntype = "mtls"', "auth.providers: expected an array of tables, [[auth.providers]], not a"),
        ('[coordinator]\nmode = "worker"', "coordinator.mode: workers are not built yet; every statement runs in this"),
        ("[metrics]\nweb_ui = true", "sqe.toml:2: metrics.web_ui: the web UI is not built yet"),
        ('[catalogs.a]\ntype = "sqlite"\ndirectory = "{}/sqe.toml/below"', "sqe.toml:2: catalogs.a.type: the folder"),
        ('[catalogs.a]\ntype = "sqlite"\ndirectory = "{}"\nfile = "sqe.toml"', "sqe.toml:2: catalogs.a.type: the cata"),
        ('[policy.grants]\npath = "{}/sqe.toml"', "policy.engine: the grant store {}/sqe.toml can"),
        ('[[auth.providers]]\ntype = "api_key"\nkeys_file = "{}/none"', "sqe.toml:2: auth.providers[0].type: "),
        (
            '[session]\nsecrets_path = "{}/none/s"\nsecrets_key = "short"',
            "sqe.toml:2: session.secrets_path: sess",
        ),
        (
            '[metrics]\naudit_log_path = "{}/none/audit"',
            "metrics.audit_log_path: The audit log {}/none/audit cannot",
        ),
        (
            '[coordinator.tls]\ncert_file = "{0}/sqe.toml"\nkey_file = "{0}/sqe.toml"',
            "sqe.toml:2: coordinator.tls.cert_file: The TLS files cannot be used",
        ),
        ('[engine]\njar_groups = ["kafka"]', "sqe.toml:2: engine.jar_groups: Unknown jar group: kafka"),
        ('[engine]\njava_home = "{}"', "sqe.toml:2: engine.java_home: "),
        ('[policy]\nengine = "allow_all"', "sqe.toml:2: policy.engine: enforces nothing; confirm it with"),
        ('[policy]\nengine = "passthrough"', "sqe.toml:2: policy.engine: enforces nothing; confirm it with"),
        ("[policy]\nenabled = false", "sqe.toml:2: policy.enabled: enforces nothing; confirm it with"),
        (
            '[policy]\nengine = ["passthrough", "grants"]\ni_understand_no_enforcement = true',
            "sqe.toml:2: policy.engine: names `passthrough` beside an engine; it would decide nothing",
        ),
    ],
)
def test_what_keeps_a_server_from_starting_is_a_fault(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "sqe.toml").write_text(text.format(tmp_path))

    code, output, errors = call(tmp_path, "config", "check", environ={"XDG_STATE_HOME": str(tmp_path)})
    assert (code, output) == (2, [])
    assert [error for error in errors if fault.format(tmp_path) in error], errors


def test_a_file_with_faults(tmp_path: Path) -> None:
    (tmp_path / "sqe.toml").write_text("[query]\na = 1\nb = 2\n")

    code, output, errors = call(tmp_path, "config", "check", environ={"SQE_QUERY__C": "1"})
    assert (code, output, len(errors)) == (2, [], 3)
    assert errors[0].endswith("sqe.toml:2: query.a: unknown key. " + errors[0].rpartition("unknown key. ")[2])


@pytest.mark.parametrize("option", ["-c", "--config"])
def test_the_file_of_the_option(tmp_path: Path, option: str) -> None:
    (tmp_path / "sqe.toml").write_text("broken")
    (tmp_path / "other.toml").write_text("")

    assert call(tmp_path, "config", "check", option, str(tmp_path / "other.toml"))[0] == 0
    assert call(tmp_path, "config", "check")[0] == 2


def test_the_file_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("[query]\ntimeout_secs = 7\n")
    environ = {"SQE_CONFIG": str(tmp_path / "other.toml")}

    code, output, _ = call(tmp_path, "config", "show", "--sources", environ=environ)
    assert code == 0
    (line,) = [line for line in output if line.startswith("query.timeout_secs")]
    assert line.split("  # ") == [f"{'query.timeout_secs = 7':<60}", f"{tmp_path}/other.toml:2"]


def test_a_missing_file(tmp_path: Path) -> None:
    code, output, errors = call(tmp_path, "config", "show", "-c", "/no/sqe.toml")

    assert (code, output, errors) == (2, [], ["/no/sqe.toml: there is no such file"])


def test_no_file_at_all_is_the_defaults(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    code, output, _ = call(tmp_path, "config", "check", environ=environ)
    assert (code, output) == (0, ["ok: there is no file, so these are the defaults and the environment"])


def test_keys_of_a_built_in_kind_are_checked(tmp_path: Path) -> None:
    (tmp_path / "sqe.toml").write_text('[catalogs.a]\ntype = "sqlite"\ndirektory = "/data"\n')

    code, _, errors = call(tmp_path, "config", "check")
    assert code == 2
    assert any("catalogs.a.directory: is missing" in line for line in errors)
    assert any('catalogs.a.direktory: unknown key; did you mean "directory"?' in line for line in errors)


@pytest.mark.parametrize(
    ("text", "told", "never"),
    [
        (
            '[catalog]\ntype = "sqllite"\n',
            ["sqe.toml:2: catalog.type: The catalog type 'sqllite' is not known", "did you mean 'sqlite'?"],
            "\x1b",
        ),
        # Nobody could install a distribution that is not there.
        ('[catalog]\ntype = "glue"\n', ["no installed plugin provides it"], "pip install"),
        ('"\\u001b[2J" = 1\n', [], "\x1b"),
    ],
    ids=["nobody knows it", "nobody provides it", "what would move the cursor"],
)
def test_a_fault_is_told(tmp_path: Path, text: str, told: list[str], never: str) -> None:
    (tmp_path / "sqe.toml").write_text(text)

    code, output, (fault,) = call(tmp_path, "config", "check")
    assert (code, output) == (2, [])
    assert not [word for word in told if word not in fault]
    assert never not in fault


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "sqe.toml").write_text('[policy]\nmask_key = "h1dden"\n')

    code, output, errors = call(tmp_path, "config", "show")
    assert code == 0
    assert "policy.mask_key = [redacted]" in output
    assert "h1dden" not in "\n".join([*output, *errors])


def test_plugins_are_listed(tmp_path: Path) -> None:
    code, output, _ = call(tmp_path, "plugins", "list")

    assert code == 0
    assert any(line.split()[:3] == ["catalog", "sqlite", "core"] for line in output)


@pytest.mark.parametrize("argv", [[], ["config"], ["config", "print"], ["config", "check", "file"], ["plugin", "list"]])
def test_wrong_command_lines(tmp_path: Path, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        call(tmp_path, *argv)

    assert caught.value.code == 2
    assert "usage: sqe" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["--help"], ["config", "--help"], ["config", "check", "--help"], ["--version"]])
def test_help(tmp_path: Path, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        call(tmp_path, *argv)

    assert caught.value.code == 0
    assert "sqe" in capsys.readouterr().out


def test_bench_is_another_distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqe.importlib.util, "find_spec", lambda name: None)

    code, _, errors = call(tmp_path, "bench", "latency")
    assert code == 1
    assert errors[-1] == "Hint: pip install sqe-bench"


def test_bench_passes_its_arguments_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def bench(arguments: list[str]) -> int:
        seen.append(arguments)
        return 3

    module = ModuleType("sqe_bench.main")
    module.main = bench  # type: ignore[attr-defined]
    monkeypatch.setattr(sqe.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "sqe_bench", ModuleType("sqe_bench"))
    monkeypatch.setitem(sys.modules, "sqe_bench.main", module)

    assert call(tmp_path, "bench", "latency", "--json", "x", "--help")[0] == 3
    assert seen == [["latency", "--json", "x", "--help"]]
