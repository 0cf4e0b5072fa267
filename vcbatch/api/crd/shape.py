"""Whether JSON has the types of a schema: the errors of a CRD's schema check, for callers that validate an object
before or without it. Unknown keys, enumerations and ranges aren't checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from vcbatch.api import field_errors
from vcbatch.api.field_errors import FieldError
from vcbatch.api.model import Json

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_MOST: Final = 20


def shape_errors(value: Any, schema: Json, path: str, *, given: Callable[[Any], Any] | None = None) -> list[FieldError]:
    """Errors for values of another type than `schema` requires, at most twenty. A null counts as an absent value.
    `given` returns what the message shows for a value; without it that is the name of its type, as in Kubernetes."""
    found: list[FieldError] = []
    if _fits(value, schema):
        return found
    for error in _errors(value, schema, path, given or _type_name):
        found.append(error)
        if len(found) == _MOST:
            break
    return found


def _fits(value: Any, schema: Json) -> bool:
    """Whether `_errors` would find nothing, which is nearly always so, and cheaper to check without a path for every
    value."""
    if value is None:
        return True
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, (int, float, str)) and not isinstance(value, bool)
    wanted = schema.get("type")
    if wanted is not None and not _is(value, wanted):
        return False
    if isinstance(value, dict):
        properties: Json = schema.get("properties") or {}
        others: Any = schema.get("additionalProperties")
        for key, item in cast(Json, value).items():
            below = properties.get(key, others)
            if isinstance(below, dict) and not _fits(item, cast(Json, below)):
                return False
    elif isinstance(value, list) and "items" in schema:
        items: Json = schema["items"]
        return all(item is not None and _fits(item, items) for item in cast("list[Any]", value))
    return True


def _errors(value: Any, schema: Json, path: str, given: Callable[[Any], Any]) -> Iterator[FieldError]:
    if value is None:
        return
    wanted = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, (int, float, str)) or isinstance(value, bool):
            yield field_errors.invalid(path, given(value), "must be a number or a string")
        return
    if wanted is not None and not _is(value, wanted):
        yield field_errors.invalid(path, given(value), f"must be of type {wanted}")
    elif isinstance(value, dict):
        yield from _object_errors(cast(Json, value), schema, path, given)
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(cast("list[Any]", value)):
            if item is None:
                yield field_errors.invalid(f"{path}[{index}]", "null", "must not be null")
            yield from _errors(item, schema["items"], f"{path}[{index}]", given)


def _object_errors(value: Json, schema: Json, path: str, given: Callable[[Any], Any]) -> Iterator[FieldError]:
    properties: Json = schema.get("properties") or {}
    others: Any = schema.get("additionalProperties")
    for key, item in value.items():
        if key in properties:
            yield from _errors(item, properties[key], f"{path}.{key}", given)
        elif isinstance(others, dict):
            yield from _errors(item, cast(Json, others), f"{path}.{key}", given)


def _is(value: Any, wanted: str) -> bool:
    return isinstance(value, _TYPES[wanted]) and (wanted == "boolean" or not isinstance(value, bool))


def _type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return next(name for name, types in _TYPES.items() if isinstance(value, types))
