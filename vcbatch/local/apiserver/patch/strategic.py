"""Kubernetes' strategic merge patch: lists of objects merge by a key that the type defines.

Source of the rules: k8s.io/apimachinery `pkg/util/strategicpatch` and its documentation: `$patch: replace|delete|merge`
and `$retainKeys`, `$setElementOrder/LIST`, `$deleteFromPrimitiveList/LIST`.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import msgspec

from vcbatch.local.apiserver.apierrors import StatusError, bad_request
from vcbatch.local.apiserver.gojson import kind_of

Json = dict[str, Any]

_encode_sorted = msgspec.json.Encoder(order="sorted").encode

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"


def strategic_merge(target: Json, patch: Json, merge_keys: Mapping[str, str]) -> Json:
    """`target` with `patch` applied; neither is changed. `merge_keys` maps dotted list paths to their merge key ("" for
    merging lists of scalars); a list that isn't named is replaced. Raises 400 for an invalid directive."""
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
        raise _unknown_directive(directive, path, patch)
    if _RETAIN in patch:
        target = _retained(target, patch, path)
    _delete_scalars(target, patch, path, keys)
    orders = {key[len(_ORDER) :]: patch.pop(key) for key in [k for k in patch if k.startswith(_ORDER)]}
    for key, order in orders.items():
        if not isinstance(order, list):
            raise _bad_format("setElementOrder list", _join(path, _ORDER + key), order)
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


def _retained(target: Json, patch: Json, path: str) -> Json:
    """The keys of the target that `$retainKeys` keeps: it must name all keys that the patch sets."""
    retained = patch.pop(_RETAIN)
    if retained is None:
        return target
    if not isinstance(retained, list) or not all(isinstance(name, str) for name in retained):
        raise _bad_format("retainKeys", _join(path, _RETAIN), retained, wanted="a list of strings")
    names = set(retained)
    if any(key not in names and not key.startswith("$") for key in patch):
        raise bad_request("invalid patch format of retainKeys")
    return {key: value for key, value in target.items() if key in names}


def _delete_scalars(target: Json, patch: Json, path: str, keys: Mapping[str, str]) -> None:
    for name in [key for key in patch if key.startswith(_DELETE)]:
        gone = patch.pop(name)
        key = name[len(_DELETE) :]
        if keys.get(_join(path, key)) != "":
            raise bad_request("invalid patch format of primitive list")
        if not isinstance(gone, list):
            raise _bad_format("primitive list", _join(path, name), gone)
        if isinstance(target.get(key), list):
            named = {_identity(value) for value in gone}
            target[key] = [value for value in target[key] if _identity(value) not in named]


def _identity(value: Any) -> Hashable:
    """A key that is equal for equal JSON values and for no others, so that lists merge in linear time."""
    if isinstance(value, (dict, list)):
        return _encode_sorted(value)
    return type(value) is bool, value


def _merge_list(target: list[Any], patch: list[Any], path: str, keys: Mapping[str, str]) -> list[Any]:
    merge_key = keys[path]
    if not merge_key:
        named = {_identity(value): value for value in patch}
        others = [value for value in target if _identity(value) not in named]
        return _interleaved(others, [*named.values()], target, _identity)
    kept: list[Json] = []
    replace, deleted = False, set[Hashable]()
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
            deleted.add(_identity(item[merge_key]))
        elif directive not in (None, "merge"):
            raise _unknown_directive(directive, path, item)
        else:
            kept.append(item)
    if replace:
        return [_without_directives(item) for item in kept]

    def identity(item: Any) -> Hashable:
        return _identity(item.get(merge_key) if isinstance(item, dict) else item)

    def named_by(item: Json) -> Hashable:
        if merge_key not in item:
            raise _no_merge_key(item, merge_key)
        if item[merge_key] is None:
            raise bad_request(f"invalid patch: {path}: the merge key {merge_key} of an item is null")
        return _identity(item[merge_key])

    target = [old for old in target if not (isinstance(old, dict) and merge_key in old and identity(old) in deleted)]
    present = {identity(old): old for old in reversed(target) if isinstance(old, dict)}
    merged: dict[Hashable, Json] = {}
    for item in kept:
        key = named_by(item)
        old = merged.get(key, present.get(key))
        merged[key] = _without_directives(item) if old is None else _merge_map(dict(old), item, path, keys)
    others = [old for old in target if not (isinstance(old, dict) and identity(old) in merged)]
    return _interleaved(others, [*merged.values()], target, identity)


def _interleaved(
    others: list[Any], named: list[Any], live: list[Any], identity: Callable[[Any], Hashable]
) -> list[Any]:
    """The items that the patch doesn't name, merged into those that it names: both keep their order, and an unnamed
    item precedes a named one only where it did in `live`. So new items come first."""
    places: dict[Hashable, int] = {}
    for index, item in enumerate(live):
        places.setdefault(identity(item), index)
    result: list[Any] = []
    waiting = deque(others)
    for item in named:
        place = places.get(identity(item))
        while waiting and place is not None and places.get(identity(waiting[0]), place) < place:
            result.append(waiting.popleft())
        result.append(item)
    return [*result, *waiting]


def _bad_format(what: str, path: str, value: Any, *, wanted: str = "a list") -> StatusError:
    """400 with Kubernetes' message, and with the path, for a directive of the wrong type."""
    return bad_request(f"invalid patch format of {what}: {path}: expected {wanted}, got {kind_of(value)}")


def _unknown_directive(directive: Any, path: str, patch: Json) -> StatusError:
    field = _join(path, _DIRECTIVE)
    shown = directive if isinstance(directive, str) else go_map(directive)
    return bad_request(f"{field}: unknown patch type: {shown} in map: {go_map(patch)}")


def _no_merge_key(item: Json, merge_key: str) -> StatusError:
    # Kubernetes answers 500 for this, with its own message and without a field.
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


def _reorder(target: Json, key: str, order: list[Any], merge_key: str | None) -> None:
    """Sort the list as `order` says; items that it doesn't name keep their positions."""
    items = target.get(key)
    if not isinstance(items, list) or merge_key is None:
        return

    def identity(item: Any) -> Hashable:
        return _identity(item.get(merge_key) if merge_key and isinstance(item, dict) else item)

    ranked = {identity(item): index for index, item in enumerate(order)}
    names = [identity(item) for item in items]
    named = sorted((at for at, name in enumerate(names) if name in ranked), key=lambda at: ranked[names[at]])
    following = iter(named)
    target[key] = [items[next(following)] if names[at] in ranked else item for at, item in enumerate(items)]


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
