"""What a pod asks of the cards of its node, by its containers' limits and its annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from vcbatch.api import names
from vcbatch.api.pod import Container, PodSpec
from vcbatch.api.quantity import MalformedQuantity, parse_quantity

WHOLE = 100
"""All cores of a GPU, in per cent."""


class Sharing(StrEnum):
    """How cards are handed out; a policy chooses one."""

    MEMORY = "memory"
    """So much memory of one card (`volcano.sh/gpu-memory`)."""
    NUMBER = "number"
    """Cards that nobody else uses (`volcano.sh/gpu-number`)."""
    VGPU = "vgpu"
    """Memory and cores of several cards, container by container (`volcano.sh/vgpu-*`)."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What one container wants: `count` cards with so much free each.

    `memory` is in MiB; where `percent` is given it is that share of the card's memory instead. `cores` is in the unit
    of the card's: per cent, or AI cores of an NPU. `alone` asks for cards that nobody uses.
    """

    count: int
    memory: int = 0
    percent: int | None = None
    cores: int = 0
    alone: bool = False

    def memory_of(self, card: int) -> int:
        """What it takes of a card with so much memory."""
        return self.memory if self.percent is None else card * self.percent // 100


@dataclass(frozen=True, slots=True)
class PodAsks:
    """What a pod asks, container by container, and which cards it may have: of these UUIDs and none of those, of types
    that contain one of these words and none of those, of nodes in this mode. `apart` keeps members of a gang off each
    other's cards, `distinct` containers of the pod. Where there is a `error`, no card will do, as it says."""

    asks: tuple[Ask, ...]
    uuids: frozenset[str] = frozenset()
    not_uuids: frozenset[str] = frozenset()
    types: tuple[str, ...] = ()
    not_types: tuple[str, ...] = ()
    mode: str = ""
    apart: bool = False
    distinct: bool = False
    error: str = ""

    @property
    def simple(self) -> bool:
        """Whether it wants one card, so that how many of its kind a node takes is the sum over its cards."""
        return len(self.asks) == 1 and self.asks[0].count == 1

    def admits(self, uuid: str, kind: str) -> bool:
        """Whether a card of that UUID and type may be its own."""
        if (self.uuids and uuid not in self.uuids) or uuid in self.not_uuids:
            return False
        upper = kind.upper()
        if self.types:
            return any(word in upper for word in self.types)
        return not any(word in upper for word in self.not_types)


def asks_of(spec: PodSpec, notes: Mapping[str, str], sharing: Sharing) -> PodAsks | None:
    """What a pod with that spec and those annotations asks under that way of sharing; None where that is nothing."""
    match sharing:
        case Sharing.MEMORY:
            amount = _peak(spec, names.GPU_MEMORY)
            return PodAsks((Ask(1, memory=amount),)) if amount > 0 else None
        case Sharing.NUMBER:
            count = _peak(spec, names.GPU_NUMBER)
            return PodAsks((Ask(count, alone=True),)) if count > 0 else None
        case Sharing.VGPU:
            asks = tuple(ask for container in spec.side_by_side if (ask := _vgpu(container)) is not None)
            return _filtered(asks, notes) if asks else None


def _peak(spec: PodSpec, name: str) -> int:
    """What the containers and side-cars take together, or more where an init container beside the side-cars that were
    started before it takes more."""
    beside = most = 0
    for container in spec.init_containers or ():
        amount = limit_of(container, name) or 0
        most = max(most, beside + amount)
        if container.restart_policy == "Always":
            beside += amount
    return max(most, beside + sum(limit_of(one, name) or 0 for one in spec.containers))


def _vgpu(container: Container) -> Ask | None:
    """A container that says how much memory and not how many cards wants one; without either amount it wants them
    whole."""
    count = limit_of(container, names.VGPU_NUMBER)
    memory = limit_of(container, names.VGPU_MEMORY)
    if count is None and memory is None:
        return None
    if count == 0:
        return None
    memory = amount_of(container, names.VGPU_MEMORY) or 0
    percent = amount_of(container, names.VGPU_MEMORY_PERCENTAGE)
    if percent is not None and percent > WHOLE:
        percent = None
    if percent is None and memory == 0:
        percent = WHOLE
    cores = amount_of(container, names.VGPU_CORES) or 0
    return Ask(1 if count is None else count, memory=memory, percent=percent, cores=cores, alone=cores == WHOLE)


def _filtered(asks: tuple[Ask, ...], notes: Mapping[str, str]) -> PodAsks:
    return PodAsks(
        asks,
        uuids=frozenset(words_of(notes.get(names.VGPU_USE_UUID))),
        not_uuids=frozenset(words_of(notes.get(names.VGPU_NOT_UUID))),
        types=tuple(word.upper() for word in words_of(notes.get(names.GPU_USE_TYPE))),
        not_types=tuple(word.upper() for word in words_of(notes.get(names.GPU_NOT_TYPE))),
        mode=notes.get(names.VGPU_MODE, ""),
        apart=notes.get(names.VGPU_PODGROUP_POLICY) == "spread",
    )


def words_of(text: str | None) -> list[str]:
    """The words of a list with commas."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def amount_of(container: Container, name: str) -> int | None:
    """What the container says of that resource in its limits, else in its requests; None where it says nothing."""
    limit = limit_of(container, name)
    if limit is not None or container.resources is None:
        return limit
    return _whole((container.resources.requests or {}).get(name))


def limit_of(container: Container, name: str) -> int | None:
    """What the container says of that resource in its limits; None where it says nothing."""
    return None if container.resources is None else _whole((container.resources.limits or {}).get(name))


def _whole(given: str | float | None) -> int | None:
    if given is None:
        return None
    try:
        return max(parse_quantity(given).value(), 0)
    except MalformedQuantity:
        return None
