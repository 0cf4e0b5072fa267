"""Limits repeated log messages: once per object, and a few of each kind.

The limits follow journald's idea at a smaller scale: an outage is a handful of lines, whatever its length, and the
number of omitted lines is added to the next line that passes.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

_WINDOWS = (60.0, 300.0)
"""Seconds until a line is repeated: after the first time, after all others."""
_FORGOTTEN = 600.0
_BURST = 10
_REFILL_SECONDS = 60.0
_REMEMBERED = 2048
_LONGEST = 300
_NUMBERS = re.compile(r"\d+")
_OBJECT = ("uid", "key", "controller", "resource", "lease", "error", "code")
"""Fields of a record that identify its object."""


@dataclass(slots=True)
class _Said:
    at: float
    times: int = 1
    left_out: int = 0


@dataclass(slots=True)
class _Kind:
    """All lines of one log statement."""

    tokens: float
    filled: float
    left_out: int = 0


class Repeats(logging.Filter):
    """Passes repeated warnings and errors only once in a while; records of lower levels always. A line after omitted
    ones has the field `repeated` with their number."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._said: OrderedDict[tuple[str, ...], _Said] = OrderedDict()
        self._kinds: OrderedDict[tuple[str, ...], _Kind] = OrderedDict()
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        place = (record.name, record.levelname, _shape(str(record.msg)))
        error = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        about = tuple(_shape(str(vars(record).get(name, ""))) if name == "error" else str(vars(record).get(name, ""))
                      for name in _OBJECT)  # fmt: skip
        with self._lock:
            return self._passes(record, place, (*place, _shape(record.getMessage()), error, *about))

    def _passes(self, record: logging.LogRecord, place: tuple[str, ...], line: tuple[str, ...]) -> bool:
        now = self._monotonic()
        kind = self._kind(place, now)
        said = self._said.get(line)
        if said is not None and now - said.at >= _FORGOTTEN:
            said = None
        if said is not None and now - said.at < _WINDOWS[min(said.times, len(_WINDOWS)) - 1]:
            said.left_out += 1
            return False
        if kind.tokens < 1:
            kind.left_out += 1
            return False
        kind.tokens -= 1
        repeated = kind.left_out + (said.left_out if said is not None else 0)
        kind.left_out = 0
        if repeated:
            record.repeated = repeated
        _keep(self._said, line, _Said(now, said.times + 1 if said is not None else 1))
        return True

    def _kind(self, place: tuple[str, ...], now: float) -> _Kind:
        kind = self._kinds.get(place)
        if kind is None:
            kind = _Kind(_BURST, now)
            _keep(self._kinds, place, kind)
        kind.tokens = min(_BURST, kind.tokens + (now - kind.filled) / _REFILL_SECONDS)
        kind.filled = now
        return kind


def _shape(text: str) -> str:
    """The text without its numbers: counts, versions and delays differ from line to line."""
    return _NUMBERS.sub("#", text[:_LONGEST])


def _keep(table: OrderedDict, key: object, value: object) -> None:  # type: ignore[type-arg]
    table[key] = value
    table.move_to_end(key)
    while len(table) > _REMEMBERED:
        table.popitem(last=False)
