"""Go durations (`1h30m`, `600s`, `1.5s`), the format of time spans in Volcano's API."""

from __future__ import annotations

import re
from datetime import timedelta

_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_LONGEST = 2**63 - 1
_MOST_CHARACTERS = 256


class MalformedDuration(ValueError):
    """Text that Go's `time.ParseDuration` rejects."""


def parse_nanoseconds(text: str) -> int:
    """The duration in nanoseconds, by the rules of Go's `time.ParseDuration`: signed, units `ns us ms s m h`, decimal
    fractions, no spaces, only `0` without a unit, at most 2**63 - 1 ns. Raises `MalformedDuration`."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0
    if not body or len(text) > _MOST_CHARACTERS:
        raise MalformedDuration(f'invalid duration "{text[:64]}"')
    total = 0
    position = 0
    while position < len(body):
        part = _PART.match(body, position)
        if part is None or not (part[1] or part[2]):
            raise MalformedDuration(f'invalid duration "{text}"')
        unit = _UNITS[part[3]]
        fraction = part[2] or ""
        total += int(part[1] or "0") * unit
        if fraction:
            total += int(fraction) * unit // 10 ** len(fraction)
        position = part.end()
    limit = _LONGEST + 1 if text[0] == "-" else _LONGEST
    if total > limit:
        raise MalformedDuration(f'invalid duration "{text}"')
    return -total if text[0] == "-" else total


def parse_duration(text: str) -> timedelta:
    """The duration, truncated to whole microseconds. Raises `MalformedDuration`."""
    nanoseconds = parse_nanoseconds(text)
    microseconds = abs(nanoseconds) // 1000
    return timedelta(microseconds=microseconds if nanoseconds >= 0 else -microseconds)


def format_nanoseconds(nanoseconds: int) -> str:
    """The text of Go's `time.Duration.String`: `1h30m0s`, `1.5s`, `100ms`, `0s`."""
    sign = "-" if nanoseconds < 0 else ""
    rest = abs(nanoseconds)
    if rest == 0:
        return "0s"
    if rest < 10**9:
        for unit in ("ms", "µs", "ns"):
            if rest >= _UNITS[unit]:
                return sign + _decimal(rest, _UNITS[unit]) + unit
    minutes, rest = divmod(rest, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    text = _decimal(rest, _UNITS["s"]) + "s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else sign + text


def format_duration(duration: timedelta) -> str:
    """The duration as Go formats it."""
    return format_nanoseconds((duration // timedelta(microseconds=1)) * 1000)


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    if not rest:
        return str(whole)
    digits = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}"


def human(span: timedelta) -> str:
    """The duration for messages, in the two largest units, as kubectl shows ages (apimachinery
    `duration.HumanDuration`): `90s`, `4m30s`, `3h`, `2d4h`, `1y12d`."""
    seconds = int(span.total_seconds())
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(big: int, big_unit: str, small: int, small_unit: str) -> str:
    return f"{big}{big_unit}{small}{small_unit}" if small else f"{big}{big_unit}"
