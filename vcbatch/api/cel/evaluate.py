"""Evaluates expressions and counts their costs at run time, as Kubernetes does.

A program is the tree of an expression as nested functions. Each step takes its cost from a `Budget` before it is
executed, which bounds time and memory. Source of the costs: cel-go `interpreter/runtimecost.go`, k8s.io/apiserver
`pkg/cel/library/cost.go`.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false
# Values of expressions have any type.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from vcbatch.api.cel.syntax import (
    Call,
    CelSyntaxError,
    Ident,
    Index,
    ListOf,
    Literal,
    Macro,
    MapOf,
    Node,
    Select,
    parse,
)
from vcbatch.api.cel.values import NONE, CelError, Optional, TypeName, less, no_overload

DEEPEST = 150
"""The maximum height of a tree."""
LIST_COST, MAP_COST = 10, 30
LOOP_COST, COLLECT_COST = 3, 12
"""The cost of each iteration of a loop besides its body; and of a loop that collects results."""
TYPE_NAMES = frozenset(
    {"int", "uint", "double", "bool", "string", "bytes", "list", "map", "type", "null_type", "optional_type"}
)

Variables = dict[str, Any]
Step = Callable[[Variables, "Budget"], Any]
Function = Callable[["Budget", Sequence[Any]], Any]


class OverBudget(CelError):
    """The expression exceeds its budget."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class Budget:
    """The remaining cost. `patterns` are the regular expressions whose compilation was counted; evaluations for one
    request share them."""

    __slots__ = ("left", "patterns")

    def __init__(self, left: int, patterns: set[str] | None = None) -> None:
        self.left = left
        self.patterns: set[str] = set() if patterns is None else patterns

    def spend(self, cost: int) -> None:
        """Take `cost` from the budget. Raises `OverBudget`."""
        self.left -= cost
        if self.left < 0:
            raise OverBudget


class Program:
    """A compiled expression. `functions` are those that it may call."""

    def __init__(self, text: str, functions: Mapping[str, Function]) -> None:
        """Compile an expression. Raises `CelSyntaxError`."""
        self.tree = parse(text)
        if _height(self.tree) > DEEPEST:
            raise CelSyntaxError(f"ERROR: <input>:1:1: Syntax error: expression nests deeper than {DEEPEST} levels")
        self._functions = functions
        self._free: set[str] = set()
        self._called: set[str] = set()
        self._step = self._compile(self.tree, frozenset())

    @property
    def variables(self) -> frozenset[str]:
        """The names of the variables that it refers to."""
        return frozenset(self._free - TYPE_NAMES)

    @property
    def unknown_functions(self) -> Sequence[str]:
        return sorted(name for name in self._called if name not in self._functions)

    def run(self, variables: Mapping[str, Any], budget: Budget) -> Any:
        """Evaluate the program and return its value. Raises `CelError`."""
        try:
            return self._step(dict(variables), budget)
        except RecursionError:
            raise CelError("the values nest too deeply") from None

    # -- nodes ------------------------------------------------------------------------------------------------------

    def _compile(self, node: Node, bound: frozenset[str]) -> Step:
        match node:
            case Literal(value):
                return lambda _variables, _budget: value
            case Ident(name):
                return self._ident(name, bound)
            case Select():
                return self._select(node, bound)
            case Index(operand, index, optional):
                return _indexed(self._compile(operand, bound), self._compile(index, bound), optional)
            case ListOf(items, optional):
                return _list([self._compile(item, bound) for item in items], optional)
            case MapOf(entries, optional):
                pairs = [(self._compile(key, bound), self._compile(value, bound)) for key, value in entries]
                return _map(pairs, optional)
            case Macro():
                return self._macro(node, bound)
            case Call():
                return self._call(node, bound)

    def _ident(self, name: str, bound: frozenset[str]) -> Step:
        if name not in bound:
            self._free.add(name)

        def step(variables: Variables, budget: Budget) -> Any:
            budget.spend(1)
            if name in variables:
                return variables[name]
            if name in TYPE_NAMES:
                return TypeName(name)
            raise CelError(f"no such attribute(s): {name}")

        return step

    def _select(self, node: Select, bound: frozenset[str]) -> Step:
        operand, field = self._compile(node.operand, bound), node.field
        if node.test:

            def test(variables: Variables, budget: Budget) -> Any:
                value = operand(variables, budget)
                budget.spend(1)
                if isinstance(value, Optional):
                    return bool(value.items) and isinstance(value.items[0], dict) and field in value.items[0]
                if isinstance(value, dict):
                    return field in value
                raise no_overload()

            return test
        if node.optional:
            return lambda variables, budget: _optional_item(operand(variables, budget), field, budget)

        def step(variables: Variables, budget: Budget) -> Any:
            value = operand(variables, budget)
            if isinstance(value, dict):
                budget.spend(1)
                if field in value:
                    return value[field]
                raise CelError(f"no such key: {field}")
            if isinstance(value, Optional):
                return _optional_item(value, field, budget)
            raise no_overload()

        return step

    def _call(self, node: Call, bound: frozenset[str]) -> Step:
        name, target = node.function, node.target
        if target is None and name in ("&&", "||"):
            return _logical([self._compile(arg, bound) for arg in node.args], name == "||")
        if target is None and name == "_?_:_":
            return _conditional(*(self._compile(arg, bound) for arg in node.args))
        nodes = node.args
        if target is not None:
            space = f"{target.name}.{name}" if isinstance(target, Ident) and target.name not in bound else ""
            if space in self._functions or (isinstance(target, Ident) and target.name in _namespaces(self._functions)):
                name = space
            else:
                nodes = (target, *nodes)
        self._called.add(name)
        steps = [self._compile(each, bound) for each in nodes]
        function = self._functions.get(name)

        def step(variables: Variables, budget: Budget) -> Any:
            values = [each(variables, budget) for each in steps]
            budget.spend(1)
            if function is None:
                raise no_overload()
            try:
                return function(budget, values)
            except (TypeError, AttributeError, KeyError, IndexError):
                raise no_overload() from None
            except (ValueError, ArithmeticError) as error:
                raise CelError(str(error)) from None

        return step

    def _macro(self, node: Macro, bound: frozenset[str]) -> Step:
        operand = self._compile(node.operand, bound)
        inner = bound | set(node.variables)
        args = [self._compile(arg, inner) for arg in node.args]
        names = node.variables
        match node.name:
            case "bind":
                return _bound(operand, names[0], args[0])
            case "optMap" | "optFlatMap":
                return _opt_map(operand, names[0], args[0], flat=node.name == "optFlatMap")
            case "all" | "exists":
                return _quantified(operand, names, args[0], wanted=node.name == "exists")
            case "exists_one" | "existsOne":
                return _exactly_one(operand, names, args[0])
            case "filter":
                return _filter(operand, names[0], args[0])
            case _:
                condition = args[0] if len(args) > 1 else None
                return _mapped(operand, names, condition, args[-1], to_map=node.name == "transformMap")


