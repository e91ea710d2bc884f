"""The command `sqe-bench`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from sqe_bench import flight, latency, policy, session, soak, stream, trino
from sqe_core.spi.errors import SqeError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one benchmark; exit code 1 when it shows less than it must."""
    parser = argparse.ArgumentParser(prog="sqe-bench", description="Measures SQE; every number is a ratio in one run.")
    commands = parser.add_subparsers(dest="command", required=True)
    for module in (latency, stream, flight, soak, policy, session, trino):
        command = commands.add_parser(module.NAME, help=module.__doc__)
        module.add_arguments(command)
        command.add_argument("--json", type=Path, help="also write the report to this file")
        command.set_defaults(run=module.run)
    arguments = parser.parse_args(argv)
    try:
        report = arguments.run(arguments)
    except SqeError as error:
        print(f"sqe-bench: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")
    return 0 if report["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
