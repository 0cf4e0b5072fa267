"""JSON patch (RFC 6902) over plain JSON, with the two liberties that the Go library takes: none is created by `-`
on a missing list, and `remove` of what isn't there is a fault. `copy` is bounded, since each one may double the object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

Json = dict[str, Any]

MAXIMUM_OPERATIONS = 10_000
MAXIMUM_COPIED = 3 * 1024 * 1024
"""How many bytes of JSON the `copy` operations of one patch may add. Source: k8s.io/apiserver `pkg/server/config.go`,
JSONPatchMaxCopyBytes."""
_LONGEST_INDEX = 18

_encode = msgspec.json.Encoder().encode


class JsonPatchError(Exception):
    """An operation that can't be carried out: a missing path, a failed test, an unknown operation."""


def _copied(value: Any) -> Any:
    """A copy of plain JSON, several times as fast as a general one."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


class CopyTooLarge(JsonPatchError):
    """The `copy` operations add more than `MAXIMUM_COPIED` bytes."""


class _Missing(JsonPatchError):
    """A path that leads nowhere."""


def _pointer(path: Any) -> list[str]:
    if not isinstance(path, str) or (path and not path.startswith("/")):
        raise JsonPatchError(f"invalid path {path!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _index(items: list[Any], part: str, *, insert: bool) -> int:
    if insert and part == "-":
        return len(items)
    digits = part.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_INDEX):
        raise JsonPatchError(f"invalid list index {part!r}")
    index = int(part)
    if index < 0:
        index += len(items)
    if not 0 <= index < len(items) + (1 if insert else 0):
        raise JsonPatchError(f"list index {part} is out of bounds")
    return index


def _child(node: Any, part: str) -> Any:
    if isinstance(node, dict):
        if part not in node:
            raise _Missing(f"missing path {part!r}")
        return node[part]
    if isinstance(node, list):
        return node[_index(node, part, insert=False)]
    raise JsonPatchError(f"path goes through a value at {part!r}")


def _find(document: Any, tokens: Sequence[str]) -> Any:
    for part in tokens:
        document = _child(document, part)
    return document


def _add(document: Any, tokens: Sequence[str], value: Any) -> Any:
    if not tokens:
        raise JsonPatchError("the whole document can't be added")
    parent = _find(document, tokens[:-1])
    if isinstance(parent, dict):
        parent[tokens[-1]] = value
    elif isinstance(parent, list):
        parent.insert(_index(parent, tokens[-1], insert=True), value)
    else:
        raise JsonPatchError("the parent of the path is no object or list")
    return document


def _remove(document: Any, tokens: Sequence[str]) -> Any:
    if not tokens:
        raise JsonPatchError("the whole document can't be removed")
    parent = _find(document, tokens[:-1])
    _child(parent, tokens[-1])
    if isinstance(parent, dict):
        del parent[tokens[-1]]
    else:
        del parent[_index(parent, tokens[-1], insert=False)]
    return document


def _same(left: Any, right: Any) -> bool:
    """JSON equality: unlike Python's, true isn't 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return (type(left) is type(right) and left == right) or (
        isinstance(left, (int, float)) and isinstance(right, (int, float)) and left == right
    )


def _source(document: Any, operation: Json) -> Any:
    """What a `copy` copies: Go's library copies null from where nothing is."""
    *above, last = _pointer(operation.get("from")) or [""]
    parent = _find(document, above)
    return parent.get(last) if isinstance(parent, dict) else _child(parent, last)


def _apply(document: Any, operation: Any) -> Any:
    if not isinstance(operation, dict):
        raise JsonPatchError("an operation must be an object")
    tokens = _pointer(operation.get("path"))
    match operation.get("op"):
        case "add":
            return _add(document, tokens, _copied(operation.get("value")))
        case "remove":
            return _remove(document, tokens)
        case "replace":
            if not tokens:
                return _copied(operation.get("value"))
            # Go's library replaces what isn't there, too.
            parent = _find(document, tokens[:-1])
            if isinstance(parent, dict):
                parent[tokens[-1]] = _copied(operation.get("value"))
            elif isinstance(parent, list):
                parent[_index(parent, tokens[-1], insert=False)] = _copied(operation.get("value"))
            else:
                raise JsonPatchError("the parent of the path is no object or list")
            return document
        case "move":
            source = _pointer(operation.get("from"))
            value = _find(document, source)
            return _add(_remove(document, source), tokens, value)
        case "copy":
            return _add(document, tokens, _copied(_source(document, operation)))
        case "test":
            try:
                found = _find(document, tokens)
            except JsonPatchError:
                # Go's library lets a test of null succeed where there is nothing.
                found = None
                if operation.get("value") is not None:
                    raise
            if not _same(found, operation.get("value")):
                raise JsonPatchError(f"testing value {operation.get('path')} failed: test failed")
            return document
        case other:
            raise JsonPatchError(f"unexpected operation {other!r}")


def _applied(document: Any, operation: Any) -> Any:
    """As `_apply`, with the words of Go's library for a path that isn't there."""
    try:
        return _apply(document, operation)
    except _Missing as error:
        kind = operation.get("op")
        text = f'{kind} operation does not apply: doc is missing path: "{operation.get("path")}": missing value'
        raise JsonPatchError(text if kind in ("add", "remove", "replace") else str(error)) from error


def apply(document: Json, operations: Sequence[Any]) -> Any:
    """`document` after all operations, or `JsonPatchError`; the given document isn't changed."""
    if len(operations) > MAXIMUM_OPERATIONS:
        raise JsonPatchError(
            f"The allowed maximum operations in a JSON patch is {MAXIMUM_OPERATIONS}, got {len(operations)}"
        )
    result: Any = _copied(document)
    copied = 0
    try:
        for operation in operations:
            if isinstance(operation, dict) and operation.get("op") == "copy":
                copied += len(_encode(_source(result, operation)))
                if copied > MAXIMUM_COPIED:
                    raise CopyTooLarge(
                        f"the copy operations of the patch add more than {MAXIMUM_COPIED} bytes to the object"
                    )
            result = _applied(result, operation)
    except RecursionError:
        raise JsonPatchError("the patched object nests too deeply") from None
    return result
