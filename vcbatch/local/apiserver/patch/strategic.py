"""Kubernetes' strategic merge patch: lists of objects merge by a key that the type names.

Source of the rules: k8s.io/apimachinery `pkg/util/strategicpatch` and its documentation: `$patch: replace|delete|merge`
and `$retainKeys`, `$setElementOrder/LIST`, `$deleteFromPrimitiveList/LIST`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from vcbatch.local.apiserver.errors import StatusError, bad_request

Json = dict[str, Any]

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"


def strategic_merge(target: Json, patch: Json, merge_keys: Mapping[str, str]) -> Json:
    """`target` with `patch` applied; neither is changed. `merge_keys` maps dotted list paths to their merge key
    ("" for merging lists of scalars); a list that isn't named is replaced. Raises 400 for a faulty directive."""
    return _merge_map(copy.deepcopy(target), copy.deepcopy(patch), "", merge_keys)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _merge_map(target: Json, patch: Json, path: str, keys: Mapping[str, str]) -> Json:
    directive = patch.pop(_DIRECTIVE, None)
    if directive == "replace":
        return _without_directives(patch)
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise _unknown_directive(directive, patch)
    retained = patch.pop(_RETAIN, None)
    if retained is not None:
        if not isinstance(retained, list) or not set(patch) - {_ORDER, _DELETE} <= {*retained, *_directives(patch)}:
            raise bad_request("invalid patch format of retainKeys")
        target = {key: value for key, value in target.items() if key in retained}
    _delete_scalars(target, patch, path, keys)
    orders = {key[len(_ORDER) :]: patch.pop(key) for key in [k for k in patch if k.startswith(_ORDER)]}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif key not in target:
            target[key] = _without_directives(value)
        elif isinstance(value, dict) and isinstance(target[key], dict):
            target[key] = _merge_map(target[key], value, _join(path, key), keys)
        elif isinstance(value, list) and isinstance(target[key], list) and _join(path, key) in keys:
            target[key] = _merge_list(target[key], value, _join(path, key), keys)
        else:
            target[key] = _without_directives(value)
    for key, order in orders.items():
        _reorder(target, key, order, keys.get(_join(path, key)))
    return target


def _directives(patch: Json) -> set[str]:
    return {key for key in patch if key.startswith("$")}


def _delete_scalars(target: Json, patch: Json, path: str, keys: Mapping[str, str]) -> None:
    for name in [key for key in patch if key.startswith(_DELETE)]:
        gone = patch.pop(name)
        key = name[len(_DELETE) :]
        if keys.get(_join(path, key)) != "":
            raise bad_request("invalid patch format of primitive list")
        if isinstance(target.get(key), list):
            target[key] = [value for value in target[key] if value not in gone]


def _merge_list(target: list[Any], patch: list[Any], path: str, keys: Mapping[str, str]) -> list[Any]:
    merge_key = keys[path]
    if not merge_key:
        named = [value for index, value in enumerate(patch) if value not in patch[:index]]
        return _interleaved([value for value in target if value not in named], named, target, lambda value: value)
    kept: list[Json] = []
    replace = False
    for item in patch:
        if not isinstance(item, dict):
            raise bad_request(f"expecting {path} to be a list of objects")
        directive = item.get(_DIRECTIVE)
        if directive == "replace":
            replace = True
            if merge_key in item:
                kept.append(_without_directives(item))
        elif directive == "delete":
            if merge_key not in item:
                raise _no_merge_key(item, merge_key)
            target = [old for old in target if not _keyed(old, merge_key, item[merge_key])]
        elif directive not in (None, "merge"):
            raise _unknown_directive(directive, item)
        else:
            kept.append(item)
    if replace:
        return [_without_directives(item) for item in kept]
    merged: list[Any] = []
    for item in kept:
        if merge_key not in item:
            raise _no_merge_key(item, merge_key)
        old = next((old for old in target if _keyed(old, merge_key, item[merge_key])), None)
        merged.append(_without_directives(item) if old is None else _merge_map(dict(old), item, path, keys))
    named = [item[merge_key] for item in merged]
    others = [old for old in target if not (isinstance(old, dict) and old.get(merge_key) in named)]
    return _interleaved(others, merged, target, lambda item: item.get(merge_key) if isinstance(item, dict) else item)


def _interleaved(others: list[Any], named: list[Any], live: list[Any], identity: Callable[[Any], Any]) -> list[Any]:
    """What the patch doesn't name among what it names: both keep their order, and one of the others comes before a
    named item only where it stood before it. So what is new comes first."""
    places = {}
    for index, item in enumerate(live):
        if isinstance(key := identity(item), (str, int)):
            places.setdefault(key, index)
    result: list[Any] = []
    waiting = list(others)
    for item in named:
        place = places.get(identity(item))
        while waiting and place is not None and places.get(identity(waiting[0]), place) < place:
            result.append(waiting.pop(0))
        result.append(item)
    return [*result, *waiting]


def _unknown_directive(directive: Any, patch: Json) -> StatusError:
    # Kubernetes answers 500 for this and the next: its own words, and nobody's field to point at.
    return StatusError(500, "", f"unknown patch type: {directive} in map: {go_map(patch)}")


def _no_merge_key(item: Json, merge_key: str) -> StatusError:
    return StatusError(500, "", f"map: {go_map(item)} does not contain declared merge key: {merge_key}")


def go_map(value: Any) -> str:
    """A value as Go's %v prints a decoded JSON map."""
    if isinstance(value, Mapping):
        return "map[" + " ".join(f"{key}:{go_map(item)}" for key, item in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_map, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def _keyed(item: Any, merge_key: str, value: Any) -> bool:
    return isinstance(item, dict) and item.get(merge_key) == value


def _reorder(target: Json, key: str, order: Any, merge_key: str | None) -> None:
    """Sort the list as `order` says; what the order doesn't name keeps its place behind its former neighbour."""
    items = target.get(key)
    if not isinstance(items, list) or not isinstance(order, list) or merge_key is None:
        return

    def identity(item: Any) -> Any:
        return item.get(merge_key) if merge_key and isinstance(item, dict) else item

    wanted = [identity(item) for item in order]
    ranked = {value: index for index, value in enumerate(wanted) if not isinstance(value, (dict, list))}
    named = sorted((item for item in items if identity(item) in ranked), key=lambda item: ranked[identity(item)])
    result: list[Any] = []
    queue = iter(named)
    pending = next(queue, None)
    for item in items:
        if identity(item) in ranked:
            if pending is not None:
                result.append(pending)
                pending = next(queue, None)
        else:
            result.append(item)
    target[key] = result


def _without_directives(value: Any) -> Any:
    if isinstance(value, list):
        return [
            _without_directives(item)
            for item in value
            if not (isinstance(item, dict) and item.get(_DIRECTIVE) == "delete")
        ]
    if isinstance(value, dict):
        return {
            key: _without_directives(item)
            for key, item in value.items()
            if not key.startswith(("$patch", _RETAIN, _ORDER, _DELETE)) and item is not None
        }
    return value
