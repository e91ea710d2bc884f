"""The session's own vocabulary: typed, range-checked, closed."""

import pytest

from sqe_core.config.values import parse_duration
from sqe_core.session.properties import PROPERTIES, SessionProperties
from sqe_core.spi.errors import ErrorCode, UserError


@pytest.mark.rule("CONF-2")
@pytest.mark.parametrize("name", ["spark.sql.ansi.enabled", "spark.jars", "unknown", "", "DIALECT "])
def test_an_unknown_property_is_an_error_that_lists_the_known_ones(name: str) -> None:
    with pytest.raises(UserError) as raised:
        SessionProperties().changed({name: "x"})
    assert raised.value.code is ErrorCode.INVALID_SESSION_PROPERTY
    assert raised.value.hint is not None
    assert all(known in raised.value.hint for known in PROPERTIES)


@pytest.mark.rule("CONF-2")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dialect", "mysql"),
        ("dialect", 1),
        ("query_max_run_time", "5 parsecs"),
        ("query_max_run_time", "0s"),
        ("query_max_run_time", 5),
        ("query_max_result_rows", 0),
        ("query_max_result_rows", True),
        ("query_max_result_rows", "10"),
        ("parallel_endpoints", 0),
        ("parallel_endpoints", 17),
        ("parallel_endpoints", 2.0),
        ("iceberg.compression_codec", "rar"),
        ("time_zone", "Europe/Nowhere"),
        ("time_zone", "UTC+15"),
        ("time_zone", 0),
    ],
)
def test_a_bad_value_is_refused_with_all_others(name: str, value: object) -> None:
    with pytest.raises(UserError, match=name):
        SessionProperties().changed({"dialect": "spark", name: value})


def test_values_are_normalised_listed_and_reset() -> None:
    properties = SessionProperties().changed({"dialect": "TRINO", "query_max_run_time": " 1.5 h "})
    assert properties["dialect"] == "trino"
    assert parse_duration(properties["query_max_run_time"]) == 5400
    assert ("dialect", "trino", "sqe") in [row[:3] for row in properties.rows()]
    assert properties.without("dialect")["dialect"] == "sqe"


@pytest.mark.parametrize("zone", ["UTC", "utc", "Etc/UTC", "GMT", "Z", "+00:00", "UTC+0"])
def test_the_time_zone_is_utc(zone: str) -> None:
    assert SessionProperties().changed({"time_zone": zone})["time_zone"] == "UTC"