@cache
def _spaces(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name.partition(".")[0] for name in names if "." in name)


def _namespaces(functions: Mapping[str, Function]) -> frozenset[str]:
    return _spaces(frozenset(functions))


def children(node: Node) -> Sequence[Node]:
    match node:
        case Select(operand):
            return (operand,)
        case Index(operand, index):
            return (operand, index)
        case Call(_, args, target):
            return args if target is None else (target, *args)
        case ListOf(items):
            return items
        case MapOf(entries):
            return [part for entry in entries for part in entry]
        case Macro(_, operand, _, args):
            return (operand, *args)
        case _:
            return ()


def _height(tree: Node) -> int:
    height, level = 0, [tree]
    while level:
        height += 1
        level = [child for node in level for child in children(node)]
    return height


# -- what steps do --------------------------------------------------------------------------------------------------


def _logical(steps: Sequence[Step], decisive: bool) -> Step:
    """`||` (`decisive` true) or `&&`: one decisive operand decides, even if the others end with an error."""

    def step(variables: Variables, budget: Budget) -> Any:
        first: CelError | None = None
        for each in steps:
            try:
                value = each(variables, budget)
            except OverBudget:
                raise
            except CelError as error:
                first = first or error
                continue
            if value is decisive:
                return decisive
            if not isinstance(value, bool):
                first = first or no_overload()
        if first is not None:
            raise first
        return not decisive

    return step


def _conditional(condition: Step, chosen: Step, other: Step) -> Step:
    def step(variables: Variables, budget: Budget) -> Any:
        value = condition(variables, budget)
        if not isinstance(value, bool):
            raise no_overload()
        return chosen(variables, budget) if value else other(variables, budget)

    return step


def _indexed(operand: Step, index: Step, optional: bool) -> Step:
    def step(variables: Variables, budget: Budget) -> Any:
        value, key = operand(variables, budget), index(variables, budget)
        if optional or isinstance(value, Optional):
            return _optional_item(value, key, budget)
        budget.spend(1)
        return item_of(value, key)

    return step


def item_of(value: Any, key: Any) -> Any:
    """An element of a list or map. Raises `CelError`."""
    if isinstance(value, list):
        at = int(key) if isinstance(key, float) and key.is_integer() else key
        if isinstance(at, bool) or not isinstance(at, int):
            raise no_overload()
        if not 0 <= at < len(value):
            raise CelError(f"index out of bounds: {at}")
        return value[at]
    if isinstance(value, dict):
        if not isinstance(key, (str, int, float)):
            raise no_overload()
        if key in value:
            return value[key]
        raise CelError(f"no such key: {key}")
    raise no_overload()


def _optional_item(value: Any, key: Any, budget: Budget) -> Optional:
    budget.spend(1)
    if isinstance(value, Optional):
        if not value.items:
            return value
        value = value.items[0]
    if isinstance(value, dict) and isinstance(key, (str, int, float)):
        return Optional.of(value[key]) if key in value else NONE
    if isinstance(value, list) and isinstance(key, int) and not isinstance(key, bool):
        return Optional.of(value[key]) if 0 <= key < len(value) else NONE
    raise no_overload()


