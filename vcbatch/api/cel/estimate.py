"""The maximum cost of an expression, from the maximum sizes of its variables.

Kubernetes calculates it when a rule is declared, so that a rule that may cost too much is rejected before any object
exists. Source: cel-go `checker/cost.go`, k8s.io/apiserver `pkg/cel/library/cost.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vcbatch.api.cel.evaluate import COLLECT_COST, LIST_COST, LOOP_COST, MAP_COST
from vcbatch.api.cel.syntax import Call, Ident, Index, ListOf, Literal, Macro, MapOf, Node, Select

REQUEST_BYTES = 3 * 1024 * 1024
"""The maximum size of a request, and thereby of any value, in bytes."""
LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class Shape:
    """The known bounds of a value: the maximum number of its characters, elements or properties, and the shapes of
    these."""

    size: int = 0
    items: Shape | None = None
    """The shape of elements, and of the values of a map whose keys are unknown."""
    keys: Shape | None = None
    fields: Mapping[str, Shape] = field(default_factory=dict[str, "Shape"])
    text: bool = False
    anything: bool = False
    """Whether the value may have any type."""
    weight: int = field(init=False, compare=False, default=0)
    """The cost of comparing a whole value."""

    def __post_init__(self) -> None:
        if self.text or self.anything:
            weight = (self.size + 9) // 10
        else:
            weight = sum(each.weight for each in self.fields.values())
            weight += self.size * (1 + (self.items.weight if self.items else 0))
        object.__setattr__(self, "weight", min(weight, LARGEST))


SCALAR = Shape()
ANYTHING = Shape(size=REQUEST_BYTES, anything=True)


def text_of(size: int) -> Shape:
    return Shape(size=size, text=True)


def capped(cost: int) -> int:
    return min(cost, LARGEST)


def estimate(tree: Node, variables: Mapping[str, Shape]) -> int:
    """The maximum cost of the expression."""
    return capped(_estimate(tree, dict(variables))[0])


Estimate = tuple[int, Shape]
_Known = dict[str, Shape]


def _estimate(node: Node, known: _Known) -> Estimate:
    match node:
        case Literal(value):
            return 0, text_of(len(value)) if isinstance(value, (str, bytes)) else SCALAR
        case Ident(name):
            return 1, known.get(name, SCALAR)
        case Select(operand, name, _, test):
            cost, shape = _estimate(operand, known)
            return capped(cost + 1), SCALAR if test else _field_of(shape, name)
        case Index(operand, index):
            (cost, shape), (more, _) = _estimate(operand, known), _estimate(index, known)
            name = index.value if isinstance(index, Literal) and isinstance(index.value, str) else ""
            return capped(cost + more + 1), _field_of(shape, name)
        case ListOf(items):
            made = [_estimate(item, known) for item in items]
            return _sum(LIST_COST, made), Shape(size=len(items), items=_widest([shape for _, shape in made]))
        case MapOf(entries):
            keys = [_estimate(key, known) for key, _ in entries]
            values = [_estimate(value, known) for _, value in entries]
            shape = Shape(
                size=len(entries),
                items=_widest([shape for _, shape in values]),
                keys=_widest([shape for _, shape in keys]),
            )
            return _sum(MAP_COST, [*keys, *values]), shape
        case Macro():
            return _loop(node, known)
        case Call():
            return _call(node, known)


def _sum(base: int, estimates: Sequence[Estimate]) -> int:
    return capped(base + sum(cost for cost, _ in estimates))


def _field_of(shape: Shape, name: str) -> Shape:
    if shape.anything:
        return ANYTHING
    return shape.fields.get(name) or shape.items or SCALAR


def _widest(shapes: Sequence[Shape]) -> Shape:
    """A shape that includes them all."""
    widest = SCALAR
    for shape in shapes:
        widest = _wider(widest, shape)
    return widest


def _wider(one: Shape, other: Shape) -> Shape:
    if one is other or one == other or other == SCALAR:
        return one
    if one == SCALAR:
        return other
    if one.anything or other.anything:
        return ANYTHING
    return Shape(
        size=max(one.size, other.size),
        items=_widest([shape for shape in (one.items, other.items) if shape]) if one.items or other.items else None,
        keys=_widest([shape for shape in (one.keys, other.keys) if shape]) if one.keys or other.keys else None,
        fields={**one.fields, **other.fields},
        text=one.text or other.text,
    )


def _element(shape: Shape, *, of_map: bool) -> Shape:
    if shape.anything:
        return ANYTHING
    return (shape.keys if of_map else shape.items) or SCALAR


def _loop(node: Macro, known: _Known) -> Estimate:
    cost, source = _estimate(node.operand, known)
    inner = dict(known)
    first, *second = node.variables
    if node.name in ("bind", "optMap", "optFlatMap"):
        inner[first] = source
        more, shape = _estimate(node.args[0], inner)
        return capped(cost + more), shape
    is_map = source.keys is not None or bool(source.fields)
    if second:
        inner[first] = (source.keys or SCALAR) if is_map else SCALAR
        inner[second[0]] = _element(source, of_map=False)
    else:
        inner[first] = _element(source, of_map=is_map)
    turns = max(source.size, len(source.fields))
    body = [_estimate(arg, inner) for arg in node.args]
    collects = node.name in ("map", "filter", "transformList", "transformMap")
    total = capped(cost + turns * _sum(COLLECT_COST if collects else LOOP_COST, body))
    if node.name == "filter":
        return total, Shape(size=turns, items=inner[first])
    return total, Shape(size=turns, items=body[-1][1]) if collects else SCALAR


def _walk(shape: Shape) -> int:
    """The cost of traversing a value: see `functions.weight`."""
    return (shape.size + 9) // 10 if shape.text or shape.anything else shape.size


_SAME_SIZE = frozenset(
    {
        "lowerAscii",
        "upperAscii",
        "trim",
        "reverse",
        "substring",
        "find",
        "slice",
        "sort",
        "distinct",
        "string",
        "bytes",
        "dyn",
        "strings.quote",
        "or",
        "orValue",
        "value",
        "optional.of",
        "optional.ofNonZeroValue",
        "first",
        "last",
    }
)
"""Functions whose result is no larger than their receiver."""


def _call(node: Call, known: _Known) -> Estimate:
    name = node.function
    nodes = node.args if node.target is None else (node.target, *node.args)
    if isinstance(node.target, Ident) and node.target.name not in known:
        name, nodes = f"{node.target.name}.{name}", node.args
    made = [_estimate(each, known) for each in nodes]
    shapes = [shape for _, shape in made]
    if name in ("&&", "||"):
        return _sum(0, made), SCALAR
    if name == "_?_:_":
        return capped(made[0][0] + max(made[1][0], made[2][0])), _wider(shapes[1], shapes[2])
    first = shapes[0] if shapes else SCALAR
    second = shapes[1] if len(shapes) > 1 else SCALAR
    cost = _sum(1, made)
    match name:
        case "==" | "!=":
            return capped(cost + min(first.weight, second.weight)), SCALAR
        case "<" | "<=" | ">" | ">=":
            return capped(cost + min(_walk(first), _walk(second))), SCALAR
        case "in":
            one = min(first.weight, second.items.weight) if second.items else 0
            return capped(cost + (0 if second.keys or second.fields else second.size * (1 + one))), SCALAR
        case "_+_":
            joined = Shape(
                size=first.size + second.size,
                items=_widest([s.items for s in (first, second) if s.items]),
                text=first.text,
            )
            return capped(cost + _walk(first) + _walk(second)), joined if first.size or second.size else SCALAR
        case "matches" | "find" | "findAll":
            expense = (_walk(first) + 1) * ((second.size + 3) // 4)
            many = Shape(size=first.size, items=text_of(first.size), text=False)
            return capped(cost + expense), {"matches": SCALAR, "find": first, "findAll": many}[name]
        case "contains" if first.text or first.anything:
            return capped(cost + _walk(first) * _walk(second)), SCALAR
        case "contains" | "indexOf" | "lastIndexOf":
            one = min(first.items.weight, second.weight) if first.items else max(1, _walk(second)) - 1
            return capped(cost + _walk(first) * (1 + one)), SCALAR
        case "startsWith" | "endsWith":
            return capped(cost + _walk(second)), SCALAR
        case "replace":
            size = first.size + first.size * (shapes[2].size if len(shapes) > 2 else 0)
            return capped(cost + 2 * _walk(first) + size // 10), text_of(capped(size))
        case "split":
            return capped(cost + _walk(first)), Shape(size=first.size + 1, items=text_of(first.size))
        case "join":
            each = first.items.size if first.items else 0
            size = capped(first.size * (each + second.size))
            return capped(cost + first.size + size // 10), text_of(size)
        case "sets.contains" | "sets.equivalent" | "sets.intersects" | "distinct":
            one = first.items.weight if first.items else 0
            other = first if name == "distinct" else second
            return capped(cost + 2 * first.size * other.size * (1 + one)), first if name == "distinct" else SCALAR
        case "size" | "type" | "hasValue" | "optional.none":
            return cost, SCALAR
        case "lists.range":
            return capped(cost + REQUEST_BYTES), Shape(size=REQUEST_BYTES, items=SCALAR)
        case "format":
            return capped(cost + sum(shape.weight for shape in shapes)), text_of(first.size + second.size * 100)
        case "flatten":
            inner = first.items or SCALAR
            size = capped(first.size * max(1, inner.size))
            return capped(cost + size), ANYTHING if first.anything else Shape(size=size, items=inner.items or inner)
        case _:
            size = capped(cost + sum(map(_walk, shapes)))
            return size, first if name in _SAME_SIZE else SCALAR
