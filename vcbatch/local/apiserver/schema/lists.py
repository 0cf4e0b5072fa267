"""Lists that are sets or maps. Source: apiextensions-apiserver `pkg/apiserver/schema/listtype`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vcbatch.api import field_errors
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.schema.compare import canonical
from vcbatch.local.apiserver.schema.structural import Json, Node


def validate_lists(value: Any, schema: Node) -> list[FieldError]:
    """Errors of duplicates in lists that are sets or maps, at this level and below."""
    return list(_list_errors(value, schema, "")) if schema.has_lists else []


def _list_errors(value: Any, node: Node, path: str) -> Iterator[FieldError]:
    if isinstance(value, list):
        if node.list_type == "set":
            yield from _duplicates([(item, item) for item in value], path)
        elif node.list_type == "map":
            yield from _duplicates([(_keys_of(item, node), item) for item in value if isinstance(item, dict)], path)
        if node.items is not None and node.items.has_lists:
            for index, item in enumerate(value):
                yield from _list_errors(item, node.items, f"{path}[{index}]")
    elif isinstance(value, dict):
        for name in sorted(value):
            sub = node.properties.get(name)
            if sub is not None:
                if sub.has_lists:
                    yield from _list_errors(value[name], sub, f"{path}.{name}" if path else name)
            elif node.additional is not None and node.additional.has_lists:
                yield from _list_errors(value[name], node.additional, f"{path}[{name}]")


def _duplicates(keyed: Sequence[tuple[Any, Any]], path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, (key, _item) in enumerate(keyed):
        text = canonical(key)
        if text in seen:
            yield field_errors.duplicate(f"{path}[{index}]", key)
        seen.add(text)


def _keys_of(item: Json, node: Node) -> Json:
    return {key: item[key] for key in node.list_map_keys if key in item}
