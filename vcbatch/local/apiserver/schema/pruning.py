"""Drops the fields that a structural schema doesn't have and sets its defaults.

Source: apiextensions-apiserver `pkg/apiserver/schema/{pruning,defaulting,objectmeta}`.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any

from vcbatch.local.apiserver.schema import builtin
from vcbatch.local.apiserver.schema.structural import Json, Node

_EXPONENT = 1e21
_META = frozenset({"apiVersion", "kind", "metadata"})


def prune(obj: Json, schema: Node, *, unchanged: Collection[str] = ()) -> list[str]:
    """Drop the unknown fields of a custom resource in place, those of metadata included, and convert numbers such as
    `3.0` to integers, except for the fields at the paths `unchanged`; returns the paths of the unknown fields
    (`spec.tasks[0].foo`) in sorted order."""
    pruner = _Pruner(unchanged)
    pruner.metadata(obj, "")
    pruner.map(obj, schema, "", root=True)
    return sorted(pruner.dropped)


def prune_stored(obj: Json, schema: Node) -> None:
    """Drop unknown fields in place, except in the metadata, which was validated when it was stored."""
    _Pruner().map(obj, schema, "", root=True)


def whole(number: float) -> float | int:
    """A number as Go writes it again: `3` for 3.0, up to where it uses exponents."""
    return int(number) if number.is_integer() and abs(number) < _EXPONENT else number


class _Pruner:
    __slots__ = ("_unchanged", "dropped")

    def __init__(self, unchanged: Collection[str] = ()) -> None:
        self._unchanged = unchanged
        self.dropped: list[str] = []

    def value(self, value: Any, schema: Node | None, path: str, *, keep: bool = False) -> None:
        if schema is None and keep:
            return
        if isinstance(value, dict):
            self.map(value, schema, path, keep=keep)
        elif isinstance(value, list):
            items = schema.items if schema else None
            below_kept = keep or bool(schema and schema.preserve_unknown)
            for index, item in enumerate(value):
                if type(item) is float:
                    value[index] = whole(item)
                self.value(item, items, f"{path}[{index}]", keep=below_kept and items is None)

    def map(self, obj: Json, schema: Node | None, path: str, *, root: bool = False, keep: bool = False) -> None:
        """`keep`: an ancestor keeps unknown fields and this level has no schema of its own."""
        embedded = root or bool(schema and schema.embedded)
        if schema and schema.embedded and not root:
            self.metadata(obj, path)
        keep = keep or bool(schema and schema.preserve_unknown)
        for name in list(obj):
            below = f"{path}.{name}" if path else name
            if embedded and name in _META:
                continue
            if type(obj[name]) is float and below not in self._unchanged:
                obj[name] = whole(obj[name])
            if schema and name in schema.properties:
                self.value(obj[name], schema.properties[name], below)
            elif schema and schema.has_additional:
                self.value(obj[name], schema.additional, below, keep=keep and schema.additional is None)
            elif not keep:
                self.dropped.append(below)
                del obj[name]

    def metadata(self, obj: Json, path: str) -> None:
        metadata = obj.get("metadata")
        if isinstance(metadata, dict):
            prefix = f"{path}.metadata." if path else "metadata."
            errors = builtin.decode_at("meta/v1.ObjectMeta", metadata, path=prefix)
            self.dropped.extend(errors)


def apply_defaults(obj: Any, schema: Node) -> None:
    """Drop nulls that the schema neither allows nor replaces, then set defaults, in place."""
    _drop_nulls(obj, schema)
    _default(obj, schema)


def _drop_nulls(value: Any, schema: Node) -> None:
    if isinstance(value, dict):
        for name in list(value):
            sub = schema.properties.get(name) or schema.additional
            if sub is None:
                continue
            if value[name] is None:
                if not sub.nullable and not sub.has_default:
                    del value[name]
            else:
                _drop_nulls(value[name], sub)
    elif isinstance(value, list) and schema.items is not None:
        for item in value:
            _drop_nulls(item, schema.items)


def _default(value: Any, schema: Node) -> None:
    if isinstance(value, dict):
        for name, sub in schema.defaulting:
            if name not in value or (value[name] is None and not sub.nullable):
                value[name] = copy.deepcopy(sub.default)
        for name in value:
            sub = schema.properties.get(name)
            if sub is None and schema.additional is not None:
                sub = schema.additional
                if value[name] is None and not sub.nullable and sub.has_default:
                    value[name] = copy.deepcopy(sub.default)
            if sub is not None:
                _default(value[name], sub)
    elif isinstance(value, list) and schema.items is not None:
        items = schema.items
        for index, item in enumerate(value):
            if item is None and not items.nullable and items.has_default:
                value[index] = item = copy.deepcopy(items.default)
            _default(item, items)
