"""JSON patch (RFC 6902) over plain JSON, with two deviations of the Go library: `-` on a missing list creates none, and
`remove` of a missing value is an error. `copy` is bounded, since each one may double the object, and so are insertions
into and removals from lists, each of which moves all elements behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

Json = dict[str, Any]

MAXIMUM_OPERATIONS = 10_000
MAXIMUM_COPIED = 3 * 1024 * 1024
"""The number of bytes of JSON that the `copy` operations of one patch may add. Source: k8s.io/apiserver
`pkg/server/config.go`, JSONPatchMaxCopyBytes."""
MAXIMUM_MOVED = 100_000_000
"""The number of list elements that the operations of one patch may move by one position: less than 0.1 s. Without this
bound, `MAXIMUM_OPERATIONS` insertions at the head of the longest list that fits into an object move 10,000 million."""
_LONGEST_INDEX = 18

_encode = msgspec.json.Encoder().encode


class JsonPatchError(Exception):
    """An operation that can't be executed: a missing path, a failed test, an unknown operation."""


def _copied(value: Any) -> Any:
    """A copy of plain JSON, several times as fast as a general one."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


class TooExpensive(JsonPatchError):
    """The operations add more than `MAXIMUM_COPIED` bytes by copies, or move more than `MAXIMUM_MOVED` elements."""


class _Moves:
    """Counts the list elements that insertions and removals move."""

    def __init__(self) -> None:
        self._moved = 0

    def insert(self, items: list[Any], index: int, value: Any) -> None:
        self._count(len(items) - index)
        items.insert(index, value)

    def remove(self, items: list[Any], index: int) -> None:
        self._count(len(items) - index - 1)
        del items[index]

    def _count(self, elements: int) -> None:
        self._moved += elements
        if self._moved > MAXIMUM_MOVED:
            raise TooExpensive(f"the operations of the patch move more than {MAXIMUM_MOVED} elements of lists")


class _Missing(JsonPatchError):
    """A path that doesn't exist."""


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


def _add(document: Any, tokens: Sequence[str], value: Any, moves: _Moves) -> Any:
    if not tokens:
        raise JsonPatchError("the whole document can't be added")
    parent = _find(document, tokens[:-1])
    if isinstance(parent, dict):
        parent[tokens[-1]] = value
    elif isinstance(parent, list):
        moves.insert(parent, _index(parent, tokens[-1], insert=True), value)
    else:
        raise JsonPatchError("the parent of the path is no object or list")
    return document


def _remove(document: Any, tokens: Sequence[str], moves: _Moves) -> Any:
    if not tokens:
        raise JsonPatchError("the whole document can't be removed")
    parent = _find(document, tokens[:-1])
    _child(parent, tokens[-1])
    if isinstance(parent, dict):
        del parent[tokens[-1]]
    else:
        moves.remove(parent, _index(parent, tokens[-1], insert=False))
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
    """The value that a `copy` copies: Go's library copies null from a missing path."""
    *above, last = _pointer(operation.get("from")) or [""]
    parent = _find(document, above)
    return parent.get(last) if isinstance(parent, dict) else _child(parent, last)


def _apply(document: Any, operation: Any, moves: _Moves) -> Any:
    if not isinstance(operation, dict):
        raise JsonPatchError("an operation must be an object")
    tokens = _pointer(operation.get("path"))
    match operation.get("op"):
        case "add":
            return _add(document, tokens, _copied(operation.get("value")), moves)
        case "remove":
            return _remove(document, tokens, moves)
        case "replace":
            if not tokens:
                return _copied(operation.get("value"))
            # Go's library replaces missing values, too.
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
            return _add(_remove(document, source, moves), tokens, value, moves)
        case "copy":
            return _add(document, tokens, _copied(_source(document, operation)), moves)
        case "test":
            try:
                found = _find(document, tokens)
            except JsonPatchError:
                # In Go's library a test of null succeeds for a missing value.
                found = None
                if operation.get("value") is not None:
                    raise
            if not _same(found, operation.get("value")):
                raise JsonPatchError(f"testing value {operation.get('path')} failed: test failed")
            return document
        case other:
            raise JsonPatchError(f"unexpected operation {other!r}")


def _applied(document: Any, operation: Any, moves: _Moves) -> Any:
    """As `_apply`, with the messages of Go's library for a missing path."""
    try:
        return _apply(document, operation, moves)
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
    copied, moves = 0, _Moves()
    try:
        for operation in operations:
            if isinstance(operation, dict) and operation.get("op") == "copy":
                copied += len(_encode(_source(result, operation)))
                if copied > MAXIMUM_COPIED:
                    raise TooExpensive(
                        f"the copy operations of the patch add more than {MAXIMUM_COPIED} bytes to the object"
                    )
            result = _applied(result, operation, moves)
    except RecursionError:
        raise JsonPatchError("the patched object nests too deeply") from None
    return result
