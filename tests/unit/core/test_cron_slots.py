"""When schedules are due: by value, and against real clock changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from vcbatch.api.cron import Calendar, Every, MalformedCron, parse_cron
from vcbatch.core.cronjob.slots import Slots, count_between, slots_of

START = datetime(2026, 1, 1, tzinfo=UTC)


def _slots(line: str, zone: str = "UTC", *, since: datetime = START) -> Slots:
    return slots_of(parse_cron(line), zone=ZoneInfo(zone), since=since)


def _local(line: str, zone: str, after: str, count: int) -> list[str]:
    """The next slots after a local time, as the wall clock shows them with its offset."""
    slots, at, shown = _slots(line, zone), datetime.fromisoformat(after).replace(tzinfo=ZoneInfo(zone)), list[str]()
    for _ in range(count):
        following = slots.next(at)
        assert following is not None
        assert following.utcoffset() == timedelta(0)
        assert slots.last(following) == following
        assert slots.last(following - timedelta(microseconds=1)) != following
        shown.append(following.astimezone(ZoneInfo(zone)).strftime("%m-%d %H:%M%z"))
        at = following
    return shown


@pytest.mark.parametrize(
    ("line", "zone", "after", "expected"),
    [
        # The clock skips 2:00 to 3:00: what is due then isn't, that day.
        ("30 2 * * *", "America/New_York", "2026-03-07 12:00", ["03-09 02:30-0400", "03-10 02:30-0400"]),
        ("0 * * * *", "America/New_York", "2026-03-08 00:30", ["03-08 01:00-0500", "03-08 03:00-0400"]),
        ("*/20 1-3 * * *", "America/New_York", "2026-03-08 01:30", ["03-08 01:40-0500", "03-08 03:00-0400"]),
        # The clock shows 1:00 to 2:00 twice: what is due then is, twice.
        ("30 1 * * *", "America/New_York", "2026-10-31 12:00", ["11-01 01:30-0400", "11-01 01:30-0500"]),
        ("0 * * * *", "America/New_York", "2026-11-01 00:30", ["11-01 01:00-0400", "11-01 01:00-0500"]),
        ("30 1 * * *", "America/New_York", "2026-11-01 01:30", ["11-01 01:30-0500", "11-02 01:30-0500"]),
        # Half an hour is skipped; 3:00 isn't.
        ("0 3 * * *", "Australia/Lord_Howe", "2026-10-03 12:00", ["10-04 03:00+1100", "10-05 03:00+1100"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00", ["10-05 02:15+1100"]),
        # Midnight is skipped, and the day still has its 3:00.
        ("0 3 * * 5", "Africa/Cairo", "2026-04-20 12:00", ["04-24 03:00+0300", "05-01 03:00+0300"]),
        ("0 0 * * *", "Africa/Cairo", "2026-04-22 12:00", ["04-23 00:00+0200", "04-25 00:00+0300"]),
        # Midnight comes twice.
        ("30 0 * * *", "America/Havana", "2026-10-31 12:00", ["11-01 00:30-0400", "11-01 00:30-0500"]),
        # A whole day is skipped.
        ("0 12 * * *", "Pacific/Apia", "2011-12-28 13:00", ["12-29 12:00-1000", "12-31 12:00+1400"]),
    ],
)
def test_clock_changes(line: str, zone: str, after: str, expected: list[str]) -> None:
    assert _local(line, zone, after, len(expected)) == expected


@pytest.mark.parametrize(
    ("line", "after", "expected"),
    [
        ("*/15 * * * *", "2026-01-01 00:00", ["01-01 00:15+0000", "01-01 00:30+0000"]),
        ("5/20 * * * *", "2026-01-01 00:00", ["01-01 00:05+0000", "01-01 00:25+0000", "01-01 00:45+0000"]),
        ("0 9 * * mon-FRI", "2026-01-02 10:00", ["01-05 09:00+0000", "01-06 09:00+0000"]),
        # By number or by weekday, where neither is a star.
        ("0 0 13 * 5", "2026-02-01 00:00", ["02-06 00:00+0000", "02-13 00:00+0000", "02-20 00:00+0000"]),
        ("0 0 13 * 5", "2026-03-08 00:00", ["03-13 00:00+0000", "03-20 00:00+0000"]),
        # A star in steps is no star: every other day, and every Monday as well.
        ("0 0 */2 * 1", "2026-02-01 00:00", ["02-02 00:00+0000", "02-03 00:00+0000", "02-05 00:00+0000"]),
        # All days written out are no star either, so that all of them fit.
        ("0 0 1-31 * 1", "2026-02-03 00:00", ["02-04 00:00+0000", "02-05 00:00+0000"]),
        ("0 0 31 * *", "2026-02-01 00:00", ["03-31 00:00+0000", "05-31 00:00+0000"]),
        ("@weekly", "2026-01-01 00:00", ["01-04 00:00+0000", "01-11 00:00+0000"]),
        ("@yearly", "2026-01-01 00:00", ["01-01 00:00+0000"]),
        ("0 0 29 2 *", "2097-01-01 00:00", ["02-29 00:00+0000"]),  # 2104: 2100 has none
    ],
)
def test_calendar(line: str, after: str, expected: list[str]) -> None:
    assert _local(line, "UTC", after, len(expected)) == expected


@pytest.mark.parametrize("line", ["0 0 31 2 *", "0 0 30,31 feb *", "0 0 31 4,6,9,11 ?"])
def test_what_never_comes(line: str) -> None:
    slots = _slots(line)
    assert slots.next(START) is None
    assert slots.last(START) is None
    assert count_between(slots, after=START, until=START + timedelta(days=99), most=5) == 0


def test_an_impossible_day_with_a_weekday_comes_by_the_weekday() -> None:
    assert _slots("0 0 31 2 1").next(START) == datetime(2026, 2, 2, tzinfo=UTC)


def test_intervals_count_from_their_start() -> None:
    start = datetime(2026, 1, 1, 0, 0, 7, 500_000, tzinfo=UTC)
    slots = _slots("@every 90s", since=start)
    first = datetime(2026, 1, 1, 0, 1, 37, tzinfo=UTC)
    assert slots.next(start) == first
    assert slots.last(first - timedelta(seconds=1)) is None
    assert slots.last(first) == first
    assert slots.next(first) == first + timedelta(seconds=90)
    assert slots.last(first + timedelta(days=1)) == first + timedelta(days=1)
    assert slots.next(start - timedelta(days=1)) == first
    assert count_between(slots, after=start, until=start + timedelta(hours=1), most=99) == 40
    assert count_between(slots, after=start, until=start + timedelta(days=1), most=99) == 99


@pytest.mark.parametrize(("text", "seconds"), [("1ms", 1), ("1.9s", 1), ("1h30m", 5400)])
def test_intervals_are_whole_seconds(text: str, seconds: int) -> None:
    assert parse_cron(f"@every {text}").rule == Every(interval=timedelta(seconds=seconds))


def test_an_interval_beyond_the_calendar_never_comes() -> None:
    assert (
        _slots("@every 2562047h", since=datetime(9900, 1, 1, tzinfo=UTC)).next(datetime(9900, 1, 2, tzinfo=UTC)) is None
    )


@pytest.mark.parametrize("line", ["@every 0s", "@every -5m", "TZ=UTC", "CRON_TZ=UTC", "TZ=UTC * * * *", "* " * 600])
def test_what_cant_be_read(line: str) -> None:
    with pytest.raises(MalformedCron):
        parse_cron(line)


@pytest.mark.parametrize("prefix", ["TZ=Europe/Berlin", "CRON_TZ=Europe/Berlin"])
def test_a_zone_in_front(prefix: str) -> None:
    line = parse_cron(f"{prefix}  @daily")
    assert line.zone == "Europe/Berlin"
    assert isinstance(line.rule, Calendar)
    assert (line.rule.minutes, line.rule.hours, len(line.rule.days)) == ((0,), (0,), 31)
