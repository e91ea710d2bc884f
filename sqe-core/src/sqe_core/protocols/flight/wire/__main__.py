"""Makes the modules of the `.proto` files.

    uv run --with grpcio-tools==1.73.1 python -m sqe_core.protocols.flight.wire

Not part of a build: what it makes is committed, so that building needs no compiler.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> int:
    from grpc_tools import protoc

    here = Path(__file__).parent
    root = here.parents[3]
    files = [str(path.relative_to(root)) for path in sorted(here.glob("*.proto"))]
    return int(protoc.main(["protoc", f"-I{root}", f"--python_out={root}", f"--pyi_out={root}", *files]))


if __name__ == "__main__":
    sys.exit(main())
