"""Commands, scripts, names and completion, without a process."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import pyarrow as pa
import pytest
from cli_fakes import COLUMNS, NAMES, FakeBackend, rows
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from sqe_core.cli.shell.commands import COMMAND_NAMES, Leave
from sqe_core.cli.shell.completion import SqlCompleter
from sqe_core.cli.shell.error_report import Origin, position_in_script, report
from sqe_core.cli.shell.execution import Outcome
from sqe_core.cli.shell.history import holds_secret
from sqe_core.cli.shell.interrupts import Interrupts
from sqe_core.cli.shell.names import BadNameError, parse_name, quote_name
from sqe_core.cli.shell.progress import EngineSteps, bar, describe, duration
from sqe_core.cli.shell.script import Script
from sqe_core.engine.port import EngineState, Progress
from sqe_core.spi.errors import AccessDeniedError, ExternalError, ObjectNotFoundError, Position, UserError


@pytest.mark.parametrize(
    ("line", "sql"),
    [
        (".tables", "SHOW TABLES"),
        ("\\dt", "SHOW TABLES"),
        (".tables sales", 'SHOW TABLES FROM "sales"'),
        (".tables other.Sales", 'SHOW TABLES FROM "other"."sales"'),
        (".tables %or'd%", "SHOW TABLES LIKE '%or''d%'"),
        ("\\dt or*", "SHOW TABLES LIKE 'or%'"),
        ("\\d", "SHOW TABLES"),
        ("\\d orders;", 'DESCRIBE "orders"'),
        (".schema Sales.Orders", 'DESCRIBE "sales"."orders"'),
        ('.describe "Sales"."Or""ders"', 'DESCRIBE "Sales"."Or""ders"'),
        (".d order", 'DESCRIBE "order"'),
        (".catalogs", "SHOW CATALOGS"),
        (".databases", "SHOW DATABASES"),
        ("\\l", "SHOW CATALOGS"),
        ("\\dn", "SHOW SCHEMAS"),
        ("\\dn other", 'SHOW SCHEMAS FROM "other"'),
        ("\\dv", "SHOW VIEWS"),
        ("\\df", "SHOW FUNCTIONS"),
        ("\\df sub*", "SHOW FUNCTIONS LIKE 'sub%'"),
    ],
)
def test_commands_are_statements(bench: Any, line: str, sql: str) -> None:
    assert bench.script.run(line, name="") is Outcome.OK
    assert bench.backend.executed == [sql]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (".tabels", "unknown command .tabels\nHint: did you mean .tables?"),
        (".zzzzzz", "unknown command .zzzzzz\nHint: .help lists the commands"),
        (
            ".mode csv",
            "Hint: the output format is chosen with .format: table, csv, tsv, json, vertical, markdown, ",
        ),
        ("\\du", "Hint: write SHOW ROLES"),
        ("\\c other", "Hint: write USE schema, or USE catalog.schema"),
        (".schema", "which table?"),
        (".schema a.b.c.d", "'a.b.c.d' has 4 parts; at most 3 are possible here"),
        (".schema t; DROP TABLE t", "'t; DROP TABLE t' is no name"),
        ('.schema "t', "is no name"),
        (".timer maybe", "maybe is neither on nor off"),
        (".format xml", "unknown format xml\nHint: formats are table, csv, tsv, json, vertical, markdown, parquet"),
        (".catalogs x", ".catalogs takes no argument"),
        (".read x.sql", "scripts cannot be read from scripts"),
        ("\\i x.sql", "scripts cannot be read from scripts"),
        ("\\e", "there is no editor in scripts"),
        ("\\set x 1", "unknown command \\set\nHint: there are no variables; SET name = value changes a setting"),
        ("\\pset null x", "Hint: write .format NAME for the format, .nullvalue TEXT for NULL"),
        ("\\watch", "there is no statement yet that could be repeated\nHint: run one, and then \\watch"),
        ("\\watch soon", "soon is no pause\nHint: write \\watch 5, or \\watch i=5 c=3 for three times"),
        ("\\watch 0", "pauses are of 0.1 to 86400 seconds"),
        ("\\watch nan", "pauses are of 0.1 to 86400 seconds"),
        ("\\watch 1 c=0", "runs once at least"),
        ("\\o |less", "results cannot be sent to a command"),
        ("\\o /nowhere/at/all.csv", "cannot write /nowhere/at/all.csv: No such file or directory"),
        (".output /", "cannot write /: Is a directory"),
        ("\\conninfo x", "\\conninfo takes no argument"),
    ],
)
def test_commands_that_cannot_be_done(bench: Any, line: str, told: str) -> None:
    assert bench.script.run(line, name="s.sql") is Outcome.FAILED
    assert bench.told.startswith("USER_ERROR INVALID_ARGUMENTS: s.sql, line 1: ")
    assert told in bench.told
    assert bench.backend.executed == []


def test_every_command_of_the_features_is_there() -> None:
    names = (
        ".help .h .? .exit .quit .q .tables .schema .describe .d .summarize .summary .catalogs .databases .read .timer"
        " .format \\q \\format \\d \\dt \\dn \\l \\dv \\df \\timing \\x \\? \\i \\e"
        " \\o .output .nullvalue \\d+ \\watch \\conninfo"
    )
    assert set(names.split()) <= set(COMMAND_NAMES)


def test_commands_end_with_their_line_whatever_stands_in_it(bench: Any) -> None:
    text = "-- it's\n.tables or'd%\n/* ; */ SELECT 1;\n  .catalogs\nSELECT 2"
    assert bench.script.run(text, name="") is Outcome.OK
    assert bench.backend.executed == ["SHOW TABLES LIKE 'or''d%'", "SELECT 1", "SHOW CATALOGS", "SELECT 2"]


def test_a_number_that_begins_with_a_point_is_no_command(bench: Any) -> None:
    bench.script.run(".5 + 1;", name="")
    assert bench.backend.executed == [".5 + 1"]


@pytest.mark.parametrize("word", [".exit", ".quit;", "\\q", "exit", "QUIT;", "exit ;"])
def test_leaving_ends_a_script(bench: Any, word: str) -> None:
    assert bench.script.run(f"SELECT 1;\n{word}\nSELECT 2;", name="") is Outcome.OK
    assert bench.backend.executed == ["SELECT 1"]


def test_leaving_ends_the_shell(bench: Any) -> None:
    with pytest.raises(Leave):
        bench.script.run("SELECT 1; quit")


def test_stop_on_error(bench: Any) -> None:
    script = Script(bench.script._context, stop_on_error=True)
    assert script.run("SELECT 1; .nonsense\nSELECT 2;", name="") is Outcome.FAILED
    assert bench.backend.executed == ["SELECT 1"]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("  ", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT 1; SELECT", False),
        ("SELECT ';", False),
        ("SELECT 1; .tables", True),
        ("/* open ;", False),
        ("-- only a comment", True),
        (".tables", True),
        ("\\d", True),
        ("quit", True),
        ("Exit ;", True),
        ("exit_code", False),
        ("help", True),
        (" HELP ;", True),
        ("help me", False),
    ],
)
def test_enter_runs_what_is_complete(bench: Any, text: str, complete: bool) -> None:
    assert bench.script.is_complete(text) is complete


@pytest.mark.parametrize("text", ["help", "Help;", "help ;\n"])
def test_help_needs_no_point(bench: Any, text: str) -> None:
    assert bench.script.run(text) is Outcome.OK
    assert "Statements end with a semicolon" in bench.told
    assert bench.backend.executed == []


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("SELECT 1\n\\d", "\\d"),
        ("SELECT 1\n.tables sales", ".tables"),
        ("SELECT 1\n.5", None),
        ("SELECT 1;\n.tables", None),
        ("-- nothing\n.tables", None),
        (".tables", None),
    ],
)
def test_a_command_inside_of_a_statement_is_noticed(bench: Any, text: str, command: str | None) -> None:
    assert bench.script.stray_command(text) == command


def test_summarize(bench: Any, backend: FakeBackend) -> None:
    statement = (
        'SELECT count(*) AS c0, count("id") AS c1, approx_distinct("id") AS c2, min("id") AS c3, max("id") AS c4,'
        ' count("tags") AS c5 FROM "t"'
    )
    backend.answers[statement] = lambda: rows(
        {f"c{index}": pa.array([value], pa.int64()) for index, value in enumerate((4, 3, 2, -7, 11, 4))}
    )
    bench.executor.display.format = "csv"
    assert bench.script.run(".summarize t", name="") is Outcome.OK
    assert bench.written.splitlines() == [
        "column_name,data_type,min,max,approx_distinct,null_fraction,row_count",
        "id,bigint,-7,11,2,0.25,4",
        "tags,array(varchar),,,,0.0,4",
    ]


def test_summarize_of_an_empty_table(bench: Any, backend: FakeBackend) -> None:
    table = pa.table({f"c{index}": pa.array([0 if index in (0, 1, 2, 5) else None], pa.int64()) for index in range(6)})
    original = backend.execute
    backend.execute = lambda sql: rows(table) if sql.startswith("SELECT count") else original(sql)  # type: ignore[method-assign]
    bench.executor.display.format = "csv"
    assert bench.script.run(".summary t", name="") is Outcome.OK
    assert bench.written.splitlines()[1:] == ["id,bigint,,,0,,0", "tags,array(varchar),,,,,0"]


def test_summarize_tells_why_it_cannot(bench: Any, backend: FakeBackend) -> None:
    def missing() -> Any:
        raise UserError("Table 't' does not exist")

    backend.answers['DESCRIBE "t"'] = missing
    assert bench.script.run(".summarize t", name="") is Outcome.FAILED
    assert "Table 't' does not exist" in bench.told


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("T", ("t",)),
        ("a.b.C", ("a", "b", "c")),
        ('"A.b".c', ("A.b", "c")),
        ('"a""b"', ('a"b',)),
        ("t$files", ("t$files",)),
    ],
)
def test_names(text: str, parts: tuple[str, ...]) -> None:
    assert parse_name(text) == parts
    assert parse_name(quote_name(parts)) == parts


@pytest.mark.parametrize("text", ["", ".", "a.", "a..b", "a b", '"a', 'a"b"', "a'b", "a;b", "a.b.c.d"])
def test_bad_names(text: str) -> None:
    with pytest.raises(BadNameError):
        parse_name(text)


def complete(text: str) -> list[str]:
    completer = SqlCompleter(lambda: NAMES, lambda table: COLUMNS.get(table, ()), lambda: ("iceberg", "default"))
    document = Document(text.replace("|", ""), text.index("|") if "|" in text else len(text))
    return [item.text for item in completer.get_completions(document, CompleteEvent())]


def test_completion_replaces_what_is_typed() -> None:
    completer = SqlCompleter(lambda: NAMES, lambda table: COLUMNS.get(table, ()), lambda: ("iceberg", "default"))
    text = 'SELECT * FROM iceberg.default."Odd'
    (item,) = completer.get_completions(Document(text), CompleteEvent())
    assert text[: item.start_position] + item.text == 'SELECT * FROM iceberg.default."Odd Name"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sel", ["select"]),
        ("SEL", ["SELECT"]),
        ("SELECT substr", ["substr", "substring"]),
        ("SELECT * FROM or", ["orders"]),
        ("SELECT * FROM ", ["orders", '"Odd Name"', "default", "sales", "iceberg", "other"]),
        ("SELECT * FROM sales.", ["regions"]),
        ("SELECT * FROM other.", ["public"]),
        ("SELECT * FROM other.public.t", ["things"]),
        ('SELECT * FROM "O', ['"Odd Name"']),
        ("SELECT * FROM information_schema.", ["columns", "df_settings", "schemata", "tables", "views"]),
        ("SELECT * FROM other.information_schema.t", ["tables"]),
        ("SELECT cus| FROM orders", ["customer"]),
        ("SELECT o.| FROM orders AS o", ["order_id", "customer"]),
        ("SELECT o.| FROM orders o, sales.regions r", ["order_id", "customer"]),
        ("SELECT r.| FROM orders o, sales.regions r", ["region_id", "name"]),
        ("SELECT orders.c| FROM orders WHERE 1 = 1", ["customer"]),
        ("SELECT sales.regions.n| FROM sales.regions", ["name"]),
        ("SELECT * FROM orders JOIN sales.regions ON orders.order_id = regions.", ["region_id", "name"]),
        ("UPDATE orders SET cus", ["customer"]),
        ("USE ", ["default", "sales", "iceberg", "other"]),
        ("USE other.", ["public"]),
        ("GRANT SELECT ON or", ["orders"]),
        ("grant select (a) on sales.", ["regions"]),
        ("SHOW EFFECTIVE POLICY FOR USER u ON or", ["orders"]),
        ("CHECK ACCESS SELECT ON other.public.", ["things"]),
        ("SHOW TABLES FROM o", ["other"]),
        ("SELECT 'or", []),
        ("SELECT 1 -- or", []),
        ("SELECT /* or", []),
        ("SELECT 'it''s' FROM or", ["orders"]),
        (".sch", [".schema"]),
        (".format j", ["json"]),
        (".schema o", ["orders", '"Odd Name"', "other"]),
        ("\\d sales.r", ["regions"]),
        (".timer ", ["on", "off"]),
    ],
)
def test_completion(text: str, expected: list[str]) -> None:
    assert complete(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "CREATE SECRET s (TYPE bearer)",
        "create or replace secret s",
        "SELECT * FROM read_csv('x', secret_key => 'y')",
        "ATTACH 'jdbc:postgresql://me:hush@host/db' AS x",
        "SELECT Password FROM users",
    ],
)
def test_secrets_are_recognised(text: str) -> None:
    assert holds_secret(text)


def test_ordinary_statements_hold_no_secret() -> None:
    assert not holds_secret("SELECT secretary, 'http://host/path' FROM orders")


def test_positions_move_into_the_script() -> None:
    text = "SELECT 1;\n  SELECT é,\n x"
    origin = Origin(text=text, offset=text.index("SELECT é"))
    assert position_in_script(Position(1, 8), origin) == Position(2, 10)
    assert position_in_script(Position(2, 2), origin) == Position(3, 2)


def test_an_excerpt_of_a_very_long_line_shows_the_place() -> None:
    text = "x" * 5000 + "HERE" + "y" * 5000
    lines = report(UserError("no", position=Position(1, 5001)), Origin(text=text))
    assert all(len(line) < 200 for line in lines)
    assert lines[1][lines[2].index("^") :].startswith("HERE")


def test_errors_cannot_move_the_cursor() -> None:
    error = UserError("bad \x1b[2J name", hint="\x1b]0;x\x07", position=Position(1, 3))
    text = "\n".join(report(error, Origin(text="a \x1b[31m b")))
    assert "\x1b" not in text


def test_errors_of_others_name_their_query() -> None:
    error = ExternalError("the catalog does not answer")
    error.query_id = "018f"
    assert report(error) == ["EXTERNAL CATALOG_ERROR: the catalog does not answer", "Query: 018f"]


def test_what_may_be_a_denial_names_its_query_and_other_mistakes_do_not() -> None:
    missing, denied, typo = ObjectNotFoundError("no table"), AccessDeniedError("no"), UserError("no")
    for error in (missing, denied, typo):
        error.query_id = "018f"
    assert [report(error)[-1] for error in (missing, denied)] == ["Query: 018f"] * 2
    assert report(typo) == ["USER_ERROR SEMANTIC_ERROR: no"]


def test_progress_texts() -> None:
    progress = Progress(stages=2, stages_done=1, tasks=8, tasks_done=2, tasks_active=3, rows=12345)
    expected = "[#####...............]  25%  7 s  Ctrl-C cancels  12,345 rows  2/8 tasks, 3 running  1/2 stages"
    assert describe(progress, 7.9) == expected
    assert describe(Progress(), 1) == "1 s  Ctrl-C cancels"
    assert bar(1.7) == "[####################] 100%"
    assert [duration(value) for value in (0.0123, 1.234, 61, 3725)] == [
        "12 ms",
        "1.23 s",
        "1 min 01 s",
        "1 h 02 min 05 s",
    ]
    steps = EngineSteps()
    assert steps.describe() == ""
    steps.listen("fetching", 0.5)
    assert steps.describe() == "[##########..........]  50%  fetching"


def test_a_first_start_is_shown_while_a_statement_waits(make_bench: Any, backend: FakeBackend) -> None:
    bench = make_bench(terminal=True)
    backend.state = EngineState.PREPARING
    now = [100.0]
    bench.executor.progress._clock = lambda: now[0]
    bench.executor.progress.begin()
    now[0] += 3
    bench.executor.progress.tick()
    assert "Preparing the engine, 3 s  [##########..........]  50%  fetching the engine" in bench.told
    bench.executor.progress.clear()
    assert bench.told.endswith("\r\x1b[K")


def test_a_cancellation_is_repeated_until_the_statement_is_over() -> None:
    calls = threading.Semaphore(0)
    with Interrupts(calls.release) as interrupts:
        interrupts.request()
        assert calls.acquire(timeout=10)
        assert calls.acquire(timeout=10)
    time.sleep(0.01)
    while calls.acquire(blocking=False):
        pass
    assert not calls.acquire(timeout=1.2), "after the statement nothing is cancelled any more"


def test_the_third_ctrl_c_gives_up() -> None:
    main = threading.main_thread().ident
    assert main is not None

    def press() -> None:
        for _ in range(3):
            time.sleep(0.1)
            signal.pthread_kill(main, signal.SIGINT)

    with Interrupts(lambda: None):
        threading.Thread(target=press).start()
        with pytest.raises(KeyboardInterrupt):
            time.sleep(10)


def test_ctrl_c_does_not_wait_for_the_engine_to_start(bench: Any, backend: FakeBackend) -> None:
    started = threading.Event()
    backend.state = EngineState.PREPARING
    backend.execute = lambda sql: started.wait(30)  # type: ignore[assignment, method-assign, return-value]
    main = threading.main_thread().ident
    assert main is not None
    threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        bench.script.run("SELECT 1", name="")
    assert time.monotonic() - began < 5
    started.set()


def test_ctrl_c_before_the_engine_knows_the_statement_is_not_lost(bench: Any, backend: FakeBackend) -> None:
    original = backend.execute

    def slow_to_begin(sql: str) -> Any:
        time.sleep(0.8)
        return original(sql)

    backend.execute = slow_to_begin  # type: ignore[method-assign]
    main = threading.main_thread().ident
    assert main is not None
    threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT)).start()
    assert bench.script.run("SLEEP; SELECT 1", name="") is Outcome.INTERRUPTED
    assert backend.executed == ["SLEEP"]
    assert "QUERY_CANCELLED" in bench.told


@pytest.mark.rule("OBS-2")
@pytest.mark.parametrize(
    ("text", "offset", "line"),
    [
        ("SELECT 1;\nCREATE SECRET s (TYPE bearer,\n'kanarienvogel')", 10, 2),
        ("SELECT x FROM nope; CREATE SECRET s (TYPE bearer, TOKEN 'kanarienvogel')", 0, 1),
        ("SELECT x; ATTACH 'pg://me:kanarienvogel@h/d' AS x (TYPE jdbc)", 0, 1),
    ],
)
def test_the_line_of_an_error_holds_no_secret(text: str, offset: int, line: int) -> None:
    error = UserError("wrong", position=Position(line=line, column=3))
    told = report(error, Origin(text=text, offset=offset))
    assert "kanarienvogel" not in "\n".join(told)
    assert any("wrong" in each for each in told)
