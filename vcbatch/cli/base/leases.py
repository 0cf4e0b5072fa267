"""Who works by a Lease, as far as it shows from outside."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from vcbatch.cli.base.fields import moment, number, text

_SLACK: Final = 2
"""A Lease that wasn't renewed for so many of its durations belongs to nobody that works."""


def holder_of(lease: Mapping[str, Any], now: datetime) -> str:
    """The replica that holds the Lease and renews it; empty where nobody does."""
    renewed = moment(lease, "spec", "renewTime")
    lasts = timedelta(seconds=(number(lease, "spec", "leaseDurationSeconds") or 15) * _SLACK)
    return "" if renewed is None or now - renewed > lasts else text(lease, "spec", "holderIdentity")
