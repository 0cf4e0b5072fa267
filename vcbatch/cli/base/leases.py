"""The holders of Leases, as far as a client can tell."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from vcbatch.cli.base.fields import moment, number, text

_SLACK: Final = 2
"""A Lease that wasn't renewed for this many of its durations counts as not held."""


def holder_of(lease: Mapping[str, Any], now: datetime) -> str:
    """The replica that holds and renews the Lease; empty where there is none."""
    renewed = moment(lease, "spec", "renewTime")
    lasts = timedelta(seconds=(number(lease, "spec", "leaseDurationSeconds") or 15) * _SLACK)
    return "" if renewed is None or now - renewed > lasts else text(lease, "spec", "holderIdentity")
