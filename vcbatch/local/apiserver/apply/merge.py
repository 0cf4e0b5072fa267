"""Merges, compares and prunes objects along their shape."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vcbatch.local.apiserver.apply.fieldset import FieldSet, Json, Path, compact, covers
from vcbatch.local.apiserver.apply.shapes import FREE, Shape

_PRESENT = object()
"""The value of a list item's own path: its existence."""


def leaves(value: Any, shape: Shape, path: Path = ()) -> dict[Path, Any]:
    """Every field that a manager can own, with its value."""
    found: dict[Path, Any] = {}
    _collect(value, shape, path, found)
    return found


def _collect(value: Any, shape: Shape, path: Path, found: dict[Path, Any]) -> None:
    if isinstance(value, dict) and value and not shape.whole:
        for name, item in value.items():
            _collect(item, shape.child(name), (*path, f"f:{name}"), found)
    elif isinstance(value, list) and value and _is_merged(shape):
        for element, item in items(value, shape):
            below = (*path, element)
            found[below] = _PRESENT
            if shape.keys:
                _collect(item, shape.item(), below, found)
    elif path:
        found[path] = value


def _is_merged(shape: Shape) -> bool:
    return not shape.whole and shape is not FREE


def items(value: list[Any], shape: Shape) -> Iterator[tuple[str, Any]]:
    """The items of a merged list with the path elements that identify them."""
    for item in value:
        yield element_of(item, shape), item


def element_of(item: Any, shape: Shape) -> str:
    if not shape.keys:
        return f"v:{compact(item)}"
    given = item if isinstance(item, dict) else {}
    keys = {key: given.get(key, shape.key_default(key)) for key in shape.keys}
    return "k:" + compact({key: value for key, value in keys.items() if value is not None})


def merged(live: Any, applied: Any, shape: Shape) -> Any:
    """`live` with all applied values written over it. Neither is changed."""
    if applied is None and isinstance(live, (dict, list)):
        return live  # A null has no effect on a map or a list.
    if isinstance(live, dict) and isinstance(applied, dict) and not shape.whole:
        result = dict(live)
        for name, value in applied.items():
            result[name] = merged(live[name], value, shape.child(name)) if name in live else copy.deepcopy(value)
        return result
    if isinstance(live, list) and isinstance(applied, list) and _is_merged(shape):
        return _merged_list(live, applied, shape)
    return copy.deepcopy(applied)


def _merged_list(live: list[Any], applied: list[Any], shape: Shape) -> list[Any]:
    """Existing items keep their positions; new ones follow in the order in which they are applied."""
    wanted = dict(items(applied, shape))
    result: list[Any] = []
    for element, item in items(live, shape):
        result.append(merged(item, wanted.pop(element), shape.item()) if element in wanted else copy.deepcopy(item))
    return [*result, *(copy.deepcopy(item) for item in wanted.values())]


def without(obj: Json, gone: FieldSet, kept: FieldSet, shape: Shape) -> Json:
    """`obj` without the fields in `gone`; a list item is removed as a whole unless a part of it is in `kept`."""
    return _pruned(obj, shape, (), _Pruning(gone, kept))


@dataclass(frozen=True, slots=True)
class _Pruning:
    gone: FieldSet
    kept: FieldSet

    def takes(self, path: Path) -> bool:
        return path in self.gone and not covers(self.kept, path)


def _pruned(value: Any, shape: Shape, path: Path, pruning: _Pruning) -> Any:
    if isinstance(value, dict) and not shape.whole:
        result: Json = {}
        for name, item in value.items():
            below = (*path, f"f:{name}")
            if pruning.takes(below):
                continue
            left = _pruned(item, shape.child(name), below, pruning)
            # A map is removed with its last entry, unless a manager set it empty.
            if left or left == item or below in pruning.kept:
                result[name] = left
        return result
    if isinstance(value, list) and _is_merged(shape):
        left = [(element, item) for element, item in items(value, shape) if not pruning.takes((*path, element))]
        return [_pruned_item(item, shape, (*path, element), pruning) for element, item in left]
    return value


def _pruned_item(item: Any, shape: Shape, path: Path, pruning: _Pruning) -> Any:
    result = _pruned(item, shape.item(), path, pruning)
    if isinstance(item, dict) and isinstance(result, dict):
        result.update({key: item[key] for key in shape.keys if key in item})
    return result
