"""SQE beside a real Trino 476 on the same files: `python tests/trino/beside.py --java HOME [-- options]`.

Starts an Iceberg REST server, both of them on its tables, and `sqe-bench trino`; by hand, as `record.py`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from testbed.processes import free_ports
from testbed.rest_fixture import RestFixture
from testbed.sqe_server import NO_POLICY, SqeServer
from testbed.trino_server import TrinoServer

CATALOG = '[catalogs.lake]\ntype = "rest"\ncatalog_url = "{url}"\nstore = "local"\nauth.type = "anonymous"\n'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--java", type=Path, help="a Java 24 or newer for Trino, else JAVA_HOME")
    parser.add_argument("more", nargs="*", help="options of sqe-bench trino")
    chosen = parser.parse_args()
    (port,) = free_ports(1)
    with RestFixture() as catalog, tempfile.TemporaryDirectory() as folder:
        settings = NO_POLICY + CATALOG.format(url=catalog.ready().url)
        settings += "[query]\nmax_result_rows = 100000000\nmax_concurrent_per_user = 100\nmax_queued_queries = 1000\n"
        ports = {"SQE_COORDINATOR__TRINO_HTTP_PORT": str(port), "SQE_COORDINATOR__MEMORY_LIMIT": "3GB"}
        with SqeServer(Path(folder), settings, **ports), TrinoServer(catalog.url, chosen.java) as trino:
            beside = f"http://127.0.0.1:{trino.ready().port}"
            bench = [str(Path(sys.executable).parent / "sqe-bench"), "trino", "--sqe", f"http://127.0.0.1:{port}"]
            return subprocess.run([*bench, "--beside", beside, *chosen.more]).returncode


if __name__ == "__main__":
    sys.exit(main())
