"""A structural OpenAPI v3 schema, compiled once for the operations on objects: prune, default, validate, CEL.

Source: apiextensions-apiserver `pkg/apiserver/schema` (the definition of a structural schema) and KEP-1769.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vcbatch.local.apiserver.schema.formats import FORMATS
from vcbatch.local.apiserver.schema.patterns import PatternError, regular_expression

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One `x-kubernetes-validations` entry."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = "FieldValueInvalid"
    field_path: str = ""
    optional_old_self: bool = False


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """One level of a schema. Compiled from JSON by `compile_schema`, and read-only afterwards."""

    types: Sequence[str] = ()
    """JSON types allowed; empty allows all. An int-or-string has both."""
    format: str = ""
    nullable: bool = False
    properties: Mapping[str, Node] = field(default_factory=dict[str, "Node"])
    additional: Node | None = None
    """The schema of further properties; None allows any where `closed_additional` is false."""
    has_additional: bool = False
    items: Node | None = None
    required: Sequence[str] = ()
    preserve_unknown: bool = False
    embedded: bool = False
    list_type: str = "atomic"
    list_map_keys: Sequence[str] = ()
    map_type: str = "granular"
    default: Any = None
    has_default: bool = False
    enum: Sequence[Any] | None = None
    minimum: float | int | None = None
    maximum: float | int | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: float | int | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str = ""
    matches: Callable[[str], Any] | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique_items: bool = False
    min_properties: int | None = None
    max_properties: int | None = None
    all_of: Sequence[Node] = ()
    any_of: Sequence[Node] = ()
    one_of: Sequence[Node] = ()
    not_: Node | None = None
    rules: Sequence[Rule] = ()
    defaulting: Sequence[tuple[str, Node]] = ()
    """The properties with a default of their own."""
    has_rules: bool = False
    """Whether there is a rule at this level or below."""
    has_lists: bool = False
    """Whether there is a set or map list at this level or below."""
    has_embedded: bool = False
    """Whether there is an embedded resource at this level or below."""
    plain: type | None = None
    """The Python type of a scalar that only its type constrains: most values of most objects."""


def compile_schema(schema: Json) -> Node:
    """Compile a schema whose structure was validated when its definition was accepted; malformed parts are left out, so
    that a stored definition never stops the server."""
    node = Node(
        types=_types(schema),
        format=_text(schema, "format") if schema.get("format") in FORMATS else "",
        nullable=schema.get("nullable") is True,
        properties={name: compile_schema(sub) for name, sub in _schemas(schema, "properties").items()},
        additional=_optional(schema.get("additionalProperties")),
        has_additional="additionalProperties" in schema and schema["additionalProperties"] is not False,
        items=_optional(schema.get("items")),
        required=tuple(name for name in schema.get("required") or () if isinstance(name, str)),
        preserve_unknown=schema.get("x-kubernetes-preserve-unknown-fields") is True,
        embedded=schema.get("x-kubernetes-embedded-resource") is True,
        list_type=_text(schema, "x-kubernetes-list-type") or "atomic",
        list_map_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        map_type=_text(schema, "x-kubernetes-map-type") or "granular",
        default=schema.get("default"),
        has_default=schema.get("default") is not None,
        enum=schema.get("enum") or None,
        minimum=_number(schema, "minimum"),
        maximum=_number(schema, "maximum"),
        exclusive_minimum=schema.get("exclusiveMinimum") is True,
        exclusive_maximum=schema.get("exclusiveMaximum") is True,
        multiple_of=_number(schema, "multipleOf"),
        min_length=_count(schema, "minLength"),
        max_length=_count(schema, "maxLength"),
        pattern=_text(schema, "pattern"),
        matches=_matcher(_text(schema, "pattern")),
        min_items=_count(schema, "minItems"),
        max_items=_count(schema, "maxItems"),
        unique_items=schema.get("uniqueItems") is True,
        min_properties=_count(schema, "minProperties"),
        max_properties=_count(schema, "maxProperties"),
        all_of=_list(schema, "allOf"),
        any_of=_list(schema, "anyOf"),
        one_of=_list(schema, "oneOf"),
        not_=_optional(schema.get("not")),
        rules=tuple(_rule(rule) for rule in schema.get("x-kubernetes-validations") or ()),
    )
    node.defaulting = tuple((name, sub) for name, sub in sorted(node.properties.items()) if sub.has_default)
    below = [*node.properties.values(), *(sub for sub in (node.additional, node.items) if sub)]
    node.has_rules = bool(node.rules) or any(sub.has_rules for sub in below)
    node.has_lists = node.list_type in ("set", "map") or any(sub.has_lists for sub in below)
    node.has_embedded = node.embedded or any(sub.has_embedded for sub in below)
    node.plain = _plain_type(schema)
    return node


_UNCONSTRAINING = frozenset({"type", "description", "title", "nullable", "default", "example", "externalDocs"})
_PLAIN_TYPES: Mapping[str, type] = {"string": str, "boolean": bool}


def _plain_type(schema: Json) -> type | None:
    return _PLAIN_TYPES.get(str(schema.get("type"))) if schema.keys() <= _UNCONSTRAINING else None


def _types(schema: Json) -> Sequence[str]:
    if schema.get("x-kubernetes-int-or-string") is True:
        return ("integer", "string")
    type_ = schema.get("type")
    return (type_,) if isinstance(type_, str) and type_ else ()


def _rule(rule: Json) -> Rule:
    return Rule(
        rule=str(rule.get("rule") or ""),
        message=str(rule.get("message") or ""),
        message_expression=str(rule.get("messageExpression") or ""),
        reason=str(rule.get("reason") or "FieldValueInvalid"),
        field_path=str(rule.get("fieldPath") or ""),
        optional_old_self=rule.get("optionalOldSelf") is True,
    )


def _text(schema: Json, key: str) -> str:
    value = schema.get(key)
    return value if isinstance(value, str) else ""


def _number(schema: Json, key: str) -> float | int | None:
    value = schema.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _count(schema: Json, key: str) -> int | None:
    value = schema.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _schemas(schema: Json, key: str) -> dict[str, Json]:
    value = schema.get(key)
    return {name: sub for name, sub in value.items() if isinstance(sub, dict)} if isinstance(value, dict) else {}


def _optional(schema: Any) -> Node | None:
    return compile_schema(schema) if isinstance(schema, dict) else None


def _list(schema: Json, key: str) -> Sequence[Node]:
    return tuple(compile_schema(sub) for sub in schema.get(key) or () if isinstance(sub, dict))


def _matcher(pattern: str) -> Callable[[str], Any] | None:
    if not pattern:
        return None
    try:
        return regular_expression(pattern).search
    except PatternError:
        return None
