"""The upper bound of the cost of a definition's rules, computed without any object: too expensive rules are refused.

Source: apiextensions-apiserver `pkg/apis/apiextensions/validation` (limits and messages), apiserver `pkg/cel/common`
(sizes of values from their schema).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from vcbatch.api import cel, field_errors
from vcbatch.api.cel.estimate import ANYTHING, REQUEST_BYTES, SCALAR, Shape, estimate, text_of
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.registry import Json
from vcbatch.local.apiserver.schema.cel import escape

EXPRESSION_LIMIT = 10_000_000
"""The limit of one expression's cost, for all values of an object that it is evaluated on."""
DEFINITION_LIMIT = 100_000_000
"""The limit of the cost of all expressions of a version together."""
_MOST_NAMED = 4
_BYTES_OF_CHARACTER = 4
_FORMATS = {"date": 10, "date-time": 35, "datetime": 35, "duration": 64}
_SMALLEST = {"boolean": 4, "integer": 1, "number": 1, "string": 2, "array": 2, "object": 2}
_EMBEDDED: Mapping[str, Shape] = {
    "apiVersion": text_of(253), "kind": text_of(63),
    "metadata": Shape(size=2, fields={"name": text_of(253), "generateName": text_of(253)}),
}  # fmt: skip


@dataclass(slots=True)
class _Total:
    cost: int = 0
    dearest: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    def add(self, cost: int, path: str) -> None:
        self.cost += cost
        self.dearest = sorted([*self.dearest, (cost, path)], key=lambda one: -one[0])[:_MOST_NAMED]


def cost_errors(schema: Json, path: str) -> Iterator[FieldError]:
    """The rules of one version's schema that may be too expensive, each alone or all together."""
    total = _Total()
    yield from _walk(schema, path, 1, total, root=True)
    if total.cost > DEFINITION_LIMIT:
        for _, at in total.dearest:
            detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield field_errors.forbidden(at, detail)
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield field_errors.forbidden(path, _exceeds(what, total.cost, DEFINITION_LIMIT))


def _walk(schema: Json, path: str, times: int | None, total: _Total, *, root: bool = False) -> Iterator[FieldError]:
    """`times`: how many values of an object have this schema; None for as many as fit into a request."""
    rules = schema.get("x-kubernetes-validations") or ()
    if rules:
        shape = _shape(schema, root=root)
        many = REQUEST_BYTES // (_smallest(schema) + 1) if times is None else times
        for index, rule in enumerate(rules):
            for key, what in (
                ("rule", "estimated rule cost"),
                ("messageExpression", "estimated messageExpression cost"),
            ):
                text, at = str(rule.get(key) or ""), f"{path}.x-kubernetes-validations[{index}].{key}"
                cost = _cost(text, shape) * many
                if cost:
                    total.add(cost, at)
                if cost > EXPRESSION_LIMIT:
                    yield field_errors.forbidden(at, _exceeds(what, cost, EXPRESSION_LIMIT))
    for name, sub in sorted((schema.get("properties") or {}).items()):
        yield from _walk(sub, f"{path}.properties[{name}]", times, total)
    items, additional = schema.get("items"), schema.get("additionalProperties")
    if isinstance(items, dict):
        yield from _walk(items, f"{path}.items", _product(times, schema.get("maxItems")), total)
    if isinstance(additional, dict):
        most = _product(times, schema.get("maxProperties"))
        yield from _walk(additional, f"{path}.additionalProperties", most, total)


def _product(times: int | None, most: int | None) -> int | None:
    return None if times is None or most is None else times * max(0, most)


def _cost(text: str, shape: Shape) -> int:
    if not text.strip():
        return 0
    return estimate(cel.compiled(text).tree, {"self": shape, "oldSelf": shape})


def _shape(schema: Json, *, root: bool = False) -> Shape:
    """The type and largest size that expressions may assume for a value of the schema."""
    type_ = schema.get("type")
    if type_ == "string":
        if schema.get("enum"):
            return text_of(max(len(str(each)) for each in schema["enum"]))
        length = schema.get("maxLength")
        free = _FORMATS.get(str(schema.get("format")), REQUEST_BYTES - 2)
        return text_of(free if length is None else length * _BYTES_OF_CHARACTER)
    if type_ == "array" and isinstance(schema.get("items"), dict):
        items = schema["items"]
        most = schema.get("maxItems")
        size = (REQUEST_BYTES - 2) // (_smallest(items) + 1) if most is None else most
        return Shape(size=size, items=_shape(items))
    if type_ == "object" and isinstance(schema.get("additionalProperties"), dict):
        values = schema["additionalProperties"]
        most = schema.get("maxProperties")
        size = (REQUEST_BYTES - 2) // (_smallest(values) + 6) if most is None else most
        return Shape(size=size, items=_shape(values), keys=text_of(REQUEST_BYTES))
    if type_ == "object":
        fields = {escape(name) or name: _shape(sub) for name, sub in (schema.get("properties") or {}).items()}
        if root or schema.get("x-kubernetes-embedded-resource") is True:
            fields |= _EMBEDDED
        return Shape(size=len(fields), fields=fields)
    if schema.get("x-kubernetes-int-or-string") is True:
        length = schema.get("maxLength")
        return text_of(REQUEST_BYTES - 2 if length is None else length * _BYTES_OF_CHARACTER)
    return ANYTHING if type_ is None else SCALAR


def _smallest(schema: Json) -> int:
    """The smallest size in bytes of a value of the schema."""
    size = _SMALLEST.get(str(schema.get("type")), 1)
    if schema.get("type") == "object":
        properties = schema.get("properties") or {}
        for name in schema.get("required") or ():
            sub = properties.get(name) or {}
            if "default" not in sub:
                size += len(str(name)) + 4 + _smallest(sub)
    return size


def _exceeds(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return (
        f"{what} exceeds budget by factor of {shown} (try simplifying the rule, or adding maxItems, maxProperties, and "
        "maxLength where arrays, maps, and strings are declared)"
    )
