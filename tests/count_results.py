"""Adds up the JUnit files of a test run and prints one closing line. Exits with 1 when no test ran."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def main(folder: Path) -> int:
    """Print `sqe: N passed, N failed, N skipped` for the files of a folder."""
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for file in sorted(folder.glob("*.xml")):
        for suite in ElementTree.parse(file).iter("testsuite"):
            for key in counts:
                counts[key] += int(suite.get(key, "0"))
    failed = counts["failures"] + counts["errors"]
    print(f"sqe: {counts['tests'] - failed - counts['skipped']} passed, {failed} failed, {counts['skipped']} skipped")
    return 0 if counts["tests"] and not failed else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
