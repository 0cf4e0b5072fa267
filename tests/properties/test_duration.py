"""Go durations."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from vcbatch.api.duration import (
    MalformedDuration,
    format_duration,
    format_nanoseconds,
    parse_duration,
    parse_nanoseconds,
)

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


@settings(max_examples=examples(200))
@given(nanoseconds=st.integers(-(2**63), 2**63 - 1))
def test_what_is_written_is_read_back(nanoseconds: int) -> None:
    assert parse_nanoseconds(format_nanoseconds(nanoseconds)) == nanoseconds


@settings(max_examples=examples(200))
@given(parts=st.lists(st.tuples(st.integers(0, 999), st.sampled_from(sorted(UNITS))), min_size=1, max_size=5))
def test_parts_add_up(parts: list[tuple[int, str]]) -> None:
    text = "".join(f"{count}{unit}" for count, unit in parts)
    assert parse_nanoseconds(text) == sum(count * UNITS[unit] for count, unit in parts)
    assert parse_nanoseconds(f"-{text}") == -parse_nanoseconds(text)


@settings(max_examples=examples(200))
@given(text=st.text(alphabet="0123456789.nuµmsh+- ", max_size=10))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_nanoseconds(text)
    except MalformedDuration as error:
        assert str(error)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("600s", "10m0s"),
        ("1h30m", "1h30m0s"),
        ("1.5s", "1.5s"),
        (".5m", "30s"),
        ("100ms", "100ms"),
        ("0", "0s"),
        ("1500us", "1.5ms"),
        ("-1m", "-1m0s"),
        ("3ns", "3ns"),
    ],
)
def test_texts_as_go_writes_them(text: str, want: str) -> None:
    assert format_nanoseconds(parse_nanoseconds(text)) == want


@pytest.mark.parametrize("text", ["", "5", "s", ".s", "1 s", "1d", "1h 2m", "--1s", "1e3s", "9999999999h", "1s" * 200])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(MalformedDuration):
        parse_nanoseconds(text)


def test_spans_of_time() -> None:
    assert parse_duration("1h0.25s") == timedelta(hours=1, milliseconds=250)
    assert parse_duration("-1.5us") == timedelta(microseconds=-1)
    assert format_duration(timedelta(seconds=90)) == "1m30s"
