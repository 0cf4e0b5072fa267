"""Whether a schema is structural, and whether its contents are valid.

Source: apiextensions-apiserver `pkg/apiserver/schema` (structural rules, KEP-1769) and
`pkg/apis/apiextensions/validation`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from vcbatch.api import field_errors
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.crds.costs import cost_errors
from vcbatch.local.apiserver.registry import Json
from vcbatch.local.apiserver.schema import cel
from vcbatch.local.apiserver.schema.patterns import PatternError, regular_expression
from vcbatch.local.apiserver.schema.structural import compile_schema
from vcbatch.local.apiserver.schema.validation import validate_schema

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties")
_FORBIDDEN_NESTED = {
    "type": "empty",
    "additionalProperties": "undefined",
    "default": "undefined",
    "title": "empty",
    "description": "empty",
    "nullable": "false",
    "externalDocs": "undefined",
    "x-kubernetes-preserve-unknown-fields": "false",
    "x-kubernetes-embedded-resource": "false",
    "x-kubernetes-int-or-string": "false",
    "x-kubernetes-list-map-keys": "empty",
    "x-kubernetes-list-type": "undefined",
    "x-kubernetes-map-type": "undefined",
    "x-kubernetes-validations": "empty",
}
"""Structural keywords that are forbidden inside of allOf, anyOf, oneOf and not; each with the value it must have
there."""
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
"""The only accepted use of types in alternatives: an older way to declare an int-or-string."""
_MAX_DEPTH = 60
_MAX_NODES = 20_000


def schema_errors(schema: Json, path: str) -> list[FieldError]:
    """The errors of the schema of one version, which is at `path`."""
    size = _size(schema, 0)
    if size is None:
        return [field_errors.forbidden(path, f"must not be nested deeper than {_MAX_DEPTH} levels")]
    if size > _MAX_NODES:
        return [field_errors.forbidden(path, f"must not have more than {_MAX_NODES} levels and alternatives")]
    return [*_errors_of(msgspec.json.encode(schema), path)]


@functools.lru_cache(maxsize=32)
def _errors_of(encoded: bytes, path: str) -> Sequence[FieldError]:
    """Cached: the errors depend on the text alone, and most updates of a definition leave its schemas unchanged."""
    schema: Json = msgspec.json.decode(encoded)
    found = [*_declared_errors(schema, path, root=True)]
    structural = sorted(_structural_errors(schema, path, "root"), key=str)
    return (*found, *structural) or (*cost_errors(schema, path), *_default_errors(schema, path))


def _size(schema: Any, depth: int) -> int | None:
    if depth > _MAX_DEPTH:
        return None
    total = 1
    for sub in _children(schema):
        size = _size(sub, depth + 1)
        if size is None:
            return None
        total += size
    return total


def _children(schema: Any) -> Iterator[Json]:
    if not isinstance(schema, dict):
        return
    yield from (sub for sub in (schema.get("properties") or {}).values() if isinstance(sub, dict))
    for key in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(key), dict):
            yield schema[key]
    for key in ("allOf", "anyOf", "oneOf"):
        yield from (sub for sub in schema.get(key) or () if isinstance(sub, dict))


def _declared_errors(schema: Json, path: str, *, root: bool = False) -> Iterator[FieldError]:
    """Errors of keywords that no schema of a definition may have, whatever its structure."""
    if root and schema.get("nullable") is True:
        yield field_errors.forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    yield from _keyword_errors(schema, path)
    yield from _list_errors(schema, path)
    yield from _rule_errors(schema, path)
    for below, sub in _below(schema, path):
        yield from _declared_errors(sub, below)


def _below(schema: Json, path: str) -> Iterator[tuple[str, Json]]:
    for name, sub in sorted((schema.get("properties") or {}).items()):
        yield f"{path}.properties[{name}]", sub
    for key in ("additionalProperties", "items", "not"):
        if isinstance(schema.get(key), dict):
            yield f"{path}.{key}", schema[key]
    for key in ("allOf", "anyOf", "oneOf"):
        for index, sub in enumerate(schema.get(key) or ()):
            yield f"{path}.{key}[{index}]", sub


def _keyword_errors(schema: Json, path: str) -> Iterator[FieldError]:
    for key in _UNSUPPORTED:
        if schema.get(key):
            yield field_errors.forbidden(f"{path}.{key}", f"{key} is not supported")
    type_ = schema.get("type") or ""
    if type_ == "null":
        yield field_errors.forbidden(f"{path}.type", "type cannot be set to null")
    elif type_ and type_ not in _TYPES:
        yield field_errors.unsupported(f"{path}.type", type_, _TYPES)
    if isinstance(schema.get("items"), list):
        yield field_errors.forbidden(f"{path}.items", "items must be a schema object and not an array")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield field_errors.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    if schema.get("uniqueItems") is True:
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield field_errors.forbidden(f"{path}.uniqueItems", detail)
    additional = schema.get("additionalProperties")
    if additional is False:
        detail = "additionalProperties cannot be set to false"
        yield field_errors.forbidden(f"{path}.additionalProperties", detail)
    elif additional is not None and schema.get("properties"):
        detail = "additionalProperties and properties are mutual exclusive"
        yield field_errors.forbidden(f"{path}.additionalProperties", detail)


_ROLES = {
    "root": "at the root",
    "item": "for specified array items",
    "field": "for specified object fields",
}


def _structural_errors(schema: Json, path: str, role: str) -> Iterator[FieldError]:
    """Errors where the schema isn't structural. `role`: root, item or field."""
    if schema.get("type") == "array" and not isinstance(schema.get("items"), dict):
        yield field_errors.required(f"{path}.items", "must be specified")
    if role == "root" and schema.get("additionalProperties") not in (None, False):
        yield field_errors.forbidden(f"{path}.additionalProperties", "must not be used at the root")
    yield from _type_errors(schema, path, role)
    yield from _metadata_errors(schema, path, role)
    yield from _value_errors(schema, path, schema)
    if isinstance(schema.get("items"), dict):
        yield from _structural_errors(schema["items"], f"{path}.items", "item")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _structural_errors(schema["additionalProperties"], f"{path}.additionalProperties", "field")
    for name, sub in (schema.get("properties") or {}).items():
        yield from _structural_errors(sub, f"{path}.properties[{name}]", "field")


