"""Validation of an applied configuration before it is merged: values must have the types of the schema, and a keyed
list no duplicates.

Source of the rules and of the texts: sigs.k8s.io/structured-merge-diff `typed/validate.go` and `typed/helpers.go`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from vcbatch.local.apiserver.apply.merge import items
from vcbatch.local.apiserver.apply.shapes import FREE, Shape

_NUMBERS = (int, float)


def errors(value: Any, shape: Shape, path: str = "") -> Iterator[str]:
    """`.spec.replicas: expected numeric (int or float), got string`, one for each value that isn't of its type."""
    if value is None or shape is FREE:
        return
    expected = shape.form
    if expected == "map" and not isinstance(value, dict):
        yield f"{path}: expected map, got {_held(value)}"
    elif expected == "list" and not isinstance(value, list):
        yield f"{path}: expected list, got {_held(value)}"
    elif expected == "string" and not isinstance(value, str):
        yield f"{path}: expected string, got {_shown(value)}"
    elif expected == "boolean" and not isinstance(value, bool):
        yield f"{path}: expected boolean, got {_shown(value)}"
    elif expected == "numeric" and (not isinstance(value, _NUMBERS) or isinstance(value, bool)):
        yield f"{path}: expected numeric (int or float), got {_kind(value)}"
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from errors(item, shape.child(name), f"{path}.{name}")
    elif isinstance(value, list):
        yield from _list_errors(value, shape, path)


def _list_errors(value: list[Any], shape: Shape, path: str) -> Iterator[str]:
    if shape.whole:
        for index, item in enumerate(value):
            yield from errors(item, shape.item(), f"{path}[{index}]")
        return
    seen: set[str] = set()
    for element, item in items(value, shape):
        name = _element(element)
        if element in seen:
            yield f"{path}: duplicate entries for key {name}"
        seen.add(element)
        if shape.keys:
            yield from errors(item, shape.item(), f"{path}{name}")


def _element(element: str) -> str:
    """An item of a list in the form of paths: `[name="c"]`, `[="a.b/c"]`."""
    kind, _, text = element.partition(":")
    if kind == "v":
        return f"[={text}]"
    keys = json.loads(text)
    return "[" + ",".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in keys.items()) + "]"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "list" if isinstance(value, list) else "map"


def _held(value: Any) -> str:
    """A value as Go prints a pointer to it."""
    return "&{" + _go(value) + "}"


def _shown(value: Any) -> str:
    return f"&value.valueUnstructured{{Value:{_go(value)}}}"


def _go(value: Any) -> str:
    if isinstance(value, list):
        return "[" + " ".join(_go(item) for item in value) + "]"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_go(item)}" for key, item in sorted(value.items())) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)
