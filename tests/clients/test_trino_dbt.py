"""dbt-trino with a small project (the folder dbt): built twice, with answers that are right after each."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from testbed.downloads import cache_folder

PROJECT = Path(__file__).parent / "dbt"


@pytest.fixture(scope="session")
def dbt_python() -> Path:
    """An environment with dbt, made once for a machine."""
    requirements = PROJECT / "requirements.txt"
    digest = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    home = cache_folder() / f"dbt-{digest}"
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "made").exists():
            for command in (
                ["venv", "--clear", "--python", sys.executable, str(home)],
                ["pip", "install", "--python", str(home / "bin" / "python"), "-r", str(requirements)],
            ):
                made = subprocess.run(["uv", *command], capture_output=True, text=True, timeout=500, check=False)
                assert made.returncode == 0, made.stderr
            (home / "made").touch()
    return home / "bin" / "python"


@pytest.mark.timeout(600)
def test_a_project(
    dbt_python: Path, tls_server: Any, connect_trino: Callable[..., Any], tmp_path: Path, table: str
) -> None:
    shop = tmp_path / "shop"
    shutil.copytree(PROJECT, shop)
    place = {
        "SHOP_SCHEMA": table,
        "SHOP_PORT": str(tls_server.trino_port),
        "SHOP_KEY": tls_server.keys["etl"],
        "SHOP_AUTHORITY": str(tls_server.authority),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "0",
    }
    environment = {name: value for name, value in os.environ.items() if "CA_BUNDLE" not in name}
    ran = subprocess.run(
        [str(dbt_python), "run.py"],
        cwd=shop,
        env={**environment, **place},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-3000:]
    for step in ("first", "second"):
        results = json.loads((shop / step / "run_results.json").read_text())["results"]
        assert len(results) == 17
        assert {result["status"] for result in results} == {"success", "pass"}
    connection = connect_trino(schema=table)

    def rows(sql: str) -> list[list[Any]]:
        cursor = connection.cursor()
        cursor.execute(sql)
        return list(cursor.fetchall())

    # Nothing is left over of what dbt makes on the way.
    assert {row[0] for row in rows("SHOW TABLES")} == {
        *("raw_customers", "raw_orders", "stg_orders", "customers", "days_renamed", "days_dropped"),
        *("orders_appended", "orders_merged", "orders_replaced", "orders_history"),
    }
    assert rows("SELECT * FROM customers ORDER BY id") == [
        [1, "Ada", 2, Decimal("30.50")],
        [2, "O'Neil", 1, Decimal("5.25")],
        [3, "Eve", 1, None],
    ]
    assert rows("SELECT status, count(*) FROM orders_appended GROUP BY status ORDER BY status") == [
        ["open", 1],
        ["paid", 5],
        ["returned", 2],
    ]
    assert rows("SELECT id, status, run FROM orders_merged ORDER BY id") == [
        [1, "paid", None],
        [2, "paid", None],
        [3, "paid", "again"],
        [4, "returned", "again"],
    ]
    doubled = [Decimal("20.00"), Decimal("41.00"), Decimal("5.25"), None]
    assert [row[0] for row in rows("SELECT amount FROM orders_replaced ORDER BY id")] == doubled
    history = "SELECT id, status, dbt_valid_to IS NULL FROM orders_history ORDER BY id, 3"
    assert rows(history) == [
        [1, "paid", True],
        [2, "paid", True],
        [3, "open", False],
        [3, "paid", True],
        [4, "returned", True],
    ]
    assert rows("SELECT count(*), sum(orders) FROM days_renamed") == [[4, 4]]
    assert "partitioning = ARRAY['day']" in rows("SHOW CREATE TABLE days_renamed")[0][0]
    documented(json.loads((shop / "docs" / "catalog.json").read_text()))
    assert rows("SHOW COLUMNS FROM customers")[0] == ["id", "bigint", "", "The customer"]
    comments = "SELECT comment FROM system.metadata.table_comments WHERE catalog_name = 'iceberg'"
    assert rows(f"{comments} AND schema_name = '{table}' AND table_name = 'customers'") == [
        ["One row for each customer, it's theirs"]
    ]


def documented(catalog: dict[str, Any]) -> None:
    assert catalog["errors"] is None
    assert len(catalog["nodes"]) == 10
    customers = catalog["nodes"]["model.shop.customers"]
    assert customers["metadata"]["comment"] == "One row for each customer, it's theirs"
    assert {name: column["type"] for name, column in customers["columns"].items()} == {
        "id": "bigint",
        "name": "varchar",
        "orders": "bigint",
        "spent": "decimal(38,2)",
    }
    assert catalog["nodes"]["model.shop.stg_orders"]["metadata"]["type"] == "VIEW"
