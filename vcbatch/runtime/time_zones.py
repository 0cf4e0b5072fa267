"""The time zones that this machine knows."""

from __future__ import annotations

from functools import cache, lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones


@cache
def time_zones() -> frozenset[str]:
    """Read once: the answer takes a walk through the machine's time-zone files."""
    return frozenset(available_timezones())


@lru_cache(maxsize=1024)
def time_zone(name: str) -> ZoneInfo | None:
    """The zone of that IANA name, read once; None where there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # no such file, no file name at all, a directory
        return None
