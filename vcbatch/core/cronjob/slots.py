"""The slots (scheduled times) of a schedule.

The slots of a schedule of five fields are all minutes that a wall clock of the time zone shows and that match: a
reading that the clock skips in spring is no slot, and one that it shows twice in autumn is two. robfig/cron does the
same for Kubernetes and Volcano, except for its errors around clock changes at midnight and by half an hour, where it
loses slots.

croniter finds the matching readings on a time line without zones; the time zone decides which instants show a reading.
(croniter's own time zone support moves a skipped slot to the next minute that exists.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final, Protocol

from croniter import CroniterBadDateError, croniter

from vcbatch.api.cron import Calendar, CronLine, Every

_MINUTE: Final = timedelta(minutes=1)
_NONE: Final = timedelta(0)


class Slots(Protocol):
    """All instants at which a schedule is due. Instants are aware; returned ones are in UTC, in whole seconds."""

    def next(self, after: datetime) -> datetime | None:
        """The first slot later than `after`; None where there is none."""
        ...

    def last(self, until: datetime) -> datetime | None:
        """The last slot that isn't later than `until`; None where there is none."""
        ...


def slots_of(line: CronLine, *, zone: tzinfo, since: datetime) -> Slots:
    """The slots of a schedule in a time zone. Intervals (`@every`) start at `since` and need no zone."""
    if isinstance(line.rule, Every):
        return Intervals(start=since.replace(microsecond=0), interval=line.rule.interval)
    return _clock(line.rule, zone)


def count_between(slots: Slots, *, after: datetime, until: datetime, most: int) -> int:
    """The number of slots later than `after` and not later than `until`; at most `most`."""
    count, at = 0, slots.next(after)
    while at is not None and at <= until and count < most:
        count, at = count + 1, slots.next(at)
    return count


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """The instants at multiples of an interval after `start`; `start` itself is no slot."""

    start: datetime
    interval: timedelta

    def next(self, after: datetime) -> datetime | None:
        return self._at(max((after - self.start) // self.interval, 0) + 1)

    def last(self, until: datetime) -> datetime | None:
        passed = (until - self.start) // self.interval
        return self._at(passed) if passed > 0 else None

    def _at(self, number: int) -> datetime | None:
        try:
            return (self.start + number * self.interval).astimezone(UTC)
        except OverflowError:  # an interval of thousands of years
            return None


@lru_cache(maxsize=2048)
def _clock(rule: Calendar, zone: tzinfo) -> WallClock:
    return WallClock(rule, zone)


class WallClock:
    """The slots of a five-field schedule on the wall clock of a time zone."""

    def __init__(self, rule: Calendar, zone: tzinfo) -> None:
        self._zone = zone
        self._never = rule.never_comes
        self._search = croniter(_canonical(rule), datetime(2000, 1, 1), day_or=rule.either_day)

    def next(self, after: datetime) -> datetime | None:
        here = after.astimezone(self._zone)
        wall = here.replace(tzinfo=None, fold=0)
        # Readings that passed and will be shown a second time count as well.
        found: datetime | None = None
        for reading in self._later(wall - _put_back_after(here)):
            instants = [instant for instant in _instants(reading, self._zone) if instant > after]
            if not instants:
                continue
            found = min(instants) if found is None else min(found, *instants)
            if reading > wall:
                break
        return found

    def last(self, until: datetime) -> datetime | None:
        here = until.astimezone(self._zone)
        wall = here.replace(tzinfo=None, fold=0)
        # Readings above this one were shown before, where the clock has just been put back.
        found: datetime | None = None
        for reading in self._earlier(wall + _put_back_before(here)):
            instants = [instant for instant in _instants(reading, self._zone) if instant <= until]
            if not instants:
                continue
            found = max(instants) if found is None else max(found, *instants)
            if reading <= wall:
                break
        return found

    def _later(self, than: datetime) -> Iterator[datetime]:
        reading = than
        while (following := self._find(reading, backwards=False)) is not None:
            reading = following
            yield reading

    def _earlier(self, than: datetime) -> Iterator[datetime]:
        """The readings up to `than`, latest first."""
        reading = than.replace(second=0, microsecond=0) + _MINUTE
        while (before := self._find(reading, backwards=True)) is not None:
            reading = before
            yield reading

    def _find(self, reading: datetime, *, backwards: bool) -> datetime | None:
        if self._never:
            return None
        find = self._search.get_prev if backwards else self._search.get_next
        try:
            return find(datetime, start_time=reading, update_current=False)
        except (CroniterBadDateError, OverflowError, ValueError):  # the calendar's end
            return None


def _canonical(rule: Calendar) -> str:
    """The fields as plain lists, since croniter interprets some steps and ranges differently (`6/15` is 6)."""
    days, weekdays = rule.days, rule.weekdays
    if rule.either_day and (len(days) == 31 or len(weekdays) == 7):  # every day fits
        days, weekdays = tuple(range(1, 32)), tuple(range(7))
    return " ".join(
        "*" if len(values) == size else ",".join(map(str, values))
        for values, size in ((rule.minutes, 60), (rule.hours, 24), (days, 31), (rule.months, 12), (weekdays, 7))
    )


def _instants(reading: datetime, zone: tzinfo) -> list[datetime]:
    """The instants at which the clock shows the reading: none, one or two."""
    found: list[datetime] = []
    for fold in (0, 1):
        instant = reading.replace(tzinfo=zone, fold=fold).astimezone(UTC)
        shown = instant.astimezone(zone).replace(tzinfo=None, fold=0)
        if shown == reading and instant not in found:
            found.append(instant)
    return found


def _put_back_after(here: datetime) -> timedelta:
    """By how much the clock will be set back, where it will show the present reading again; else zero."""
    return _repeat(here) if not here.fold else _NONE


def _put_back_before(here: datetime) -> timedelta:
    """By how much the clock was set back, where it showed the present reading before; else zero."""
    return _repeat(here) if here.fold else _NONE


def _repeat(here: datetime) -> timedelta:
    first, second = here.replace(fold=0).utcoffset(), here.replace(fold=1).utcoffset()
    return max(first - second, _NONE) if first is not None and second is not None else _NONE
