"""Cron expressions as Volcano reads them (robfig/cron `ParseStandard`): whether one is an expression at all."""

from __future__ import annotations

import re
from typing import Final

from vcbatch.api.duration import MalformedDuration, parse_nanoseconds

_MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS: Final = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_FIELDS: Final[tuple[tuple[str, int, int, list[str]], ...]] = (
    ("minute", 0, 59, []),
    ("hour", 0, 23, []),
    ("day of month", 1, 31, []),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 6, _DAYS),
)
_DESCRIPTORS: Final = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)


def complaint(expression: str) -> str:
    """What is wrong with five fields or a descriptor (`@daily`, `@every 90s`); empty if nothing is."""
    if expression.startswith("@every "):
        try:
            parse_nanoseconds(expression.removeprefix("@every "))
        except MalformedDuration as error:
            return str(error)
        return ""
    if expression.startswith("@"):
        known = ", ".join(sorted(_DESCRIPTORS))
        return "" if expression in _DESCRIPTORS else f"{expression} isn't known, want one of {known}, @every"
    fields = expression.split()
    if len(fields) != len(_FIELDS):
        return f"{len(fields)} fields, want 5: minute, hour, day of month, month, day of week"
    for text, (name, low, high, words) in zip(fields, _FIELDS, strict=True):
        for part in text.split(","):
            if not _is_range(part, low=low, high=high, words=words):
                return f"{name} is {text!r}, want values in {low}-{high}, ranges, lists or steps"
    return ""


def _is_range(text: str, *, low: int, high: int, words: list[str]) -> bool:
    span, slash, step = text.partition("/")
    if slash and (_NUMBER.fullmatch(step) is None or int(step) == 0):
        return False
    if span in ("*", "?"):
        return True
    start, dash, end = span.partition("-")
    first = _value(start, low, words)
    last = _value(end, low, words) if dash else first
    return first is not None and last is not None and low <= first <= last <= high


def _value(text: str, low: int, words: list[str]) -> int | None:
    if text.lower() in words:
        return words.index(text.lower()) + low
    return int(text) if _NUMBER.fullmatch(text) else None


def never_comes(expression: str) -> bool:
    """Whether no date fits: a day of the month that none of the months has, and any day of the week."""
    fields = expression.split()
    if len(fields) != len(_FIELDS) or complaint(expression) or fields[4].partition("/")[0] not in ("*", "?"):
        return False
    days, months = (_first_values(fields[at], at) for at in (2, 3))
    return all(day > _LONGEST_MONTHS[month - 1] for day in days for month in months)


_LONGEST_MONTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _first_values(text: str, field: int) -> set[int]:
    """What the field stands for. Of a range in steps only its numbers, not their order, matter here."""
    _, low, high, words = _FIELDS[field]
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        start, dash, end = ("*", "", "") if span == "?" else span.partition("-")
        first = low if start == "*" else _value(start, low, words) or low
        last = _value(end, low, words) if dash else high if start == "*" or slash else first
        found.update(range(first, (last or high) + 1, int(step) if slash else 1))
    return found
