"""Validation rules of custom resources in the Common Expression Language (`x-kubernetes-validations`).

`expressions` evaluates them; this module provides what Kubernetes guarantees: values typed by the schema, `self` and
`oldSelf`, correlation of map lists, and the messages of errors. Source: apiextensions-apiserver
`pkg/apiserver/schema/cel`, KEP-2876.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

from vcbatch.api import field_errors
from vcbatch.api.cel import Optional
from vcbatch.local.apiserver import expressions
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.schema.compare import ABSENT, correlate, same
from vcbatch.local.apiserver.schema.structural import Node, Rule

_EVALUATION_COST = 5
"""The cost of each evaluation in addition to its expression, so that very many free ones (`true`) are limited, too."""

_RESERVED_WORDS = (
    "true false null in as break const continue else for function if import let loop package namespace "
    "return var void while"
)
_RESERVED = frozenset(_RESERVED_WORDS.split())


def rule_error(rule: str) -> str:
    """Why an expression isn't a valid rule, or "" where it is."""
    return expressions.error(rule, ("self", "oldSelf"))


def uses_old_self(rule: str) -> bool:
    return expressions.mentions(rule, "oldSelf")


def validate_rules(
    value: Any, schema: Node, *, base: str = "", old: Any = ABSENT, patient: bool = True
) -> list[FieldError]:
    """The errors of all rules that apply to `value` (at the field path `base`), outermost first. Rules on `oldSelf`
    apply where there is an old value to compare with; errors of other rules aren't reported for unchanged values. Where
    the rules cost more than a request may, that is the last error. Not `patient`: raises `expressions.TooLong` instead
    of blocking the event loop."""
    if not schema.has_rules:
        return []
    found: list[FieldError] = []
    try:
        found.extend(_walk(value, schema, base, old, expressions.Costs(patient=patient), root=not base))
    except _OutOfBudget as end:
        found.append(end.error)
    return found


