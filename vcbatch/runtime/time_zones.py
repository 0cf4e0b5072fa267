"""The time zones of this machine."""

from __future__ import annotations

from functools import cache, lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones


@cache
def time_zones() -> frozenset[str]:
    """The names of all time zones. Cached: listing them reads all of the machine's time zone files."""
    return frozenset(available_timezones())


@lru_cache(maxsize=1024)
def time_zone(name: str) -> ZoneInfo | None:
    """The zone of that IANA name, cached; None where there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # no such file, an invalid file name, a directory
        return None
