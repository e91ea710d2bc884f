"""Records what a real Trino 476 answers to the corpus: `python tests/trino/record.py --java HOME [FILE …]`.

The statements of a file run one after the other in a schema of its own, of a catalog that an Iceberg REST server keeps.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from testbed.rest_fixture import RestFixture
from testbed.trino_client import TrinoClient
from testbed.trino_corpus import FOLDER, USER, cases, files, line_of
from testbed.trino_server import TrinoServer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--java", type=Path, help="a Java 24 or newer, else JAVA_HOME")
    parser.add_argument("--url", help="a Trino that runs already, with a fresh catalog `lake`")
    parser.add_argument("files", nargs="*", help="files of the corpus, else all")
    chosen = parser.parse_args()
    names = chosen.files or files()
    if chosen.url:
        record(chosen.url, names)
        return
    with RestFixture() as catalog, TrinoServer(catalog.ready().url, chosen.java) as server:
        record(f"http://127.0.0.1:{server.ready().port}", names)


def record(url: str, names: list[str] | tuple[str, ...]) -> None:
    run = TrinoClient(url, USER)
    (FOLDER / "answers").mkdir(exist_ok=True)
    for name in names:
        began, recorded = time.monotonic(), []
        run(f"DROP SCHEMA IF EXISTS lake.{name} CASCADE")
        created = run(f"CREATE SCHEMA lake.{name}")
        assert created.error is None, created
        session = TrinoClient(url, USER, schema=name)
        for case in cases(name):
            recorded.append(line_of(case, session(case.sql)) + "\n")
        (FOLDER / "answers" / f"{name}.jsonl").write_text("".join(recorded), "utf-8")
        print(f"{name}: {len(recorded)} in {time.monotonic() - began:.1f} s", flush=True)
    functions = sorted({(row[0], row[3]) for row in run("SHOW FUNCTIONS").rows})
    properties = sorted(row[0] for row in run("SHOW SESSION").rows)
    known = {"functions": functions, "session_properties": properties}
    (FOLDER / "answers" / "known.json").write_text(json.dumps(known, indent=0) + "\n", "utf-8")


if __name__ == "__main__":
    main()
