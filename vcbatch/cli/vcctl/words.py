"""Values in the formats of Go."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from vcbatch.api.duration import human
from vcbatch.api.timestamps import parse_time

UNKNOWN = "<unknown>"
_NEVER = "0001-01-01 00:00:00 +0000 UTC"


def instant(text: Any) -> datetime | None:
    """The time in an object; None where it can't be parsed."""
    try:
        return parse_time(text) if isinstance(text, str) and text else None
    except ValueError:
        return None


def local_time(text: Any) -> str:
    """A time in full, in the local time zone."""
    when = instant(text)
    return when.astimezone().strftime("%Y-%m-%d %H:%M:%S %z %Z") if when is not None else _NEVER


def local_date(text: Any) -> str:
    """The date of a time, in the local time zone."""
    when = instant(text)
    return when.astimezone().strftime("%Y-%m-%d") if when is not None else _NEVER[:10]


def since(text: Any) -> str:
    """The age of a time."""
    when = instant(text)
    return human(now() - when) if when is not None else UNKNOWN


def now() -> datetime:
    return datetime.now(UTC)


_HTML = {ord("<"): r"\u003c", ord(">"): r"\u003e", ord("&"): r"\u0026", 0x2028: r"\u2028", 0x2029: r"\u2029"}


def compact_json(value: Mapping[str, str]) -> str:
    """A map of strings as JSON, sorted by key."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).translate(_HTML)


def bracketed(values: Sequence[Any]) -> str:
    """A list of strings: `[a b]`."""
    return f"[{' '.join(str(value) for value in values)}]"
