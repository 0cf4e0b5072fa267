"""The time zones that this machine knows."""

from __future__ import annotations

from functools import cache
from zoneinfo import available_timezones


@cache
def time_zones() -> frozenset[str]:
    """Read once: the answer takes a walk through the machine's time-zone files."""
    return frozenset(available_timezones())