def _list(steps: Sequence[Step], optional: Sequence[bool]) -> Step:
    def step(variables: Variables, budget: Budget) -> Any:
        budget.spend(LIST_COST)
        made: list[Any] = []
        for each, maybe in zip(steps, optional, strict=True):
            value = each(variables, budget)
            if not maybe:
                made.append(value)
            elif isinstance(value, Optional):
                made.extend(value.items)
            else:
                raise no_overload()
        return made

    return step


def _map(pairs: Sequence[tuple[Step, Step]], optional: Sequence[bool]) -> Step:
    def step(variables: Variables, budget: Budget) -> Any:
        budget.spend(MAP_COST)
        made: dict[Any, Any] = {}
        for (key_step, value_step), maybe in zip(pairs, optional, strict=True):
            key, value = key_step(variables, budget), value_step(variables, budget)
            if not isinstance(key, (str, int)):
                raise no_overload()
            if maybe:
                if not isinstance(value, Optional):
                    raise no_overload()
                if not value.items:
                    continue
                value = value.items[0]
            if key in made:
                raise CelError(f"Failed with repeated key: {key}")
            made[key] = value
        return made

    return step


def _turns(value: Any, names: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    """The values of a loop's variables, by iteration. Nothing is copied, since the first iteration may be the last."""
    if isinstance(value, list):
        return enumerate(value) if len(names) > 1 else zip(value)
    if isinstance(value, dict):
        return value.items() if len(names) > 1 else zip(value)
    raise no_overload()


def _quantified(operand: Step, names: Sequence[str], body: Step, *, wanted: bool) -> Step:
    def step(variables: Variables, budget: Budget) -> Any:
        turns = _turns(operand(variables, budget), names)
        inner, first = dict(variables), None
        for turn in turns:
            budget.spend(LOOP_COST)
            inner.update(zip(names, turn, strict=True))
            try:
                value = body(inner, budget)
            except OverBudget:
                raise
            except CelError as error:
                first = first or error
                continue
            if value is wanted:
                return wanted
            if not isinstance(value, bool):
                first = first or no_overload()
        if first is not None:
            raise first
        return not wanted

    return step


def _exactly_one(operand: Step, names: Sequence[str], body: Step) -> Step:
    def step(variables: Variables, budget: Budget) -> Any:
        turns = _turns(operand(variables, budget), names)
        inner, found = dict(variables), 0
        for turn in turns:
            budget.spend(LOOP_COST)
            inner.update(zip(names, turn, strict=True))
            value = body(inner, budget)
            if not isinstance(value, bool):
                raise no_overload()
            found += value
        return found == 1

    return step


def _filter(operand: Step, name: str, body: Step) -> Step:
    def step(variables: Variables, budget: Budget) -> Any:
        turns = _turns(operand(variables, budget), (name,))
        inner, made = dict(variables), list[Any]()
        for (item,) in turns:
            budget.spend(COLLECT_COST)
            inner[name] = item
            value = body(inner, budget)
            if not isinstance(value, bool):
                raise no_overload()
            if value:
                made.append(item)
        return made

    return step


def _mapped(operand: Step, names: Sequence[str], condition: Step | None, body: Step, *, to_map: bool) -> Step:
    def step(variables: Variables, budget: Budget) -> Any:
        source = operand(variables, budget)
        turns = _turns(source, names)
        keys = source if isinstance(source, dict) else range(len(source))
        inner, made = dict(variables), list[tuple[Any, Any]]()
        for key, turn in zip(keys, turns, strict=True):
            budget.spend(COLLECT_COST)
            inner.update(zip(names, turn, strict=True))
            if condition is not None:
                chosen = condition(inner, budget)
                if not isinstance(chosen, bool):
                    raise no_overload()
                if not chosen:
                    continue
            made.append((key, body(inner, budget)))
        return dict(made) if to_map else [value for _, value in made]

    return step


def _bound(value: Step, name: str, body: Step) -> Step:
    return lambda variables, budget: body({**variables, name: value(variables, budget)}, budget)


def _opt_map(operand: Step, name: str, body: Step, *, flat: bool) -> Step:
    def step(variables: Variables, budget: Budget) -> Any:
        value = operand(variables, budget)
        if not isinstance(value, Optional):
            raise no_overload()
        if not value.items:
            return value
        made = body({**variables, name: value.items[0]}, budget)
        if flat and not isinstance(made, Optional):
            raise no_overload()
        return made if flat else Optional.of(made)

    return step


def smallest(budget: Budget, items: Sequence[Any], *, largest: bool = False) -> Any:
    """The smallest or largest of the items. Raises `CelError`."""
    if not items:
        raise CelError(f"{'max' if largest else 'min'} called on empty list")
    budget.spend(len(items))
    found = items[0]
    for item in items[1:]:
        if isinstance(item, (str, bytes)):
            budget.spend(len(item) // 10)
        if less(found, item) if largest else less(item, found):
            found = item
    return found