class _OutOfBudget(Exception):
    """No further rules are evaluated."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(error.message)
        self.error = error


class _Values:
    """A value and its old one, as expressions see them; computed when first needed."""

    def __init__(self, value: Any, old: Any, node: Node, *, root: bool) -> None:
        self.value = value
        self.old = old
        self._node = node
        self._root = root
        self._typed: dict[bool, Any] = {}

    def typed(self, *, old: bool) -> Any:
        if old not in self._typed:
            self._typed[old] = _typed(self.old if old else self.value, self._node, root=self._root)
        return self._typed[old]


def _walk(
    value: Any, node: Node, path: str, old: Any, costs: expressions.Costs, *, root: bool = False
) -> Iterator[FieldError]:
    if value is None:
        return
    values = _Values(value, old, node, root=root)
    for rule in node.rules:
        error = _broken(rule, values, node, path, costs)
        if error is not None:
            yield error
    if isinstance(value, list):
        items = node.items
        if items is not None and items.has_rules:
            olds = correlate(value, node, old)
            for index, item in enumerate(value):
                yield from _walk(item, items, f"{path}[{index}]", olds(index), costs)
    elif isinstance(value, dict):
        olds_by_name = old if isinstance(old, dict) else {}
        for name in sorted(value):
            sub = node.properties.get(name)
            below = f"{path}.{name}" if path else name
            if sub is None and node.additional is not None:
                sub, below = node.additional, f"{path}[{name}]"
            if sub is not None and sub.has_rules:
                yield from _walk(value[name], sub, below, olds_by_name.get(name, ABSENT), costs)


def _broken(rule: Rule, values: _Values, node: Node, path: str, costs: expressions.Costs) -> FieldError | None:
    value, old = values.value, values.old
    transition = uses_old_self(rule.rule)
    if transition and old is ABSENT and not rule.optional_old_self:
        return None
    if not transition and old is not ABSENT and same(value, old):
        return None
    variables: dict[str, Any] = {"self": values.typed(old=False)}
    if transition:
        given: tuple[Any, ...] = () if old is ABSENT else (values.typed(old=True),)
        variables["oldSelf"] = Optional(given) if rule.optional_old_self else given[0]
    at = f"{path}{rule.field_path}".removeprefix(".") or "<nil>"
    said = rule.message or f"failed rule: {rule.rule.strip()}"
    outcome = costs.run(rule.rule, variables, base=_EVALUATION_COST)
    if isinstance(outcome, expressions.Trouble):
        kind = node.types[0] if node.types else "object"
        if costs.call_too_dear or costs.exhausted:
            raise _OutOfBudget(field_errors.invalid(path or "<nil>", kind, _end_of_budget(rule, costs, outcome)))
        return field_errors.invalid(path or "<nil>", kind, outcome.explain(rule.message or rule.rule.strip()))
    if outcome is True:
        return None
    if rule.message_expression:
        text = costs.run(rule.message_expression, variables, base=_EVALUATION_COST)
        if isinstance(text, str) and text.strip() and "\n" not in text:
            said = text.strip()
    return _error(rule, at, value, said)


def _end_of_budget(rule: Rule, costs: expressions.Costs, outcome: expressions.Trouble) -> str:
    if costs.call_too_dear:
        return (
            f"'{outcome.text}': no further validation rules will be run due to call cost exceeds limit for rule: "
            f"{rule.message or rule.rule.strip()}"
        )
    return "validation failed due to running out of cost budget, no further validation rules will be run"


def _error(rule: Rule, at: str, value: Any, detail: str) -> FieldError:
    match rule.reason:
        case "FieldValueForbidden":
            return field_errors.forbidden(at, detail)
        case "FieldValueRequired":
            return field_errors.required(at, detail)
        case "FieldValueDuplicate":
            shown = "" if isinstance(value, dict | list) else f": {field_errors.shown(value)}"
            return FieldError(reason=rule.reason, field=at, message=f"Duplicate value{shown}")
        case _:
            shown = "" if isinstance(value, dict | list) else f" {field_errors.shown(value)}:"
            return FieldError(reason="FieldValueInvalid", field=at, message=f"Invalid value:{shown} {detail}")


def _typed(value: Any, node: Node, *, root: bool = False) -> Any:
    """A JSON value as a CEL value: declared fields only, numbers and times by their schema."""
    match value:
        case dict():
            return _typed_map(value, node, root=root)
        case list():
            items = node.items
            return [_typed(item, items) if items else item for item in value]
        case bool() | None:
            return value
        case int() if "number" in node.types:
            return float(value)
        case float() if "integer" in node.types and value.is_integer():
            return int(value)
        case str() if node.format:
            return _typed_text(value, node.format)
        case _:
            return value


def _typed_map(value: dict[str, Any], node: Node, *, root: bool) -> dict[str, Any]:
    if node.additional is not None:
        return {name: _typed(item, node.properties.get(name, node.additional)) for name, item in value.items()}
    typed = {
        escaped: _typed(value[name], sub)
        for name, sub in node.properties.items()
        if name in value and (escaped := escape(name))
    }
    if root or node.embedded:
        metadata = value.get("metadata")
        if isinstance(metadata, dict):
            typed["metadata"] = {key: metadata[key] for key in ("name", "generateName") if key in metadata}
        for key in ("apiVersion", "kind"):
            if key in value:
                typed[key] = value[key]
    return typed


def _typed_text(value: str, format_: str) -> Any:
    try:
        match format_:
            case "date-time" | "datetime":
                return datetime.fromisoformat(value)
            case "date":
                return datetime.fromisoformat(value).replace(tzinfo=timezone.utc)  # noqa: UP017 - 3.11
            case "duration":
                return _go_duration(value)
            case "byte":
                import base64

                return base64.b64decode(value)
            case _:
                return value
    except ValueError:
        return value


_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def _go_duration(text: str) -> Any:
    parts = re.findall(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|us|µs|ns|m|s)", text)
    if not parts:
        return text
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return timedelta(seconds=-seconds if text.startswith("-") else seconds)


def escape(name: str) -> str:
    """The escaped name of a property in expressions (`__namespace__`, `a__dash__b`), or "" where it has none."""
    if name in _RESERVED:
        return f"__{name}__"
    escaped = name.replace("__", "__underscores__")
    for char, word in ((".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")):
        escaped = escaped.replace(char, word)
    return escaped if re.fullmatch(r"[A-Za-z_]\w*", escaped) else ""
