"""JSON that two readers could understand differently is refused."""

from __future__ import annotations

import pytest

from sqe_core.spi import read_json


def test_what_json_has_is_read() -> None:
    text = '{"a": [1, -2.5e3, true, null, "\\u00e9\\ud83d\\ude00"], "b": {"a": {}}, "": 12345678901234567890}'
    expected = {"a": [1, -2500.0, True, None, "é😀"], "b": {"a": {}}, "": 12345678901234567890}
    assert read_json(text) == expected
    assert read_json(text.encode()) == expected


REFUSED: dict[str, tuple[str | bytes, str]] = {
    "a key twice": ('{"sub": "anna", "sub": "bob"}', "a key stands twice"),
    "a key twice, once escaped": ('{"sub": "anna", "\\u0073ub": "bob"}', "a key stands twice"),
    "a key twice, deep inside": ('[{"a": [{"b": 1, "b": 1}]}]', "a key stands twice"),
    "NaN": ("[NaN]", "NaN is no JSON"),
    "Infinity": ("[Infinity]", "Infinity is no JSON"),
    "-Infinity": ("[-Infinity]", "-Infinity is no JSON"),
    "a number that would be infinite": ("[1e999]", "a number is too large"),
    "a number that would be infinite, below zero": ("[-1e999]", "a number is too large"),
    "an integer that takes long to read": ("1" * 5000, "limit"),
    "too deep": ("[" * 100_000, "nested too deeply"),
    "too deep, objects": ('{"a":' * 100_000, "nested too deeply"),
    "nothing": ("", "Expecting value"),
    "two documents": ("{}{}", "Extra data"),
    "half a document": ('{"a": ', "Expecting value"),
    "no UTF-8": (b'{"a": "\xff"}', "utf-8"),
    "UTF-16": ("{}".encode("utf-16"), "utf-8"),
    "UTF-16 without a mark": ("{}".encode("utf-16-le"), "Expecting property name"),
    "half a surrogate pair": ('{"sub": "anna\\ud800"}', "half a surrogate pair"),
    "half a surrogate pair, as a key": ('[{"\\uDC00": 1}]', "half a surrogate pair"),
    "a byte order mark": (b"\xef\xbb\xbf{}", "BOM"),
}


@pytest.mark.rule("JWT-6")
@pytest.mark.parametrize("fault", REFUSED)
def test_what_could_be_read_differently_is_refused(fault: str) -> None:
    text, says = REFUSED[fault]
    with pytest.raises(ValueError, match=says):
        read_json(text)
