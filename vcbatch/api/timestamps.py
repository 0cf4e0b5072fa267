"""Kubernetes times on the wire: RFC 3339, UTC, whole seconds (`metav1.Time`)."""

from __future__ import annotations

from datetime import UTC, datetime


def parse_time(text: str) -> datetime:
    """The instant, UTC-aware. Raises ValueError for text that isn't an RFC 3339 time with an offset."""
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return instant.astimezone(UTC)


def format_time(instant: datetime) -> str:
    """`2026-11-20T12:00:00Z`, with fractions of a second truncated. `instant` has to be aware."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(instant: datetime) -> str:
    """`metav1.MicroTime`, the format in leases and new-style events."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
