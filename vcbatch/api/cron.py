"""Cron lines as Volcano and Kubernetes read them (robfig/cron `ParseStandard`): five fields, a macro, or `@every`.

It is strict on purpose: extensions of other crons (seconds and years, `L`, `W`, `#`, `H`, `R`, a seventh day of the
week, ranges that wrap) are rejected, so that a line means the same to every reader.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from vcbatch.api.duration import MalformedDuration, parse_nanoseconds

_MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS: Final = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
FIELDS: Final[tuple[tuple[str, int, int, list[str]], ...]] = (
    ("minute", 0, 59, []),
    ("hour", 0, 23, []),
    ("day of month", 1, 31, []),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 6, _DAYS),
)
MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
_ZONE_PREFIXES: Final = ("TZ=", "CRON_TZ=")
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_LONGEST_MONTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SECOND: Final = timedelta(seconds=1)
_LONGEST_LINE: Final = 1024


class MalformedCron(ValueError):
    """A line that isn't a valid schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """The minutes that match a line of five fields, each field as its numbers in ascending order."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    """Sunday is 0."""
    either_day: bool
    """Whether a day matches by its day of the month or by its weekday. Otherwise it has to match both, which is so
    where one of the two fields is a star (a star with a step above one isn't)."""

    @property
    def never_comes(self) -> bool:
        """Whether no date matches: a day that none of the months has."""
        if self.either_day or len(self.weekdays) < len(_DAYS):
            return False
        return not any(day <= _LONGEST_MONTHS[month - 1] for day in self.days for month in self.months)


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """`@every 90s`: a fixed interval, whole seconds, at least one."""

    interval: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class CronLine:
    """A parsed line. `zone` is the value of a prefix `TZ=` or `CRON_TZ=`; admission rejects such lines, which therefore
    occur only in objects stored without it."""

    rule: Calendar | Every
    zone: str | None = None


def parse_cron(line: str) -> CronLine:
    """Parse a schedule. Raises `MalformedCron` that names the wrong field and the allowed values."""
    if len(line) > _LONGEST_LINE:
        raise MalformedCron(f"{len(line)} characters, want at most {_LONGEST_LINE}")
    zone = None
    prefix = next((prefix for prefix in _ZONE_PREFIXES if line.startswith(prefix)), "")
    if prefix:
        zone, space, line = line.removeprefix(prefix).partition(" ")
        if not space:
            raise MalformedCron(f"{prefix}{zone} is followed by no schedule")
        line = line.strip()
    if line.startswith(_EVERY):
        return CronLine(rule=_every(line.removeprefix(_EVERY)), zone=zone)
    if line.startswith("@") and line not in MACROS:
        known = ", ".join(sorted(MACROS))
        raise MalformedCron(f"{line[:64]} isn't known, want one of {known}, @every")
    return CronLine(rule=_calendar(MACROS.get(line, line)), zone=zone)


def complaint(expression: str) -> str:
    """The error of five fields or a descriptor (`@daily`, `@every 90s`); empty if it is valid."""
    try:
        parse_cron(expression)
    except MalformedCron as error:
        return str(error)
    return ""


def never_comes(expression: str) -> bool:
    """Whether no date matches the schedule: it has a day of the month that none of the months has, and any day of the
    week."""
    try:
        rule = parse_cron(expression).rule
    except MalformedCron:
        return False
    return isinstance(rule, Calendar) and rule.never_comes


def _every(text: str) -> Every:
    """Parse `@every`. Fractions of a second are truncated, to at least one second, as in robfig/cron."""
    try:
        nanoseconds = parse_nanoseconds(text)
    except MalformedDuration as error:
        raise MalformedCron(str(error)) from error
    if nanoseconds <= 0:
        raise MalformedCron(f"@every {text[:64]} isn't an interval, want more than 0s")
    return Every(interval=max(timedelta(seconds=nanoseconds // 10**9), _SECOND))


def _calendar(line: str) -> Calendar:
    fields = line.split()
    if len(fields) != len(FIELDS):
        raise MalformedCron(f"{len(fields)} fields, want 5: minute, hour, day of month, month, day of week")
    minutes, hours, days, months, weekdays = (_values(text, field) for field, text in enumerate(fields))
    return Calendar(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=weekdays,
        either_day=not (_has_star(fields[2]) or _has_star(fields[4])),
    )


def _values(text: str, field: int) -> tuple[int, ...]:
    name, low, high, words = FIELDS[field]
    found: set[int] = set()
    for part in text.split(","):
        numbers = _range(part, low=low, high=high, words=words)
        if numbers is None:
            raise MalformedCron(f"{name} is {text[:64]!r}, want values in {low}-{high}, ranges, lists or steps")
        found.update(numbers)
    return tuple(sorted(found))


def _range(text: str, *, low: int, high: int, words: list[str]) -> range | None:
    """`*`, `5`, `5-9`, each with `/step`; `5/15` ends at the field's maximum. None for anything else."""
    span, slash, step = text.partition("/")
    if slash and (_NUMBER.fullmatch(step) is None or int(step) == 0):
        return None
    if span in ("*", "?"):
        first: int | None = low
        last: int | None = high
    else:
        start, dash, end = span.partition("-")
        first = _value(start, low, words)
        last = _value(end, low, words) if dash else high if slash else first
    if first is None or last is None or not low <= first <= last <= high:
        return None
    return range(first, last + 1, int(step) if slash else 1)


def _has_star(text: str) -> bool:
    return any(part in ("*", "?") or re.fullmatch(r"[*?]/0*1", part) for part in text.split(","))


def _value(text: str, low: int, words: list[str]) -> int | None:
    if text.lower() in words:
        return words.index(text.lower()) + low
    return int(text) if _NUMBER.fullmatch(text) else None
