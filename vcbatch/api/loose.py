"""Reading JSON whose shape nobody has checked yet: what isn't there or is of another type reads as empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

Json = dict[str, Any]


def part(obj: Mapping[str, Any], key: str) -> Json:
    """The object at `key`."""
    value = obj.get(key)
    return cast(Json, value) if isinstance(value, dict) else {}


def listed(obj: Mapping[str, Any], key: str) -> list[Any]:
    """The list at `key`."""
    value = obj.get(key)
    return cast("list[Any]", value) if isinstance(value, list) else []
