"""Counting lines the way a person does."""

from __future__ import annotations

import tomllib

import pytest

from sqe_core.config.toml_lines import key_lines

DOCUMENT = '''\
# a comment with [brackets] and = signs
top = 1

[coordinator] # mode = "no"
mode = "hybrid" # [x]
worker_urls = [
  "http://a", # a = 1
  "http://b#]",
]
tls.cert_file = 'C:\\no = "escape"'

[catalogs."my lake".backend]
"odd \\" key" = """
text = "no key"
"""
inline = { a = 1, b = [2, 3] }
multi = \'\'\'
[not.a.table]
\'\'\'

[[auth.providers]]
type = "a"
[auth.providers.claims]
x = 1
[[auth.providers]]
  type = "b"

[ policy . opa ]
url = "u"
'''


def test_the_document_is_toml() -> None:
    assert tomllib.loads(DOCUMENT)["auth"]["providers"][1] == {"type": "b"}


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 2),
        (("coordinator",), 4),
        (("coordinator", "mode"), 5),
        (("coordinator", "worker_urls"), 6),
        (("coordinator", "tls", "cert_file"), 10),
        (("catalogs", "my lake", "backend"), 12),
        (("catalogs", "my lake", "backend", 'odd " key'), 13),
        (("catalogs", "my lake", "backend", "inline"), 16),
        (("catalogs", "my lake", "backend", "multi"), 17),
        (("auth", "providers", 0), 21),
        (("auth", "providers", 0, "type"), 22),
        (("auth", "providers", 0, "claims", "x"), 24),
        (("auth", "providers", 1), 25),
        (("auth", "providers", 1, "type"), 26),
        (("policy", "opa"), 28),
        (("policy", "opa", "url"), 29),
    ],
)
def test_lines(path: tuple[str | int, ...], line: int) -> None:
    assert key_lines(DOCUMENT)[path] == line


def test_nothing_inside_a_value_is_a_key() -> None:
    names = {part for path in key_lines(DOCUMENT) for part in path}

    assert not {"text", "not", "x]"} & names


def test_line_ends_of_windows() -> None:
    assert key_lines("a = 1\r\n\r\n[t]\r\nb = 2\r\n") == {("a",): 1, ("t",): 3, ("t", "b"): 4}


@pytest.mark.parametrize("text", ["", "# only", "a = 1", 'a = ""', 'a = """x"""""', "a = [[1], [2]]\nb = 1"])
def test_small_documents_end(text: str) -> None:
    assert set(key_lines(text)) == {(key,) for key in tomllib.loads(text)}
