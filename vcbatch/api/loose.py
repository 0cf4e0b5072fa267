"""Reading JSON that wasn't validated yet: a missing value or one of another type reads as empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

Json = dict[str, Any]


def deeper_than(value: object, levels: int) -> bool:
    """Whether mappings and lists are nested by more than this many levels, determined without recursion."""
    level: list[Any] = [value] if isinstance(value, (dict, list)) else []
    for _ in range(levels):
        if not level:
            return False
        level = [
            child
            for container in level
            for child in (cast("Json", container).values() if isinstance(container, dict) else container)
            if isinstance(child, (dict, list))
        ]
    return bool(level)


def part(obj: Mapping[str, Any], key: str) -> Json:
    """The object at `key`; empty where there is none."""
    value = obj.get(key)
    return cast(Json, value) if isinstance(value, dict) else {}


def listed(obj: Mapping[str, Any], key: str) -> list[Any]:
    """The list at `key`; empty where there is none."""
    value = obj.get(key)
    return cast("list[Any]", value) if isinstance(value, list) else []
