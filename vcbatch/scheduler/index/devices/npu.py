"""Ascend chips: the fixed parts that they may be split into, and the ConfigMap that defines them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from vcbatch.scheduler.index.devices.documents import listing, mapping


class Template(NamedTuple):
    """A part that a chip may be split into: its memory in MiB and its AI cores. Without a name it is the whole chip."""

    memory: int
    cores: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One model of chips.

    Attributes:
        word: its name in annotations.
        resource: the extended resource that counts its parts.
        memory_resource: the resource name by which containers request the memory of a part, in MiB.
        allocatable: the memory of a whole chip that pods may use, in MiB.
        capacity: all of its memory; a request above `allocatable` and not above this gets the whole chip.
        cores: its AI cores; 0 if not configured.
        templates: the parts, the smallest memory first.
    """

    word: str
    resource: str
    memory_resource: str
    allocatable: int
    capacity: int
    cores: int = 0
    templates: tuple[Template, ...] = ()

    @property
    def whole(self) -> Template:
        """The whole chip."""
        return Template(self.allocatable, self.cores)

    def part(self, memory: int) -> Template | None:
        """The smallest part with at least this memory, else the whole chip; None if that hasn't enough either."""
        found = next((part for part in self.templates if memory <= part.memory), None)
        return found or (self.whole if memory <= self.capacity else None)


DEFAULT_CHIPS: Final = (
    Chip(
        word="Ascend310P",
        resource="huawei.com/Ascend310P",
        memory_resource="huawei.com/Ascend310P-memory",
        allocatable=21527,
        capacity=24576,
        cores=8,
        templates=(Template(3072, 1, "vir01"), Template(6144, 2, "vir02"), Template(12288, 4, "vir04")),
    ),
)
"""The chips that Volcano defines without a ConfigMap."""


def read_chips(given: object) -> tuple[Chip, ...]:
    """The chips under `vnpus` of the ConfigMap: a list, or a mapping with the list under `configs`. Raises `ValueError`
    or `TypeError` for invalid values."""
    entries = listing(mapping(cast("object", given)).get("configs") if isinstance(given, Mapping) else given)
    chips = tuple(_chip(mapping(entry), f"vnpus[{index}]") for index, entry in enumerate(entries))
    for key, values in (("commonWord", [c.word for c in chips]), ("resourceName", [c.resource for c in chips])):
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise ValueError(f"vnpus: {key} {twice[0]} is given twice")
    return chips


def _chip(given: Mapping[str, Any], where: str) -> Chip:
    parts = [
        Template(_amount(part, "memory", where), _amount(part, "aiCore", where), str(part.get("name") or ""))
        for part in map(mapping, listing(given.get("templates")))
    ]
    allocatable = _amount(given, "memoryAllocatable", where)
    return Chip(
        word=_text(given, "commonWord", where),
        resource=_text(given, "resourceName", where),
        memory_resource=_text(given, "resourceMemoryName", where),
        allocatable=allocatable,
        capacity=max(_amount(given, "memoryCapacity", where), allocatable),
        cores=_amount(given, "aiCore", where),
        templates=_sorted(parts),
    )


def _sorted(parts: Sequence[Template]) -> tuple[Template, ...]:
    return tuple(sorted(parts, key=lambda part: part.memory))


def _text(given: Mapping[str, Any], key: str, where: str) -> str:
    value = given.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{where}.{key}: want a name, got {value!r}")
    return value


def _amount(given: Mapping[str, Any], key: str, where: str) -> int:
    value = given.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{where}.{key}: want a whole number of at least 0, got {value!r}")
    return value
