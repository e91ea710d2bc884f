"""Where results go: `.output`, Parquet, and `\\watch`. What cannot be written is never silent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_fakes import FakeBackend, rows

from sqe_core.cli.shell import commands
from sqe_core.cli.shell.execution import Outcome

FULL = Path("/dev/full")


def test_results_go_to_a_file_and_back(bench: Any, tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    assert bench.script.run(f".output {file}\nSELECT 1; INSERT INTO t;\n.output\nSELECT 2;", name="") is Outcome.OK
    assert file.read_text() == "n\n---\n1\n(1 row)\nINSERT: 3 rows\n"
    assert bench.written == "n\n---\n2\n(1 row)\n"


def test_a_file_is_written_anew_and_named_in_quotes(bench: Any, tmp_path: Path) -> None:
    file = tmp_path / "two words.csv"
    file.write_text("what was there\n")
    assert bench.script.run(f".format csv\n\\o '{file}'\nSELECT 1;\nSELECT 2;", name="") is Outcome.OK
    assert bench.executor.finish() is Outcome.OK
    assert file.read_text() == "n\n1\nn\n2\n"
    assert bench.written == ""


@pytest.mark.parametrize("format", ["table", "csv", "tsv", "json", "vertical", "markdown", "parquet"])
def test_a_full_disk_is_told_and_nothing_goes_on_as_if(bench: Any, format: str) -> None:
    assert bench.script.run(f".format {format}\n.output {FULL}\nSELECT 1;\nSELECT 2;", name="s.sql") is Outcome.FAILED
    told = "cannot write /dev/full: No space left on device; what it holds is not complete"
    assert bench.told.count(told) == 2, "the second result is not written either"
    assert "Hint: write .output to have results here again" in bench.told
    assert bench.written == ""


def test_a_long_result_ends_when_the_disk_is_full(bench: Any, backend: FakeBackend) -> None:
    assert bench.script.run(f".format csv\n.output {FULL}\ncount 1000000", name="") is Outcome.FAILED
    assert backend.produced_batches < 100


def test_what_is_left_at_the_end_is_told(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems say at the end only that there was no room."""
    bench.executor.redirect(str(FULL))
    monkeypatch.setattr(bench.executor, "_flush", lambda: None)
    bench.script.run("SELECT 1;", name="")
    assert bench.executor.finish() is Outcome.FAILED
    assert "cannot write /dev/full: No space left on device" in bench.told


def test_parquet(bench: Any, backend: FakeBackend, tmp_path: Path) -> None:
    table = pa.table({"id": pa.array(range(5000)), "tags": pa.array([["a", None]] * 5000)})
    backend.answers["x"] = lambda: rows(table)
    file = tmp_path / "x.parquet"
    assert bench.script.run(f".format parquet\n.output {file}\nx\n;.output", name="") is Outcome.OK
    assert pq.read_table(file).equals(table)


def test_a_parquet_file_holds_one_result(bench: Any, tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    text = f".format parquet\n.output {file}\nSELECT 1;\nSELECT 2;\n.format csv\nSELECT 3;"
    assert bench.script.run(text, name="") is Outcome.FAILED
    assert bench.told.count("a Parquet file holds one, and nothing else") == 2
    bench.executor.finish()
    assert pq.read_table(file).to_pydict() == {"n": [1]}


def test_a_parquet_file_of_a_result_that_broke_off_is_no_parquet_file(bench: Any, tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    assert bench.script.run(f".format parquet\n.output {file}\nfail after 5000;\n.output", name="") is Outcome.FAILED
    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(file)


def test_types_that_parquet_has_not(bench: Any, backend: FakeBackend, tmp_path: Path) -> None:
    kind = pa.month_day_nano_interval()
    backend.answers["x"] = lambda: rows({"i": pa.array([(1, 2, 3)], kind)})
    assert bench.script.run(f".format parquet\n.output {tmp_path / 'x'}\nx", name="") is Outcome.FAILED
    assert "A column of this type cannot be written to Parquet" in bench.told
    assert "cast such columns to varchar" in bench.told


def test_parquet_is_not_for_a_terminal(make_bench: Any) -> None:
    bench = make_bench(terminal=True, format="parquet")
    assert bench.script.run("SELECT 1", name="") is Outcome.FAILED
    assert "parquet is no text for a terminal" in bench.told


def test_what_stands_for_null(bench: Any, backend: FakeBackend) -> None:
    backend.answers["x"] = lambda: rows({"a": pa.array([None], pa.string())})
    text = ".format csv\nx;\n.nullvalue '(none)'\nx;\n.nullvalue\nx"
    assert bench.script.run(text, name="") is Outcome.OK
    assert bench.written == "a\n\na\n(none)\na\n\n"


def test_watching_repeats_the_last_statement(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(commands.time, "sleep", pauses.append)
    assert bench.script.run("SELECT 1; .catalogs\n\\watch 0.5 c=3", name="") is Outcome.OK
    assert bench.backend.executed == ["SELECT 1", "SHOW CATALOGS", "SELECT 1", "SELECT 1", "SELECT 1"]
    assert pauses == [0.5, 0.5]
    assert bench.told.count("(every 0.5 s)") == 3


@pytest.mark.parametrize("ending", ["error", "Ctrl-C"])
def test_watching_ends(bench: Any, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    def pause(secs: float) -> None:
        if ending == "Ctrl-C":
            raise KeyboardInterrupt
        bench.backend.answers["SELECT 1"] = lambda: bench.backend.execute("BOOM")

    monkeypatch.setattr(commands.time, "sleep", pause)
    outcome = bench.script.run("SELECT 1; \\watch", name="")
    assert outcome is (Outcome.FAILED if ending == "error" else Outcome.INTERRUPTED)
    assert bench.executor.paging is bench.executor.interactive


def test_a_table_with_all_that_is_known_of_it(bench: Any, backend: FakeBackend) -> None:
    backend.answers['SHOW CREATE TABLE "orders"'] = lambda: rows(
        {"create_table": ["CREATE TABLE orders (\n  id bigint\n)"]}
    )
    assert bench.script.run("\\d+ orders", name="") is Outcome.OK
    assert "array(varchar)" in bench.written
    assert bench.written.endswith("CREATE TABLE orders (\n  id bigint\n)\n(1 row)\n")


def test_a_view_with_all_that_is_known_of_it(bench: Any, backend: FakeBackend) -> None:
    backend.answers['SHOW CREATE TABLE "late"'] = lambda: backend.execute("MISSING")
    backend.answers['SHOW CREATE VIEW "late"'] = lambda: rows(
        {"create_view": pa.array(["CREATE VIEW late AS SELECT 1"])}
    )
    assert bench.script.run("\\d+ late", name="") is Outcome.OK
    assert "CREATE VIEW late AS SELECT 1" in bench.written
    assert bench.told == ""


def test_where_one_is(bench: Any) -> None:
    assert bench.script.run("\\conninfo", name="") is Outcome.OK
    assert bench.told == "Connected to: embedded\nCatalog iceberg, schema default\n"


def test_summarize_is_a_statement_too(bench: Any) -> None:
    bench.script.run("SUMMARIZE Sales.Orders;", name="")
    assert bench.backend.executed[0] == 'DESCRIBE "sales"."orders"'
