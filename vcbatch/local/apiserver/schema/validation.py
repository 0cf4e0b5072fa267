"""Validates custom resources by their structural schema, with the messages and the order of a real API server.

Source: kube-openapi `pkg/validation/validate` (checks, order, texts), apiextensions-apiserver
`pkg/apiserver/validation` (how they become field errors; ratcheting: KEP-4008).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from vcbatch.api import field_errors
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.schema.compare import ABSENT, canonical, correlate, same
from vcbatch.local.apiserver.schema.formats import FORMATS, NUMBER_FORMATS
from vcbatch.local.apiserver.schema.structural import Json, Node


@dataclass(slots=True)
class _Result:
    """`matches` counts the successful checks: of the alternatives of an anyOf, the one with the most explains the
    failure."""

    errors: list[FieldError] = field(default_factory=list[FieldError])
    matches: int = 0

    def merge(self, other: _Result) -> None:
        if other.errors:
            self.errors.extend(other.errors)
        self.matches += other.matches


_PLAIN = _Result(matches=7)
"""The result for a value whose schema has only a type, which it has; never merged into."""


def validate_schema(value: Any, schema: Node, *, base: str = "", old: Any = ABSENT) -> list[FieldError]:
    """All errors of `value`. `base` is the field path of the value (texts name paths below it only).

    With an `old` value, errors of unchanged parts aren't reported (ratcheting), so that a tightened schema doesn't
    block unrelated updates.
    """
    return _Walk(base).validate(value, schema, "", old).errors


def go_float(value: float) -> str:
    """A float64 as Go's `%v` prints it: `0.5`, `2`, `1e+06`."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if not isinstance(exponent, int):
        return {"n": "NaN", "N": "NaN"}.get(str(exponent), "-Inf" if sign else "+Inf")
    text = "".join(map(str, digits))
    power = len(text) + exponent - 1
    if text == "0":
        return "0"
    minus = "-" if sign else ""
    if -4 <= power < 6:
        return format(Decimal(repr(value)).normalize(), "f")
    mantissa = text[0] + (f".{text[1:]}" if len(text) > 1 else "")
    return f"{minus}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _json_type(value: Any) -> tuple[str, str]:
    """The JSON type and Go's format of a decoded value."""
    match value:
        case bool():
            return "boolean", ""
        case str():
            return "string", ""
        case int() if -(2**63) <= value < 2**63:
            return "integer", "int64"
        case int() | float():
            return "number", "float64"
        case list():
            return "array", ""
        case dict():
            return "object", ""
        case _:
            raise AssertionError(type(value))


