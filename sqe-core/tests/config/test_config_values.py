"""Byte sizes, durations, shares, URLs."""

from __future__ import annotations

import pytest

from sqe_core.config.values import (
    Share,
    format_bytes,
    format_duration,
    parse_bytes,
    parse_duration,
    parse_share,
    parse_url,
    without_passwords,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (0, 0),
        (1048576, 1 << 20),
        ("7", 7),
        ("7B", 7),
        ("64K", 64 << 10),
        ("64KB", 64 << 10),
        ("64KiB", 64 << 10),
        ("3M", 3 << 20),
        ("3MB", 3 << 20),
        ("1.5GB", 3 << 29),
        (".5G", 1 << 29),
        ("2T", 2 << 40),
        ("2tb", 2 << 40),
        (" 8 GB ", 8 << 30),
        ("9007199254740993", 9007199254740993),
    ],
)
def test_byte_sizes(text: object, expected: int) -> None:
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "GB", "8 GBs", "8PB", "-1GB", "1,5GB", "1e3", "0x10", True, 1.5, None, -1])
def test_no_byte_sizes(text: object) -> None:
    with pytest.raises(ValueError, match="byte size"):
        parse_bytes(text)


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 64 << 10, 3 << 29, 1 << 40, 12345])
def test_written_sizes_read_as_the_same(size: int) -> None:
    assert parse_bytes(format_bytes(size)) == size


def test_sizes_are_written_with_the_largest_unit() -> None:
    assert [format_bytes(size) for size in (0, 1000, 64 << 10, 1 << 40)] == ["0", "1000", "64KB", "1TB"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (90, 90.0),
        (1.5, 1.5),
        ("90", 90.0),
        ("90s", 90.0),
        ("15m", 900.0),
        ("24h", 86400.0),
        ("7d", 604800.0),
        ("250ms", 0.25),
    ],
)
def test_durations(text: object, expected: float) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "h", "1w", "-5s", True, None, -1])
def test_no_durations(text: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@pytest.mark.parametrize("seconds", [0.25, 1.0, 90.0, 900.0, 86400.0])
def test_written_durations_read_as_the_same(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


def test_shares() -> None:
    assert parse_share("20%") == Share(percent=20)
    assert parse_share("0.5%").of(1000) == 5
    assert parse_share("2GB") == Share(bytes=2 << 30)
    assert parse_share("2GB").of(1) == 2 << 30
    assert [str(parse_share(text)) for text in ("20%", "2GB")] == ["20%", "2GB"]


@pytest.mark.parametrize("text", ["101%", "twenty", "%", "-5%", True])
def test_no_shares(text: object) -> None:
    with pytest.raises(ValueError, match="percentage"):
        parse_share(text)


@pytest.mark.parametrize("url", ["http://localhost", "https://h:8181/api?x=1", "http://[::1]:80/"])
def test_urls(url: str) -> None:
    assert parse_url(url) == url


def test_a_file_has_no_host() -> None:
    assert parse_url("file:///mirror", ("https", "file")) == "file:///mirror"


@pytest.mark.parametrize("url", ["", "localhost", "//h", "http:", "http://:80", "http://h:x", "ftp://h", "http://h /"])
def test_no_urls(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        parse_url(url)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgres://u:p@h/db", "postgres://[redacted]@h/db"),
        ("jdbc:mysql://h/db?user=u&password=p&x=1", "jdbc:mysql://h/db?user=u&password=[redacted]&x=1"),
        ("http://h/path", "http://h/path"),
        ("sqlite:/data/x.db", "sqlite:/data/x.db"),
    ],
)
def test_passwords_in_urls(text: str, expected: str) -> None:
    assert without_passwords(text) == expected
