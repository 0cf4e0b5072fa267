"""The small languages inside fields: plugin flags, cron expressions, RE2 patterns, times."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    assert flags.error is None
    assert flags.values == DEFAULTS | want


@pytest.mark.parametrize(
    "arguments",
    [["--nope"], ["--port=x"], ["--port"], ["--wait=maybe"], ["---port=1"], ["--=1"], ["--port=99999999999999999999"]],
)
def test_flags_that_go_refuses(arguments: list[str]) -> None:
    flags = parse_flags(["--master=boss", *arguments], DEFAULTS)
    assert flags.error
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
        (r"\C", r"error parsing regexp: invalid escape sequence: `\C`"),
        (r"a\Cb", r"invalid escape sequence: `\C`"),
        (r"\Z", "invalid escape sequence"),
        (r"\p{Foo}", "invalid character class range"),
        (r"\8", "invalid escape sequence"),
        (r"[a-\d]", "error parsing regexp"),
        ("[[:foo:]]", "invalid character class range"),
        ("(?P<é>a)", "invalid named capture: `(?P<é>`"),
        ("(?<é>a)", "invalid named capture: `(?<é>`"),
        ("(?P=n)", "invalid or unsupported Perl syntax"),
        ("(?P>n)", "invalid or unsupported Perl syntax"),
        ("(?<=a)", "invalid or unsupported Perl syntax"),
        ("(?>a)", "invalid or unsupported Perl syntax"),
        ("(?#a)", "invalid or unsupported Perl syntax"),
        ("a++", "invalid nested repetition operator"),
        ("((a{100}){100}){100}", "invalid repeat count"),
        ("a{2,1}", "invalid repeat count"),
        ("a\\", "trailing backslash at end of expression"),
        ("(" * 1001 + ")" * 1001, "expression nests too deeply"),
        ("\ud800", "invalid UTF-8"),
        (r"\pL{1000}", "expression too large"),
        ("a)b", "unexpected )"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        ("a**", "error parsing regexp"),
        ("a{1001}", "invalid repeat count"),
        ("a" * 5000, "too large"),
        ("*", "error parsing regexp"),
    ],
)
def test_patterns_that_go_refuses(pattern: str, said: str) -> None:
    with pytest.raises(MalformedPattern, match="error parsing regexp") as refused:
        compile_pattern(pattern)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (r"^\p{Greek}+$", "αβγ", True),
        (r"^\p{Greek}+$", "abc", False),
        (r"^\PL$", "1", True),
        (r"^\p{^Lu}$", "a", True),
        (r"^[\pN-]+$", "1-2", True),
        (r"^\Qa.b*\E$", "a.b*", True),
        (r"^\Qa.b\E$", "axb", False),
        (r"\Q\C(", r"\C(", True),
        (r"\\C", r"\C", True),
        ("[(]", "(", True),
        (r"a\z", "a", True),
        (r"a\z", "a\n", False),
        ("a$", "a\n", False),
        (r"\x{1F600}", "😀", True),
        (r"\012", "\n", True),
        ("(?<n>a)(?P<m>b)", "ab", True),
        ("(?P<n>a)(?P<n>b)", "ab", True),
        ("(?i-s:A.)b", "axb", True),
        ("(?U)a+", "a", True),
        ("a{,2}", "a{,2}", True),
        ("[[:word:]]", "_", True),
        ("[]a]", "]", True),
        (r"^\d$", "٣", False),
        (r"\bé", "é", False),
        ("(" * 200 + "a" + ")" * 200, "a", True),
    ],
)
def test_patterns_mean_what_they_mean_in_go(pattern: str, text: str, matches: bool) -> None:
    """Source of each: Go's `regexp/syntax`, tried with Go 1.26."""
    assert bool(compile_pattern(pattern).search(text)) is matches


_PIECES = (r"\C", r"\Q", r"\E", r"\pL", r"\p{Greek}", "(?P<n>", "(?<é>", "(?:", "(", ")", "[", "[^", "]", "-", "|", "*",
           "{2}", "\\", "a", "é", r"\b", r"\z", "^", "$")  # fmt: skip


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_no_byte_and_no_foreign_name_gets_past_quotes_and_classes(pattern: str) -> None:
    r"""Where RE2 reads `\C` as any byte, it is refused, wherever it stands. Where it is quoted, it is a text."""
    try:
        compiled = compile_pattern(pattern)
    except MalformedPattern:
        return
    assert all(name.isascii() for name in getattr(compiled, "groupindex", {}))
    quoted = re.sub(r"(?s)\\Q.*?(?:\\E|$)|\\[^C]", "", pattern)
    assert r"\C" not in quoted


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
