"""Time spans on the command line."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

import click

from vcbatch.api.duration import MalformedDuration, parse_nanoseconds

_DAYS: Final = re.compile(r"(\d{1,6})d(.*)", re.ASCII)
_MOST_SECONDS: Final = 2**31 - 1
"""The largest value of an int32, such as `ttlSecondsAfterFinished`."""


def seconds_of(text: str) -> int:
    """The span in whole seconds, rounded up: a Go duration with days (`90s`, `2h30m`, `7d`, `1d12h`), or a number of
    seconds. Raises `ValueError`."""
    if text.isascii() and text.isdigit():
        seconds = int(text)
    else:
        found = _DAYS.fullmatch(text)
        days, rest = (int(found[1]), found[2] or "0") if found else (0, text)
        try:
            seconds = days * 86400 - -parse_nanoseconds(rest) // 10**9
        except MalformedDuration:
            seconds = -1
        if rest.startswith(("+", "-")):
            seconds = -1
    if not 0 <= seconds <= _MOST_SECONDS:
        raise ValueError(f"invalid duration {text[:64]!r} (e.g. 90s, 2h30m, 7d)")
    return seconds


class SpanType(click.ParamType):
    """A time span of zero or more seconds, with days: see `seconds_of`."""

    name = "TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        try:
            return timedelta(seconds=seconds_of(str(value)))
        except ValueError as error:
            self.fail(str(error), param, ctx)
