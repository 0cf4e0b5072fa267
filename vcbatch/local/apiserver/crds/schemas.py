"""Whether a schema is structural, and whether what it says makes sense.

Source: apiextensions-apiserver `pkg/apiserver/schema` (structural rules, KEP-1769) and
`pkg/apis/apiextensions/validation`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from vcbatch.local.apiserver.errors import FieldError
from vcbatch.local.apiserver.kinds import faults
from vcbatch.local.apiserver.registry import Json
from vcbatch.local.apiserver.schema import cel
from vcbatch.local.apiserver.schema.structural import compile_schema, regular_expression
from vcbatch.local.apiserver.schema.validation import validate_schema

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties")
_STRUCTURAL_ONLY = ("description", "type", "default", "title", "nullable", "additionalProperties")
"""What belongs to the structure and may not be said inside of allOf, anyOf, oneOf and not."""
_EXTENSIONS = (
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
)
_MAX_DEPTH = 60
_MAX_NODES = 20_000


def schema_faults(schema: Json, path: str) -> list[FieldError]:
    """The faults of the schema of one version, which sits at `path`."""
    size = _size(schema, 0)
    if size is None:
        return [faults.forbidden(path, f"must not be nested deeper than {_MAX_DEPTH} levels")]
    if size > _MAX_NODES:
        return [faults.forbidden(path, f"must not have more than {_MAX_NODES} levels and alternatives")]
    found = [*_root_faults(schema, path), *_node_faults(schema, path, root=True)]
    if not found:
        found += _default_faults(schema, path)
    return found


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


def _root_faults(schema: Json, path: str) -> Iterator[FieldError]:
    type_ = schema.get("type") or ""
    if not type_:
        yield faults.required(f"{path}.type", "must not be empty at the root")
    elif type_ != "object":
        yield faults.invalid(f"{path}.type", type_, "must be object at the root")
    if schema.get("nullable") is True:
        yield faults.forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    metadata = (schema.get("properties") or {}).get("metadata")
    if isinstance(metadata, dict):
        allowed = {"name", "generateName"}
        if metadata.get("type") not in (None, "", "object"):
            yield faults.forbidden(f"{path}.properties[metadata].type", "must be object")
        further = set(metadata) - {"type", "description", "properties", "default"}
        if further or set(metadata.get("properties") or {}) - allowed:
            detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield faults.forbidden(f"{path}.properties[metadata]", detail)


def _node_faults(schema: Json, path: str, *, root: bool = False) -> Iterator[FieldError]:
    yield from _keyword_faults(schema, path)
    yield from _type_faults(schema, path, root=root)
    yield from _list_faults(schema, path)
    yield from _rule_faults(schema, path)
    for key in ("allOf", "anyOf", "oneOf"):
        for index, sub in enumerate(schema.get(key) or ()):
            yield from _nested_faults(sub, f"{path}.{key}[{index}]", schema)
    if isinstance(schema.get("not"), dict):
        yield from _nested_faults(schema["not"], f"{path}.not", schema)
    for name, sub in sorted((schema.get("properties") or {}).items()):
        yield from _node_faults(sub, f"{path}.properties[{name}]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _node_faults(schema["additionalProperties"], f"{path}.additionalProperties")
    if isinstance(schema.get("items"), dict):
        yield from _node_faults(schema["items"], f"{path}.items")


def _keyword_faults(schema: Json, path: str) -> Iterator[FieldError]:
    for key in _UNSUPPORTED:
        if schema.get(key):
            yield faults.forbidden(f"{path}.{key}", f"{key} is not supported")
    if schema.get("uniqueItems") is True:
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield faults.forbidden(f"{path}.uniqueItems", detail)
    additional = schema.get("additionalProperties")
    if additional is False:
        detail = "additionalProperties cannot be set to false"
        yield faults.forbidden(f"{path}.additionalProperties", detail)
    if additional is not None and additional is not False and schema.get("properties"):
        detail = "additionalProperties and properties are mutual exclusive"
        yield faults.forbidden(f"{path}.additionalProperties", detail)
    if isinstance(schema.get("items"), list):
        yield faults.forbidden(f"{path}.items", "items must be a schema object and not an array")
    pattern = schema.get("pattern") or ""
    try:
        regular_expression(pattern)
    except re.error as error:
        detail = f"must be a valid regular expression, but isn't: {error}"
        yield faults.invalid(f"{path}.pattern", pattern, detail)


def _type_faults(schema: Json, path: str, *, root: bool) -> Iterator[FieldError]:
    type_ = schema.get("type") or ""
    if schema.get("x-kubernetes-int-or-string") is True:
        if type_:
            detail = "must be empty if x-kubernetes-int-or-string is true"
            yield faults.invalid(f"{path}.type", type_, detail)
        return
    keeps = schema.get("x-kubernetes-preserve-unknown-fields") is True
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield faults.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    if type_ and type_ not in _TYPES:
        yield faults.unsupported(f"{path}.type", type_, _TYPES)
    elif not type_ and not root and not keeps:
        yield faults.required(f"{path}.type", f"must not be empty for {_role(path)}")
    if type_ == "array" and not isinstance(schema.get("items"), dict | list):
        yield faults.required(f"{path}.items", "must be specified")
    if schema.get("x-kubernetes-embedded-resource") is True:
        if type_ != "object":
            yield faults.invalid(f"{path}.type", type_, "must be object if x-kubernetes-embedded-resource is true")
        if not keeps and not schema.get("properties"):
            detail = "must not be empty if x-kubernetes-embedded-resource is true without "
            detail += "x-kubernetes-preserve-unknown-fields"
            yield faults.required(f"{path}.properties", detail)


def _role(path: str) -> str:
    if path.endswith(".items"):
        return "specified array items"
    return "specified object fields" if path.endswith("]") else "specified additionalProperties"


def _list_faults(schema: Json, path: str) -> Iterator[FieldError]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if kind is not None and kind not in ("atomic", "set", "map"):
        yield faults.unsupported(f"{path}.x-kubernetes-list-type", kind, ("atomic", "map", "set"))
    if kind is not None and schema.get("type") != "array":
        yield faults.invalid(
            f"{path}.type", schema.get("type") or "", "must be array if x-kubernetes-list-type is specified"
        )
    if keys and kind != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield faults.invalid(f"{path}.x-kubernetes-list-type", kind or "", detail)
    if kind == "map":
        yield from _map_list_faults(schema, keys, path)
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is not None and map_type not in ("atomic", "granular"):
        yield faults.unsupported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _map_list_faults(schema: Json, keys: Sequence[str], path: str) -> Iterator[FieldError]:
    if not keys:
        detail = "must not be empty if x-kubernetes-list-type is map"
        yield faults.required(f"{path}.x-kubernetes-list-map-keys", detail)
    items = schema.get("items")
    if not isinstance(items, dict):
        return
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield faults.invalid(f"{path}.items.type", items.get("type") or "", detail)
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        sub = properties.get(key)
        if sub is None:
            detail = "entries must all be names of item properties"
            yield faults.invalid(f"{path}.x-kubernetes-list-map-keys[{index}]", key, detail)
        elif sub.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield faults.invalid(f"{path}.items.properties[{key}].type", sub.get("type"), detail)
        elif key not in (items.get("required") or ()) and sub.get("default") is None:
            detail = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            yield faults.required(f"{path}.items.properties[{key}].default", detail)


def _rule_faults(schema: Json, path: str) -> Iterator[FieldError]:
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        at = f"{path}.x-kubernetes-validations[{index}]"
        text = str(rule.get("rule") or "")
        if not text.strip():
            yield faults.required(f"{at}.rule", "rule is not specified")
            continue
        if not cel.usable():
            yield faults.forbidden(f"{at}.rule", "validation rules need the package common-expression-language")
            continue
        for key in ("rule", "messageExpression"):
            expression = str(rule.get(key) or "")
            if expression and (fault := cel.rule_fault(expression)):
                yield faults.invalid(f"{at}.{key}", expression, fault)
        if "\n" in str(rule.get("message") or ""):
            yield faults.invalid(f"{at}.message", rule["message"], "message must not contain line breaks")


def _nested_faults(schema: Json, path: str, outer: Json) -> Iterator[FieldError]:
    """Alternatives constrain values; the structure around them is said outside."""
    allowed = _int_or_string_alternative(schema, outer)
    for key in _STRUCTURAL_ONLY:
        if key in schema and schema[key] not in (None, "", False) and not (key == "type" and allowed):
            yield faults.forbidden(f"{path}.{key}", "must be empty to be structural")
    for key in _EXTENSIONS:
        if key in schema and schema[key] and key != "x-kubernetes-validations":
            yield faults.forbidden(f"{path}.{key}", "must be empty to be structural")
    yield from _keyword_faults({key: schema[key] for key in ("pattern",) if key in schema}, path)
    for name, sub in sorted((schema.get("properties") or {}).items()):
        if name not in (outer.get("properties") or {}) and not outer.get("x-kubernetes-preserve-unknown-fields"):
            detail = f"because it is defined in {_relative(path)}.properties[{name}]"
            yield faults.required(f"{_outer(path)}.properties[{name}]", detail)
            continue
        yield from _nested_faults(sub, f"{path}.properties[{name}]", (outer.get("properties") or {}).get(name) or {})
    if isinstance(schema.get("items"), dict):
        outer_items = outer.get("items")
        yield from _nested_faults(
            schema["items"], f"{path}.items", outer_items if isinstance(outer_items, dict) else {}
        )
    for key in ("allOf", "anyOf", "oneOf"):
        for index, sub in enumerate(schema.get(key) or ()):
            yield from _nested_faults(sub, f"{path}.{key}[{index}]", outer)


_ALTERNATIVE = re.compile(r"\.(allOf|anyOf|oneOf)\[\d+\]|\.not(?=\.|$)")


def _outer(path: str) -> str:
    return _ALTERNATIVE.sub("", path)


def _relative(path: str) -> str:
    found = _ALTERNATIVE.search(path)
    return path[found.start() + 1 :] if found else path


def _int_or_string_alternative(schema: Json, outer: Json) -> bool:
    """`anyOf: [{type: integer}, {type: string}]` is the accepted way to spell an int-or-string."""
    return outer.get("x-kubernetes-int-or-string") is True and schema.get("type") in ("integer", "string")


def _default_faults(schema: Json, path: str) -> Iterator[FieldError]:
    default = schema.get("default")
    if default is not None:
        for fault in validate_schema(default, compile_schema(schema)):
            yield FieldError(
                reason=fault.reason,
                field=f"{path}.default" if fault.field == "<nil>" else f"{path}.default.{fault.field}",
                message=fault.message,
            )
    for name, sub in sorted((schema.get("properties") or {}).items()):
        yield from _default_faults(sub, f"{path}.properties[{name}]")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _default_faults(schema[key], f"{path}.{key}")