def _type_errors(schema: Json, path: str, role: str) -> Iterator[FieldError]:
    type_ = schema.get("type") or ""
    whole_or_text = schema.get("x-kubernetes-int-or-string") is True
    keeps = schema.get("x-kubernetes-preserve-unknown-fields") is True
    embedded = schema.get("x-kubernetes-embedded-resource") is True
    for key, said in (("preserve-unknown-fields", keeps), ("embedded-resource", embedded)):
        if whole_or_text and said:
            detail = "must be false if x-kubernetes-int-or-string is true"
            yield field_errors.invalid(f"{path}.x-kubernetes-{key}", True, detail)
    if whole_or_text and type_:
        yield field_errors.invalid(f"{path}.type", type_, "must be empty if x-kubernetes-int-or-string is true")
    if embedded:
        detail = "must be object if x-kubernetes-embedded-resource is true"
        if not type_:
            yield field_errors.required(f"{path}.type", detail)
        elif type_ != "object":
            yield field_errors.invalid(f"{path}.type", type_, detail)
        if schema.get("additionalProperties") not in (None, False):
            detail = "must not be used if x-kubernetes-embedded-resource is set"
            yield field_errors.forbidden(f"{path}.additionalProperties", detail)
        if not keeps and not schema.get("properties"):
            detail = "must not be empty if x-kubernetes-embedded-resource is true without "
            detail += "x-kubernetes-preserve-unknown-fields"
            yield field_errors.required(f"{path}.properties", detail)
    elif not type_ and not whole_or_text and not keeps:
        yield field_errors.required(f"{path}.type", f"must not be empty {_ROLES[role]}")
    if role == "root" and type_ and type_ != "object":
        yield field_errors.invalid(f"{path}.type", type_, "must be object at the root")


def _metadata_errors(schema: Json, path: str, role: str) -> Iterator[FieldError]:
    """Errors of the schemas of apiVersion, kind and metadata: of metadata, only the names may be restricted."""
    if role != "root" and schema.get("x-kubernetes-embedded-resource") is not True:
        return
    properties: Json = schema.get("properties") or {}
    for key in ("apiVersion", "kind"):
        if key in properties and properties[key].get("type") != "string":
            yield field_errors.invalid(
                f"{path}.properties[{key}].type", properties[key].get("type") or "", "must be string"
            )
    metadata = properties.get("metadata")
    if metadata is None:
        return
    at = f"{path}.properties[metadata]"
    if metadata.get("type") != "object":
        yield field_errors.invalid(f"{at}.type", metadata.get("type") or "", "must be object")
    restricted = set(metadata.get("properties") or {})
    further = {key for key, value in metadata.items() if value} - {"type", "properties", "default"}
    if role == "root" and (further or not restricted <= {"name", "generateName"}):
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield field_errors.forbidden(at, detail)


