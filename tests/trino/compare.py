"""Compares SQE with what Trino answered, and writes tests/trino/differences.toml anew: `python tests/trino/compare.py`.

Differences that are still there keep their reason. New ones stand below "not explained", which the test refuses.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from testbed.trino_corpus import files
from testbed.trino_differences import known, write
from testbed.trino_door import Door

from sqe_core.engine.spark.engine import EngineOptions, SparkEngine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--print", action="store_true", help="print what is new or gone instead of writing it")
    parser.add_argument("files", nargs="*", help="files of the corpus, else all")
    chosen = parser.parse_args()
    listed = known()
    engine = SparkEngine(EngineOptions(memory_bytes=2 << 30, jar_groups=frozenset({"aws"})))
    engine.start()
    try:
        with tempfile.TemporaryDirectory() as folder, Door(engine, Path(folder)) as door:
            found = {}
            for file in chosen.files or files():
                found |= door.differences(file)
    finally:
        engine.stop()
    for key, each in found.items():
        if key not in listed or listed[key].kind != each.kind:
            print(f"{each.kind}: {key}\n    Trino {each.trino[:300]}\n    SQE   {each.sqe[:300]}")
    print(Counter(each.kind for each in found.values()))
    if not chosen.print and not chosen.files:
        write(found)


if __name__ == "__main__":
    main()
