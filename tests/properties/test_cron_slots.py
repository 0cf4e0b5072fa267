"""Slots against a slow oracle: every minute is read off a wall clock of that zone, and held against the line.

Around every clock change that any time zone of this machine has had since 2000, or will have. Those are taken together
in which the clock is moved by as much and at the same time of day, since nothing else of a change matters to cron.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from vcbatch.api.cron import parse_cron
from vcbatch.core.cronjob.slots import Slots, slots_of

MINUTE = timedelta(minutes=1)
BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
LINES = (
    "*/10 * * * *",
    "30 2 * * *",
    "0 0 * * *",
    "59 23 * * *",
    "5,45 0-3 * * *",
    "0 1 * * {weekday}",
    "0 3 {day} * *",
    "20 0,12 {day} * {weekday}",
)


@dataclass(frozen=True)
class Change:
    """A change of the clock: the instant from which on it differs."""

    zone: str
    at: datetime

    @property
    def window(self) -> tuple[datetime, datetime]:
        """Whole minutes around it; around a lost or doubled day more than around an hour."""
        before, after = _offsets(self)
        around = timedelta(hours=4) + abs(after - before)
        return self.at - around, self.at + around


def _matches(line: str, wall: datetime) -> bool:
    """Cron as its manual tells it, one field after the other."""
    fields = line.split()
    minute, hour, day, month, weekday = (
        _holds(text, number, bounds)
        for text, number, bounds in zip(
            fields,
            (wall.minute, wall.hour, wall.day, wall.month, wall.isoweekday() % 7),
            BOUNDS,
            strict=True,
        )
    )
    day_fits = day and weekday if "*" in (fields[2], fields[4]) else day or weekday
    return minute and hour and month and day_fits


def _holds(text: str, number: int, bounds: tuple[int, int]) -> bool:
    for part in text.split(","):
        span, _, step = part.partition("/")
        low, _, high = f"{bounds[0]}-{bounds[1]}".partition("-") if span == "*" else span.partition("-")
        if int(low) <= number <= int(high or low) and (number - int(low)) % int(step or 1) == 0:
            return True
    return False


def _oracle(line: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    """Every slot after `start` and up to `end`."""
    tz, found, at = ZoneInfo(zone), list[datetime](), start
    while (at := at + MINUTE) <= end:
        if _matches(line, at.astimezone(tz)):
            found.append(at)
    return found


def _all(slots: Slots, start: datetime, end: datetime) -> list[datetime]:
    found: list[datetime] = []
    at = slots.next(start)
    while at is not None and at <= end:
        found.append(at)
        at = slots.next(at)
    return found


def _all_backwards(slots: Slots, start: datetime, end: datetime) -> list[datetime]:
    found: list[datetime] = []
    at = slots.last(end)
    while at is not None and at > start:
        found.append(at)
        at = slots.last(at - timedelta(microseconds=1))
    return found[::-1]


def _check(line: str, change: Change) -> None:
    start, end = change.window
    expected = _oracle(line, change.zone, start, end)
    slots = slots_of(parse_cron(line), zone=ZoneInfo(change.zone), since=start)
    assert _all(slots, start, end) == expected, (line, change)
    assert _all_backwards(slots, start, end) == expected, (line, change)


@cache
def _changes() -> list[Change]:
    """One of each sort: by how far the clock is moved, and when in its day."""
    sorts: dict[tuple[object, ...], Change] = {}
    for zone in sorted(available_timezones() - {"localtime"}):
        tz = ZoneInfo(zone)
        for at in _transitions(tz):
            change = Change(zone, at)
            before, after = _offsets(change)
            sorts.setdefault((after - before, at.astimezone(tz).time()), change)
    return list(sorts.values())


def _transitions(tz: ZoneInfo) -> Iterator[datetime]:
    at, step = datetime(2000, 1, 2, tzinfo=UTC), timedelta(days=20)
    offset = at.astimezone(tz).utcoffset()
    while at.year < 2038:
        low, at, before = at, at + step, offset
        offset = at.astimezone(tz).utcoffset()
        if offset == before:
            continue
        high = at
        while high - low > MINUTE:
            middle = low + (high - low) // MINUTE // 2 * MINUTE
            if middle.astimezone(tz).utcoffset() == before:
                low = middle
            else:
                high = middle
        yield high


def test_there_are_changes_of_all_sorts() -> None:
    shifts = {round((after - before) / MINUTE) for before, after in map(_offsets, _changes())}
    assert {60, -60, 30, -30, 24 * 60} <= shifts


def _offsets(change: Change) -> tuple[timedelta, timedelta]:
    tz = ZoneInfo(change.zone)
    before, after = (change.at - MINUTE).astimezone(tz).utcoffset(), change.at.astimezone(tz).utcoffset()
    assert before is not None
    assert after is not None
    return before, after


@pytest.mark.parametrize("line", LINES)
def test_around_every_change_of_a_clock(line: str) -> None:
    for change in _changes():
        wall = change.at.astimezone(ZoneInfo(change.zone))
        _check(line.format(day=wall.day, weekday=wall.isoweekday() % 7), change)


def _field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    step = st.tuples(st.sampled_from(["*"]) | span, st.integers(2, high)).map(lambda pair: f"{pair[0]}/{pair[1]}")
    part = number.map(str) | span | step
    return st.just("*") | st.lists(part, min_size=1, max_size=3).map(",".join)


@settings(max_examples=examples(60))
@given(st.tuples(*(_field(low, high) for low, high in BOUNDS)).map(" ".join), st.integers(min_value=0))
def test_any_line_around_some_change(line: str, number: int) -> None:
    _check(line, _changes()[number % len(_changes())])


@settings(max_examples=examples(60))
@given(
    st.tuples(*(_field(low, high) for low, high in BOUNDS)).map(" ".join),
    st.sampled_from(["UTC", "America/New_York", "Europe/Dublin", "Australia/Lord_Howe", "Africa/Casablanca"]),
    st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
)
def test_next_and_last_meet(line: str, zone: str, at: datetime) -> None:
    slots = slots_of(parse_cron(line), zone=ZoneInfo(zone), since=at)
    following = slots.next(at)
    if following is None:
        assert slots.last(at) is None
        return
    assert following > at
    assert slots.last(following) == following
    before = slots.last(following - timedelta(seconds=1))
    assert before is not None
    assert before <= at
    assert slots.next(before) == following
    assert _matches(line, following.astimezone(ZoneInfo(zone)))
