"""The small languages inside fields: plugin flags, cron expressions, RE2 patterns, times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from vcbatch.api import cron
from vcbatch.api.flags import parse_flags
from vcbatch.api.re2 import MalformedPattern, compile_pattern
from vcbatch.api.timestamps import format_micro_time, format_time, parse_time

DEFAULTS = {"master": "master", "port": 23456, "wait": False}


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ([], {}),
        (["--master=boss", "-port=1"], {"master": "boss", "port": 1}),
        (["--port", "0x10", "--wait"], {"port": 16, "wait": True}),
        (["--wait=f"], {"wait": False}),
        (["--port=010"], {"port": 8}),
        (["rest", "--port=1"], {}),
        (["--", "--port=1"], {}),
        (["--master="], {"master": ""}),
    ],
)
def test_flags(arguments: list[str], want: dict[str, object]) -> None:
    flags = parse_flags(arguments, DEFAULTS)
    assert flags.fault is None
    assert flags.values == DEFAULTS | want


@pytest.mark.parametrize(
    "arguments",
    [["--nope"], ["--port=x"], ["--port"], ["--wait=maybe"], ["---port=1"], ["--=1"], ["--port=99999999999999999999"]],
)
def test_flags_that_go_refuses(arguments: list[str]) -> None:
    flags = parse_flags(["--master=boss", *arguments], DEFAULTS)
    assert flags.fault
    assert flags.values == DEFAULTS | {"master": "boss"}


@pytest.mark.parametrize(
    "expression",
    [
        "* * * * *",
        "*/5 0-23/2 1,15 JAN-dec ?",
        "0 0 * * sun",
        "59 23 31 12 6",
        "@daily",
        "@every 1h30m",
        "5/15 * * * *",
    ],
)
def test_cron_expressions(expression: str) -> None:
    assert cron.complaint(expression) == ""


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 7",
        "*/0 * * * *",
        "5-1 * * * *",
        "a * * * *",
        "@reboot",
        "@every soon",
        "1- * * * *",
        "*/x * * * *",
        ", * * * *",
        "-1 * * * *",
    ],
)
def test_what_is_no_cron_expression(expression: str) -> None:
    assert cron.complaint(expression)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^n[0-9]+$", "n12", True),
        ("rack", "my-rack-1", True),
        (r"^[[:alpha:]]+\z", "abc", True),
        ("(?P<a>x)|(?<b>y)", "y", True),
        (r"^\d$", "٣", False),
        ("a.c", "abd", False),
    ],
)
def test_patterns(pattern: str, text: str, matches: bool) -> None:
    assert bool(compile_pattern(pattern).search(text)) == matches


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("[", "error parsing regexp: missing closing ]: `[`"),
        ("a(b", "error parsing regexp: missing closing ): `a(b`"),
        ("a)b", "unexpected )"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        ("a**", "error parsing regexp"),
        ("a{1001}", "invalid repeat count"),
        ("a" * 5000, "too large"),
        ("*", "error parsing regexp"),
    ],
)
def test_patterns_that_re2_refuses(pattern: str, said: str) -> None:
    with pytest.raises(MalformedPattern, match="error parsing regexp") as refused:
        compile_pattern(pattern)
    assert said in str(refused.value)


def test_times() -> None:
    berlin = datetime(2026, 11, 20, 13, 0, 5, 999_999, tzinfo=timezone(timedelta(hours=1)))
    assert format_time(berlin) == "2026-11-20T12:00:05Z"
    assert format_micro_time(berlin) == "2026-11-20T12:00:05.999999Z"
    assert parse_time("2026-11-20T12:00:05Z") == datetime(2026, 11, 20, 12, 0, 5, tzinfo=UTC)
    assert parse_time("2026-11-20T13:00:05+01:00").tzinfo is UTC
    with pytest.raises(ValueError, match="time zone"):
        parse_time("2026-11-20T12:00:05")


@pytest.mark.parametrize(("pattern", "name"), [("(.?){1000}x", "n" * 200), ("^(a+)+$", "a" * 40 + "b")])
def test_no_pattern_takes_exponential_time(pattern: str, name: str) -> None:
    """Python's `re` would not end within a lifetime."""
    assert compile_pattern(pattern).search(name) is None