def _value_errors(schema: Json, path: str, outer: Json) -> Iterator[FieldError]:
    """Errors of the alternatives of one level, which constrain values whose structure `outer` defines."""
    pattern = schema.get("pattern") or ""
    try:
        regular_expression(pattern)
    except PatternError as error:
        detail = f"must be a valid regular expression, but isn't: {error}"
        yield field_errors.invalid(f"{path}.pattern", pattern, detail)
    for key in ("allOf", "anyOf", "oneOf"):
        if key == "anyOf" and schema.get("anyOf") == _INT_OR_STRING:
            continue
        for index, sub in enumerate(schema.get(key) or ()):
            yield from _nested_errors(sub, f"{path}.{key}[{index}]", outer)
    if isinstance(schema.get("not"), dict):
        yield from _nested_errors(schema["not"], f"{path}.not", outer)


def _list_errors(schema: Json, path: str) -> Iterator[FieldError]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if kind is not None and kind not in ("atomic", "set", "map"):
        yield field_errors.unsupported(f"{path}.x-kubernetes-list-type", kind, ("atomic", "set", "map"))
    if kind is not None and schema.get("type") != "array":
        yield field_errors.invalid(
            f"{path}.type", schema.get("type") or "", "must be array if x-kubernetes-list-type is specified"
        )
    if keys and kind != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield field_errors.invalid(f"{path}.x-kubernetes-list-type", kind or "", detail)
    if kind == "map":
        yield from _map_list_errors(schema, keys, path)
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is not None and map_type not in ("atomic", "granular"):
        yield field_errors.unsupported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _map_list_errors(schema: Json, keys: Sequence[str], path: str) -> Iterator[FieldError]:
    if not keys:
        detail = "must not be empty if x-kubernetes-list-type is map"
        yield field_errors.required(f"{path}.x-kubernetes-list-map-keys", detail)
    items = schema.get("items")
    if not isinstance(items, dict):
        return
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield field_errors.invalid(f"{path}.items.type", items.get("type") or "", detail)
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        sub = properties.get(key)
        if sub is None:
            detail = "entries must all be names of item properties"
            yield field_errors.invalid(f"{path}.x-kubernetes-list-map-keys[{index}]", key, detail)
        elif sub.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield field_errors.invalid(f"{path}.items.properties[{key}].type", sub.get("type"), detail)
        elif key not in (items.get("required") or ()) and sub.get("default") is None:
            detail = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            yield field_errors.required(f"{path}.items.properties[{key}].default", detail)


def _rule_errors(schema: Json, path: str) -> Iterator[FieldError]:
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        at = f"{path}.x-kubernetes-validations[{index}]"
        text = str(rule.get("rule") or "")
        if not text.strip():
            yield field_errors.required(f"{at}.rule", "rule is not specified")
            continue
        for key in ("rule", "messageExpression"):
            expression = str(rule.get(key) or "")
            if expression and (error := cel.rule_error(expression)):
                yield field_errors.invalid(f"{at}.{key}", expression, error)
        if "\n" in str(rule.get("message") or ""):
            yield field_errors.invalid(f"{at}.message", rule["message"], "message must not contain line breaks")


def _nested_errors(schema: Json, path: str, outer: Json) -> Iterator[FieldError]:
    """Errors of one alternative, which may constrain values and not define their structure."""
    for key, must_be in _FORBIDDEN_NESTED.items():
        if schema.get(key):
            yield field_errors.forbidden(f"{path}.{key}", f"must be {must_be} to be structural")
    yield from _value_errors(schema, path, outer)
    known: Json = outer.get("properties") or {}
    for name, sub in (schema.get("properties") or {}).items():
        if name == "metadata":
            yield field_errors.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")
        if name in known:
            yield from _nested_errors(sub, f"{path}.properties[{name}]", known[name])
        else:
            detail = f"because it is defined in {_relative(path)}.properties[{name}]"
            yield field_errors.required(f"{_outer(path)}.properties[{name}]", detail)
    if isinstance(schema.get("items"), dict):
        items = outer.get("items")
        yield from _nested_errors(schema["items"], f"{path}.items", items if isinstance(items, dict) else {})


_ALTERNATIVE = re.compile(r"\.(allOf|anyOf|oneOf)\[\d+\]|\.not(?=\.|$)")


def _outer(path: str) -> str:
    return _ALTERNATIVE.sub("", path)


def _relative(path: str) -> str:
    found = _ALTERNATIVE.search(path)
    return path[found.start() + 1 :] if found else path


def _default_errors(schema: Json, path: str) -> Iterator[FieldError]:
    default = schema.get("default")
    if default is not None:
        for error in validate_schema(default, compile_schema(schema)):
            yield FieldError(
                reason=error.reason,
                field=f"{path}.default" if error.field == "<nil>" else f"{path}.default.{error.field}",
                message=error.message,
            )
    for name, sub in sorted((schema.get("properties") or {}).items()):
        yield from _default_errors(sub, f"{path}.properties[{name}]")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _default_errors(schema[key], f"{path}.{key}")
