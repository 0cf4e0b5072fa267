"""Sets of fields: paths with the elements of `FieldsV1`.

An element is `f:NAME` (a key of a map), `k:{…}` (an item of a map list, by its keys) or `v:VALUE` (an item of a set).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Path = tuple[str, ...]
FieldSet = frozenset[Path]
Json = dict[str, Any]

_MAX_DEPTH = 100


class MalformedFields(ValueError):
    """An invalid `fieldsV1`."""


def to_json(fields: FieldSet) -> Json:
    """The set as `fieldsV1`."""
    root: Json = {}
    for path in sorted(fields):
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return _without_lone_dots(root)


def _without_lone_dots(node: Json) -> Json:
    if set(node) == {"."}:
        return {}
    return {key: _without_lone_dots(value) if key != "." else {} for key, value in node.items()}


def from_json(fields: Any) -> FieldSet:
    """The set that a `fieldsV1` represents. Raises `MalformedFields`."""
    found: set[Path] = set()
    _read(fields, (), found)
    return frozenset(found)


def _read(node: Any, path: Path, found: set[Path]) -> None:
    if not isinstance(node, dict) or len(path) > _MAX_DEPTH:
        raise MalformedFields("fieldsV1 must be objects in objects")
    if not node and path:
        found.add(path)
    for element, below in node.items():
        if element == ".":
            found.add(path)
        elif element[:2] in ("f:", "k:", "v:", "i:"):
            _read(below, (*path, element), found)
        else:
            raise MalformedFields(f"fieldsV1 has no element {element!r}")


def shown(path: Path) -> str:
    """A path in the form of conflict messages: `.spec.containers[name="c"].image`."""
    out = ""
    for element in path:
        kind, value = element[0], element[2:]
        match kind:
            case "f":
                out += f".{value}"
            case "k":
                keys: Mapping[str, Any] = json.loads(value)
                out += "[" + ",".join(f"{key}={compact(keys[key])}" for key in sorted(keys)) + "]"
            case "v":
                out += f"[={value}]"
            case _:
                out += f"[{value}]"
    return out


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def covers(fields: FieldSet, path: Path) -> bool:
    """Whether the set has `path` or something below it."""
    size = len(path)
    return any(one[:size] == path for one in fields)
