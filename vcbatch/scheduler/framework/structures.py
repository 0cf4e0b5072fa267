"""Building blocks for readers of structured arguments: each receives the given value and its path, and rejects invalid
values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any, Protocol, cast

from vcbatch.api.duration import MalformedDuration, parse_duration
from vcbatch.scheduler.framework.arguments import PolicyError, shown


def mapping(value: object, where: str, allowed: Collection[str] | None = None) -> Mapping[str, Any]:
    """A mapping with text keys; empty if none was given. `allowed` has the allowed keys, None where keys are names of
    the user's."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise PolicyError(f"{where}: must be a mapping, got {shown(value)}")
    entries = {str(key): entry for key, entry in cast("Mapping[Any, Any]", value).items()}
    for key in entries:
        if allowed is not None and key not in allowed:
            raise PolicyError(f"{where}: unknown key {shown(key)}; allowed: {', '.join(sorted(allowed))}")
    return entries


def comma_list(value: object, where: str) -> tuple[str, ...]:
    """Names in a string, separated by commas, each once."""
    if value is None:
        return ()
    if not isinstance(value, str):
        raise PolicyError(f"{where}: must be a string of names separated by commas, got {shown(value)}")
    return tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))


class DurationReader(Protocol):
    """Receives the given value and its path; rejects values that aren't durations or aren't in the allowed range."""

    def __call__(self, value: object, where: str) -> timedelta: ...


def duration(default: str, *, least: str = "", most: str = "", example: str = "") -> DurationReader:
    """A reader of Go durations of at least `least`, or above zero if that isn't given, and at most `most`. `default`
    applies if nothing was given; `example` appears in the error message."""
    shortest = parse_duration(least) if least else timedelta.resolution
    longest = parse_duration(most) if most else timedelta.max
    allowed = f"of at least {least}" if least else "longer than nothing"
    allowed += f" and at most {most}" if most else ""

    def read(value: object, where: str) -> timedelta:
        text = default if value is None else value
        try:
            found = parse_duration(text) if isinstance(text, str) else None
        except MalformedDuration:
            found = None
        if found is None or not shortest <= found <= longest:
            raise PolicyError(
                f"{where}: must be a duration {allowed}, such as {example or default}, got {shown(value)}"
            )
        return found

    return read
