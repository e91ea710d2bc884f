"""Which test covers which rule of the security requirements: collects the markers, writes docs/security-rules.md.

python tests/architecture/rule_table.py         write the page
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security-rules.md"
TESTS = ("sqe-core/tests", "sqe-bench/tests", "sqe-http/tests", "sqe-plugins", "tests")
ATTACKS = ROOT / "tests" / "security" / "attacks.toml"

# The families that the query path must cover by now, with what each rule asks in short.
RULES: Mapping[str, str] = {
    "AUTHN-1": "No call, action or page is answered without a login, but health",
    "AUTHN-2": "Production refuses providers that check nothing",
    "AUTHN-4": "Not mine goes on, failed and errors stop the login chain",
    "AUTHN-5": "The transport says what kind a credential is",
    "AUTHN-6": "One constant text for every login that fails",
    "AUTHN-7": "Failed logins are limited per address and account, with growing delay",
    "AUTHN-8": "API keys are salted hashes, compared over all entries; secrets never print",
    "AUTHN-9": "Headers give no identity, and nobody becomes another user",
    "AUTHN-10": "Names of an identity are bounded and clean",
    "JWT-9": "A session never outlives its identity; revocation is asked before each statement",
    "SESS-1": "Session tokens are random and never user data",
    "SESS-2": "A session is never shared between principals or rights",
    "SESS-4": "Issuer and subject together are a user",
    "SESS-5": "A session is made once, or not at all",
    "SESS-6": "Idle and absolute time, bounds per user and in all; never another's session",
    "OBS-8": "Production refuses what is weak, and names it",
    "TRI-3": "What is another's is answered like what does not exist",
    "TRI-9": "Users see and end their own sessions and statements, administrators all",
    "SESS-7": "Secrets of catalogs are in that session's settings under the alias, and nowhere else",
    "FLT-1": "No call and no action is answered without a login",
    "FLT-2": "The session's token is not the credential's; no credential in the clear",
    "FLT-3": "Tickets are random, used once, bound to session and user, and expire",
    "FLT-4": "Prepared statements are per session, bounded, and judged when they run",
    "FLT-5": "The columns that are listed are those that the user sees",
    "FLT-7": "What clients put is bounded and validated before it is used",
    "LIM-2": "Before the login little is read, and nobody is waited for",
    "LIM-8": "Results stream; who does not read is ended",
    "LIM-10": "Every map is bounded with a lifetime",
    "STMT-1": "Statements are refused unless their class is listed, each with its own privilege",
    "STMT-2": "SHOW, DESCRIBE, USE, SET SESSION and EXPLAIN are answered by the server",
    "STMT-3": "Statements that run code, reach files or change shared state are never run",
    "STMT-4": "No computed names or versions, no unbound parameter, no STREAM; hints from a list",
    "STMT-5": "Temporary views are the server's text, secured anew at each use",
    "STMT-6": "CALL runs listed procedures only",
    "STMT-7": "Table properties are listed keys",
    "STMT-8": "A clause that is not carried over refuses the statement",
    "STMT-9": "information_schema and SHOW come from the catalog as this user, then policy",
    "FUNC-1": "Functions are listed by name and by resolved class",
    "FUNC-2": "No function runs code, shows files or names of the server; session functions are literals",
    "FUNC-3": "Option maps of functions are literals with listed keys",
    "CONF-1": "Settings of a session are pinned and compared before each statement",
    "CONF-2": "Session properties are a typed vocabulary of the server",
    "NAME-1": "A name is a tuple of parts",
    "NAME-2": "The server resolves names: common table expression, session view, current names",
    "NAME-3": "Metadata tables and selectors are parts of the table, under its policy",
    "NAME-4": "Paths, data sources and unknown catalogs are no names",
    "NAME-5": "Versions are literals, placed by the server",
    "NAME-6": "Generated names are fresh and random; user text cannot hold their prefix",
    "ERR-1": "Clients never get the engine's own text",
    "ERR-2": "Errors are rebuilt from conditions with listed templates",
    "ERR-3": "Positions refer to the user's own text",
    "ERR-4": "Values are repeated only where that is safe",
    "ERR-5": "Denied, hidden and missing look the same; suggestions are visible names",
    "ERR-6": "A scrubber replaces secrets in whatever leaves, and alarms",
    "ISO-1": "The driver runs no user code",
    "ISO-2": "One engine session per server session",
    "ISO-3": "Spark's own catalog is unusable",
    "ISO-4": "There is no global_temp",
    "ISO-5": "Spark's SQL cache is unused",
    "ISO-6": "The class path is a fixed, hashed set",
    "ISO-7": "Storage credentials are vended per table",
    "ISO-8": "Iceberg's catalog cache is per session and short, or off",
    "ISO-9": "A statement is cancelled by its own tag",
    "ISO-10": "No Spark UI, event log, metrics or REST submission",
    "ISO-11": "The gateway is on loopback with a token; executors authenticate and encrypt",
    "ISO-12": "Unprivileged process, private files",
    "ISO-13": "Tenants that do not trust each other get a process each",
    "ENF-1": "Spark's parser says what a statement is; two views of it must agree",
    "ENF-2": "The text that was judged is the text that runs",
    "ENF-3": "The session is the active one in the thread of a call",
    "ENF-4": "A replaced relation is covered by an alias",
    "ENF-5": "The walk visits all fields of each node, without recursion",
    "ENF-6": "Plan and expression classes are on lists by exact name",
    "ENF-7": "Every relation is replaced, keeps its visible name, and is looked for again",
    "ENF-8": "Catalogs are mounted under a random name, which never shows",
    "ENF-9": "The secured relation lists its columns; metadata columns are not among them",
    "ENF-10": "No visible column denies",
    "ENF-11": "The analysed plan is verified node by node",
    "ENF-12": "The verifier stands apart and distrusts the rewriter",
    "ENF-13": "The verified plan object is what runs, under the session's lock",
    "ENF-14": "A barrier stands above a policy's filter",
    "ENF-15": "Safe predicates are copied below the barrier",
    "ENF-16": "No user expression at or below the barrier in optimized plans",
    "ENF-17": "Hidden rows influence nothing that can be observed",
}

# Rules of these families that need what SQE does not have yet.
LATER: Mapping[str, str] = {
    "STMT-6": "procedures; until then the corpus shows that CALL is refused",
    "ISO-7": "catalogs that vend credentials; the embedded warehouse has no others' files",
    "ISO-13": "servers with tenants; a page for operators",
    "ENF-15": "row filters",
    "ENF-16": "row filters",
    "ENF-17": "row filters and masks",
}


def test_files() -> Iterator[Path]:
    for folder in TESTS:
        yield from sorted((ROOT / folder).rglob("test_*.py"))


def markers_of(tree: ast.AST) -> Iterator[str]:
    """Yield the rule of every `pytest.mark.rule("…")` in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.rule":
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value