class _Walk:
    __slots__ = ("base",)

    def __init__(self, base: str) -> None:
        self.base = base

    def validate(self, value: Any, node: Node, path: str, old: Any) -> _Result:
        if type(value) is node.plain:
            return _PLAIN
        if old is not ABSENT and same(value, old):
            return _Result(matches=1)
        result = _Result()
        if value is None:
            result.merge(self._null(node, path))
            result.merge(self._enum(value, node, path))
            return result
        if node.types:
            result.merge(self._type(value, node, path))
            result.matches += 1
        if node.any_of or node.one_of or node.all_of or node.not_:
            result.merge(self._combined(value, node, path, old))
        result.matches += 1
        match value:
            case str():
                result.merge(self._string(value, node, path))
                result.merge(self._format(value, node, path))
            case bool():
                pass
            case int() | float():
                result.merge(self._number(value, node, path))
            case list():
                result.merge(self._list(value, node, path, old))
            case _:
                pass
        result.merge(self._enum(value, node, path))
        result.matches += 1
        if isinstance(value, dict):
            result.merge(self._object(value, node, path, old))
        result.matches += 1
        return result

    def _at(self, path: str) -> str:
        path = path.removeprefix(".")
        if self.base and path:
            return f"{self.base}.{path}"
        return path or self.base or "<nil>"

    def _one(self, error: FieldError) -> _Result:
        return _Result([error])

    def _invalid(self, path: str, value: Any, detail: str, *, reason: str = "FieldValueInvalid") -> _Result:
        return self._one(
            FieldError(
                reason=reason, field=self._at(path), message=f"Invalid value: {_shown(value)}: {path} in body {detail}"
            )
        )

    def _unplaced(self, detail: str) -> _Result:
        """An error that the validator reports without a path of its own."""
        return self._one(field_errors.invalid(self.base or "<nil>", "", detail))

    def _mistyped(self, path: str, expected: str, actual: str) -> _Result:
        detail = f"must be of type {expected}: {field_errors.go_quote(actual)}"
        return self._invalid(path, actual, detail, reason="FieldValueTypeInvalid")

    def _null(self, node: Node, path: str) -> _Result:
        if node.types and not node.nullable:
            return self._mistyped(path, ",".join(node.types), "null")
        return _Result(matches=1)

    def _type(self, value: Any, node: Node, path: str) -> _Result:
        type_, format_ = _json_type(value)
        whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53 and "integer" in node.types
        fits = type_ in node.types or whole or (type_ == "integer" and "number" in node.types)
        if fits:
            return _Result(matches=1)
        if node.format and not isinstance(value, str | list):
            return self._mistyped(path, node.format, format_)
        return self._mistyped(path, ",".join(node.types), type_)

    def _combined(self, value: Any, node: Node, path: str, old: Any) -> _Result:
        result = _Result()
        if node.any_of:
            result.merge(self._any_of(value, node.any_of, path, old))
        if node.one_of:
            result.merge(self._one_of(value, node.one_of, path, old))
        if node.all_of:
            held = 0
            for sub in node.all_of:
                one = self.validate(value, sub, path, old)
                held += not one.errors
                result.merge(one)
            if held != len(node.all_of):
                none = "" if held else ". None validated"
                result.merge(
                    self._unplaced(f"{field_errors.go_quote(path)} must validate all the schemas (allOf){none}")
                )
        if node.not_ and not self.validate(value, node.not_, path, ABSENT).errors:
            result.merge(self._unplaced(f"{field_errors.go_quote(path)} must not validate the schema (not)"))
        result.matches += 1
        return result

    def _any_of(self, value: Any, choices: Sequence[Node], path: str, old: Any) -> _Result:
        best: _Result | None = None
        for sub in choices:
            one = self.validate(value, sub, path, old)
            if not one.errors:
                return _Result(matches=one.matches)
            if best is None or one.matches > best.matches:
                best = one
        result = self._unplaced(f"{field_errors.go_quote(path)} must validate at least one schema (anyOf)")
        if best:
            result.merge(best)
        return result

    def _one_of(self, value: Any, choices: Sequence[Node], path: str, old: Any) -> _Result:
        tried = [self.validate(value, sub, path, old) for sub in choices]
        held = [one for one in tried if not one.errors]
        if len(held) == 1:
            return _Result(matches=held[0].matches)
        found = f"Found {len(held)} valid alternatives" if held else "Found none valid"
        result = self._unplaced(f"{field_errors.go_quote(path)} must validate one and only one schema (oneOf). {found}")
        if not held:
            result.merge(max(tried, key=lambda one: one.matches))
        return result

    def _string(self, value: str, node: Node, path: str) -> _Result:
        if node.max_length is not None and len(value) > node.max_length:
            return self._one(field_errors.too_long(self._at(path), node.max_length))
        if node.min_length is not None and len(value) < node.min_length:
            return self._invalid(path, value, f"should be at least {node.min_length} chars long")
        if node.matches and not node.matches(value):
            return self._invalid(path, value, f"should match '{node.pattern}'")
        return _Result(matches=1)

    def _format(self, value: str, node: Node, path: str) -> _Result:
        if node.format and node.format not in NUMBER_FORMATS and not FORMATS[node.format](value):
            return self._mistyped(path, node.format, value)
        return _Result(matches=1)

    def _number(self, value: float, node: Node, path: str) -> _Result:
        result = self._range(value, node, path)
        whole = isinstance(value, int) and -(2**63) <= value < 2**63

        def limit(bound: float) -> str:
            return str(int(bound)) if whole else go_float(float(bound))

        if node.multiple_of and not _is_multiple(value, node.multiple_of):
            factor = limit(node.multiple_of) if float(node.multiple_of).is_integer() else go_float(node.multiple_of)
            result.merge(self._invalid(path, value, f"should be a multiple of {factor}"))
        if node.minimum is not None and (value < node.minimum or (node.exclusive_minimum and value == node.minimum)):
            words = "greater than" if node.exclusive_minimum else "greater than or equal to"
            result.merge(self._invalid(path, value, f"should be {words} {limit(node.minimum)}"))
        if node.maximum is not None and (value > node.maximum or (node.exclusive_maximum and value == node.maximum)):
            words = "less than" if node.exclusive_maximum else "less than or equal to"
            result.merge(self._invalid(path, value, f"should be {words} {limit(node.maximum)}"))
        if not result.errors:
            result.matches += 1
        return result

    def _range(self, value: float, node: Node, path: str) -> _Result:
        if tuple(node.types) != ("integer",):
            return _Result()
        bits = 31 if node.format == "int32" else 63
        whole = isinstance(value, int) or value.is_integer()
        if whole and -(2**bits) <= value < 2**bits:
            return _Result()
        kind = f"integer with format {node.format}" if node.format else "integer (default format)"
        return self._unplaced(f"Checked value must be of type {kind} in {path}")

    def _list(self, value: list[Any], node: Node, path: str, old: Any) -> _Result:
        result = _Result()
        if node.items is not None:
            olds = correlate(value, node, old)
            for index, item in enumerate(value):
                result.merge(self.validate(item, node.items, f"{path}[{index}]", olds(index)))
        size = len(value)
        if node.min_items is not None and size < node.min_items:
            result.merge(self._invalid(path, size, f"should have at least {node.min_items} items"))
        if node.max_items is not None and size > node.max_items:
            result.merge(self._one(field_errors.too_many(self._at(path), size, node.max_items)))
        if node.unique_items and len({canonical(item) for item in value}) != size:
            result.merge(self._invalid(path, "", "shouldn't contain duplicates"))
        if not result.errors:
            result.matches += 1
        return result

    def _enum(self, value: Any, node: Node, path: str) -> _Result:
        if node.enum is None or any(same(value, choice) for choice in node.enum):
            return _Result()
        choices = [choice if isinstance(choice, str) else _compact(choice) for choice in node.enum]
        return self._one(field_errors.unsupported(self._at(path), value, choices))

    def _object(self, value: Json, node: Node, path: str, old: Any) -> _Result:
        size = len(value)
        if node.min_properties is not None and size < node.min_properties:
            return self._invalid(path, size, f"should have at least {node.min_properties} properties")
        if node.max_properties is not None and size > node.max_properties:
            return self._one(field_errors.too_many(self._at(path), size, node.max_properties))
        result = _Result()
        olds = old if isinstance(old, dict) else {}
        if node.additional is not None:
            for name in sorted(value):
                if name not in node.properties:
                    below = f"{path}.{name}"
                    result.merge(self.validate(value[name], node.additional, below, olds.get(name, ABSENT)))
        for name in sorted(value):
            sub = node.properties.get(name)
            if sub is not None:
                below = f"{path}.{name}" if path else name
                result.merge(self.validate(value[name], sub, below, olds.get(name, ABSENT)))
        for name in node.required:
            if name not in value:
                result.merge(self._one(field_errors.required(self._at(f"{path}.{name}"))))
        if not result.errors:
            result.matches += 1
        return result


def _is_multiple(value: float, factor: float) -> bool:
    return Fraction(repr(value)) % Fraction(repr(factor)) == 0


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _shown(value: Any) -> str:
    if isinstance(value, float) or (isinstance(value, int) and not -(2**63) <= value < 2**63):
        return go_float(float(value))
    return field_errors.shown(value)
