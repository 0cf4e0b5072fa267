"""What scenarios say of objects: where they look, and what they check there. The language is told in `player`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vcbatch.api import resources
from vcbatch.api.resources import Resource
from vcbatch.interfaces import ApiError

if TYPE_CHECKING:
    from tests.scenarios.player import World

Json = dict[str, Any]

_UNUSED_BY_US = [
    Resource(group="node.k8s.io", version="v1", plural="runtimeclasses", kind="RuntimeClass", namespaced=False),
]
_NAMED = [value for value in vars(resources).values() if isinstance(value, Resource)]
_ALL = [*_UNUSED_BY_US, *_NAMED, *resources.CUSTOM_RESOURCES]  # `job` alone is one of ours
BY_NAME = {(f"{r.plural}.{r.group}" if r.group else r.plural): r for r in _ALL}
BY_NAME |= {name: r for r in _ALL for name in (r.plural, r.kind.lower())}
BY_KIND = {(r.api_version, r.kind): r for r in _ALL}
_OF_LISTS = frozenset({"count", "at_least", "at_most", "names", "each", "differ"})
_CHECKS = _OF_LISTS | {"is", "equals", "contains", "absent"}
_PLACES = frozenset({"get", "path", "where", "labels"})


class ScenarioFailed(AssertionError):
    """A step whose outcome is another than the scenario says."""


class Condition:
    """{get, path, where, labels, and checks}."""

    def __init__(self, condition: Json) -> None:
        unknown = condition.keys() - _CHECKS - _PLACES
        if unknown or not condition.keys() & _CHECKS:
            raise ScenarioFailed(f"{condition} expects nothing that can fail; known: {', '.join(sorted(_CHECKS))}")
        self._condition = condition
        self.resource, self.name = target(condition["get"])
        self.path: str = condition.get("path", "")

    async def read(self, world: World) -> Any:
        """The object (None where there is none), or the list, from the server."""
        namespace = place(self.resource, world)
        if self.name and "*" not in self.name:
            try:
                return await world.api.get(self.resource, self.name, namespace=namespace)
            except ApiError as error:
                if error.not_found:
                    return None
                raise
        return self.select((await world.api.list(self.resource, namespace=namespace)).items)

    @property
    def reported(self) -> str:
        return str(self._condition)

    def brief(self, value: Any) -> str:
        """The value as a message shows it: the names of a list."""
        return str(_names(value)) if isinstance(value, list) else _short(dig(value, self.path))

    async def check(self, world: World) -> Any:
        """The same as watches know it, where they watch that resource."""
        known = world.history.current(self.resource)
        return await self.read(world) if known is None else self.select(list(known.values()))

    def select(self, objects: Sequence[Json]) -> Any:
        """What the condition is about, out of all objects of that kind."""
        if self.name:
            return next((item for item in objects if named(self.name, item["metadata"]["name"])), None)
        wanted = self._condition.get("where") or {}
        labels = (self._condition.get("labels") or {}).items()
        return [
            item
            for item in objects
            if all(dig(item, path) in as_list(value) for path, value in wanted.items())
            and labels <= (item["metadata"].get("labels") or {}).items()
        ]

    def unmet(self, value: Any) -> str:
        """What isn't as it should be; empty where all is."""
        condition = self._condition
        about = " ".join(f"{condition[key]}" for key in ("get", "where", "labels", "path") if condition.get(key))
        if condition.get("absent"):
            there = dig(value, self.path) if self.path else value
            return f"{about} is still there: {_short(there)}" if there not in (None, []) else ""
        if value is None:
            return "" if _none_is_fine(condition) else f"{about} isn't there"
        found = dig(value, self.path) if self.path and not isinstance(value, list) else value
        if isinstance(value, list) and self.path:
            found = [dig(item, self.path) for item in value]
        return next((text for check in condition.keys() & _CHECKS if (text := self._fails(check, found, about))), "")

    def _fails(self, check: str, found: Any, about: str) -> str:
        wanted = self._condition[check]
        if check in _OF_LISTS and not isinstance(found, list | None):
            return f"{about} is no list, so it has no {check}"
        match check:
            case "is":
                return "" if found in as_list(wanted) else f"{about} is {_short(found)}, not {wanted!r}"
            case "equals":
                return "" if found == wanted else f"{about} is {_short(found)}, not {wanted!r}"
            case "contains":
                return "" if wanted in str(found) else f"{about} is {_short(found)}: no {wanted!r}"
            case "count" | "at_least" | "at_most":
                many = len(found or [])
                met = {"count": many == wanted, "at_least": many >= wanted, "at_most": many <= wanted}[check]
                return "" if met else f"{about} has {many} {_names(found)}, not {check} {wanted}"
            case "names":
                return "" if sorted(wanted) == _names(found) else f"{about} are {_names(found)}, not {sorted(wanted)}"
            case "each":
                return _not_each(found, wanted, about)
            case "differ":
                values = [dig(item, wanted) for item in found or []]
                same = all(value == values[0] for value in values)
                return f"{about} all have {_short(values[:1])} at {wanted}" if same else ""
            case _:
                return ""


def _none_is_fine(condition: Json) -> bool:
    return "is" in condition and None in as_list(condition["is"]) and bool(condition.get("path"))


def _not_each(found: Any, wanted: Json, about: str) -> str:
    if not found:
        return f"{about} has none"
    for item in found:
        for path, value in wanted.items():
            if (have := dig(item, path)) not in as_list(value):
                return f"{about}: {_names([item])} has {_short(have)} at {path}, not {value!r}"
    return ""


def _names(found: Any) -> list[str]:
    return sorted(item["metadata"]["name"] for item in found or [] if isinstance(item, Mapping) and "metadata" in item)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 500 else text[:500] + "..."


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def named(pattern: str, name: str) -> bool:
    """Whether the name is this one, or matches its `*`."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), name) is not None


_PART = re.compile(r"\[[^\]]*\]|(?:\\.|[^.\[\]\\])+")


def dig(value: Any, path: str) -> Any:
    """`a.b[0].c`; `[key=value]` picks the first element that has it, `[*]` takes them all; `\\.` is a dot of a key."""
    parts = _PART.findall(path)
    for number, part in enumerate(parts):
        if value is None:
            return None
        if part == "[*]":
            rest = ".".join(parts[number + 1 :])
            return [dig(item, rest) for item in value]
        value = _one(value, part)
    return value


def _one(value: Any, part: str) -> Any:
    if part.startswith("["):
        if isinstance(value, Mapping):
            return value.get(part[1:-1])
        if not isinstance(value, list):
            return None
        if "=" in part:
            key, _, wanted = part[1:-1].partition("=")
            return next((item for item in value if str(item.get(key)) == wanted), None)
        index = int(part[1:-1])
        return value[index] if -len(value) <= index < len(value) else None
    return value.get(part.replace("\\.", ".")) if isinstance(value, Mapping) else None


def target(text: str) -> tuple[Resource, str]:
    """The resource and the name of `KIND/NAME`."""
    kind, _, name = text.partition("/")
    if kind not in BY_NAME:
        raise ScenarioFailed(f"no such kind: {kind} (known: {', '.join(sorted(BY_NAME))})")
    return BY_NAME[kind], name


def place(resource: Resource, world: World) -> str | None:
    return world.namespace if resource.namespaced else None