def collect() -> dict[str, set[str]]:
    """Return the test modules, and the corpus of attacks, that cover each rule."""
    found: dict[str, set[str]] = {}
    for path in test_files():
        for rule in markers_of(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(rule, set()).add(path.relative_to(ROOT).as_posix())
    with ATTACKS.open("rb") as file:
        for attack in tomllib.load(file)["attack"]:
            found.setdefault(attack["rule"], set()).add(ATTACKS.relative_to(ROOT).as_posix())
    return found


def order(rule: str) -> tuple[str, int]:
    family, _, number = rule.partition("-")
    return family, int(number)


def is_rule(name: str) -> bool:
    return re.fullmatch(r"[A-Z]+-[1-9][0-9]*", name) is not None


def render(found: Mapping[str, set[str]]) -> str:
    lines = [
        "# Security rules and their tests",
        "",
        "Generated by `python tests/architecture/rule_table.py`; a test fails when this page is stale. A test names",
        'the rule that it covers with `@pytest.mark.rule("STMT-3")`; each statement of `tests/security/attacks.toml`',
        "names one too. What the rules mean for those who run and use SQE is told in the other pages.",
        "",
        "| rule | in short | tests |",
        "|---|---|---|",
    ]
    for rule in sorted({*RULES, *found}, key=order):
        tests = "<br>".join(f"[{name}](../{name})" for name in sorted(found.get(rule, ())))
        later = f"later: {LATER[rule]}" if rule in LATER else ""
        lines.append(f"| {rule} | {RULES.get(rule, '')} | {'<br>'.join(filter(None, (tests, later)))} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(render(collect()), encoding="utf-8")
