"""Compares JSON values, and finds the old value of a list item."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from vcbatch.local.apiserver.schema.structural import Json, Node


class _Absent:
    """The type of `ABSENT`: there is no old value to compare with."""


ABSENT = _Absent()


def same(one: Any, other: Any) -> bool:
    """Deep equality of JSON values; `true` isn't equal to 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and all(key in other and same(item, other[key]) for key, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def canonical(value: Any) -> str:
    """A text that is the same for equal values."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def correlate(new: list[Any], node: Node, old: Any) -> Callable[[int], Any]:
    """Returns a function that finds the old item for the item at an index: in a map list by its keys, in any other list
    never."""
    if node.list_type != "map" or not isinstance(old, list):
        return lambda _index: ABSENT
    olds = {map_key(item, node): item for item in old if isinstance(item, dict)}

    def find(index: int) -> Any:
        item = new[index]
        return olds.get(map_key(item, node), ABSENT) if isinstance(item, dict) else ABSENT

    return find


def map_key(item: Json, node: Node) -> str:
    return canonical([item.get(key) for key in node.list_map_keys])
