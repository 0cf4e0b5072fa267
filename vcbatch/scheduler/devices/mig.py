"""Cards that are cut into fixed parts (MIG): which ways of cutting there are, and which part a request gets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import yaml

DEVICE_CONFIG = "device-config.yaml"
"""The key of the ConfigMap that has the geometries."""


@dataclass(frozen=True, slots=True)
class Part:
    """So many parts of a card with so much memory each, in MiB."""

    name: str
    memory: int
    count: int


@dataclass(frozen=True, slots=True)
class Geometry:
    """One way to cut a card: parts are counted through, from 0."""

    group: str
    parts: tuple[Part, ...]

    def places(self) -> Iterator[tuple[int, Part]]:
        """Every part with its number."""
        number = 0
        for part in self.parts:
            for _ in range(part.count):
                yield number, part
                number += 1

    def memory(self, place: int) -> int:
        """The memory of the part of that number; 0 where there is none."""
        return next((part.memory for number, part in self.places() if number == place), 0)


Place = tuple[str, int]
"""A part in use: the group of its geometry, and its number."""


class DeviceConfig(NamedTuple):
    """What the ConfigMap of the cards says: the geometries of card models, by words in their type; by how much memory
    that pods ask for is multiplied; and what of it isn't understood (empty where all is)."""

    models: tuple[tuple[tuple[str, ...], tuple[Geometry, ...]], ...] = ()
    factor: int = 1
    fault: str = ""

    def geometries(self, kind: str) -> tuple[Geometry, ...]:
        """How a card of that type may be cut; empty where nobody says."""
        for words, found in self.models:
            if any(word in kind for word in words):
                return found
        return ()


def read_config(text: str, *, resources: Mapping[str, str]) -> DeviceConfig:
    """The ConfigMap's text. `resources` has the names that are supported, by the key that would rename them."""
    try:
        document: object = yaml.safe_load(text)
        nvidia = _mapping(_mapping(document).get("nvidia"))
        renamed = next(
            (f"{key} is {nvidia[key]}, only {name} is supported"
             for key, name in resources.items() if nvidia.get(key) not in (None, "", name)),
            "",
        )  # fmt: skip
        models = tuple(
            (
                tuple(str(word) for word in _list(entry.get("models"))),
                tuple(_geometry(_mapping(g)) for g in _list(entry.get("allowedGeometries"))),
            )
            for entry in map(_mapping, _list(nvidia.get("knownMigGeometries")))
        )
        return DeviceConfig(models, max(int(nvidia.get("gpuMemoryFactor") or 1), 1), renamed)
    except (yaml.YAMLError, ValueError, TypeError) as error:
        return DeviceConfig(fault=f"{DEVICE_CONFIG} can't be read: {str(error).splitlines()[0]}")


def _geometry(given: Mapping[str, Any]) -> Geometry:
    parts = [_mapping(part) for part in _list(given.get("geometries"))]
    return Geometry(
        str(given.get("group", "")),
        tuple(Part(str(p.get("name", "")), int(p.get("memory", 0)), int(p.get("count", 0))) for p in parts),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"want a mapping, got {value!r}")
    return cast("Mapping[str, Any]", value)


def _list(value: object) -> Sequence[Any]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise TypeError(f"want a list, got {value!r}")
    return cast("Sequence[Any]", value)


def pick(geometries: Sequence[Geometry], taken: Collection[Place], memory: int) -> Place | None:
    """The smallest free part with so much memory. A card that is in use is cut in one way already; else the first way
    that has such a part."""
    groups = {group for group, _ in taken}
    for geometry in geometries:
        if groups and geometry.group not in groups:
            continue
        free = [(part.memory, number) for number, part in geometry.places() if (geometry.group, number) not in taken]
        fitting = [found for found in sorted(free) if found[0] >= memory]
        if fitting:
            return geometry.group, fitting[0][1]
    return None


def encoded(uuid: str, place: Place) -> str:
    """The UUID of a part, as the device plugin reads it."""
    return f"{uuid}[{place[0]}-{place[1]}]"


def decoded(text: str) -> tuple[str, Place | None]:
    """The card's UUID and the part of it that a UUID means."""
    uuid, bracket, rest = text.partition("[")
    group, dash, number = rest.rstrip("]").rpartition("-")
    if not bracket or not dash or not number.isdecimal():
        return text, None
    return uuid, (group, int(number))
