"""The card requests of a pod, from its containers' limits and its annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from vcbatch.api import names
from vcbatch.api.pod import Container, PodSpec
from vcbatch.api.quantity import MalformedQuantity, parse_quantity

WHOLE = 100
"""All cores of a GPU, in percent."""


class Sharing(StrEnum):
    """How cards are shared; the scheduler configuration selects one way."""

    MEMORY = "memory"
    """A quantity of memory of one card (`volcano.sh/gpu-memory`)."""
    NUMBER = "number"
    """Exclusive cards (`volcano.sh/gpu-number`)."""
    VGPU = "vgpu"
    """Memory and cores of several cards, container by container (`volcano.sh/vgpu-*`)."""


@dataclass(frozen=True, slots=True)
class Ask:
    """The request of one container: `count` cards with these free quantities each.

    `memory` is in MiB; if `percent` is given, it is that share of the card's memory instead. `cores` is in the unit of
    the card's: percent, or AI cores of an NPU. `alone` requests cards without other users.
    """

    count: int
    memory: int = 0
    percent: int | None = None
    cores: int = 0
    alone: bool = False

    def memory_of(self, card: int) -> int:
        """The memory used on a card with `card` MiB."""
        return self.memory if self.percent is None else card * self.percent // 100


@dataclass(frozen=True, slots=True)
class PodAsks:
    """The requests of a pod, container by container, and filters of cards: these UUIDs and none of those, types that
    contain one of these words and none of those, nodes in this mode. `apart` keeps members of a gang from sharing
    cards, `distinct` containers of the pod. If `error` is set, no card can serve the pod, for that reason."""

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
        """Whether it requests one card, so that the number of slots of a node is the sum over its cards."""
        return len(self.asks) == 1 and self.asks[0].count == 1

    def admits(self, uuid: str, kind: str) -> bool:
        """Whether a card of that UUID and type may be assigned."""
        if (self.uuids and uuid not in self.uuids) or uuid in self.not_uuids:
            return False
        upper = kind.upper()
        if self.types:
            return any(word in upper for word in self.types)
        return not any(word in upper for word in self.not_types)


def asks_of(spec: PodSpec, notes: Mapping[str, str], sharing: Sharing) -> PodAsks | None:
    """The requests of a pod with that spec and those annotations in this way of sharing; None if it has none."""
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
    """The sum for containers and side-cars, or the peak of an init container together with the side-cars started before
    it, if that is larger."""
    beside = most = 0
    for container in spec.init_containers or ():
        amount = limit_of(container, name) or 0
        most = max(most, beside + amount)
        if container.restart_policy == "Always":
            beside += amount
    return max(most, beside + sum(limit_of(one, name) or 0 for one in spec.containers))


def _vgpu(container: Container) -> Ask | None:
    """A container that requests memory and no number of cards gets one; without memory and percentage it gets whole
    cards."""
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
    """The items of a comma-separated list."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def amount_of(container: Container, name: str) -> int | None:
    """The container's limit of that resource, else its request; None without either."""
    limit = limit_of(container, name)
    if limit is not None or container.resources is None:
        return limit
    return _whole((container.resources.requests or {}).get(name))


def limit_of(container: Container, name: str) -> int | None:
    """The container's limit of that resource; None without one."""
    return None if container.resources is None else _whole((container.resources.limits or {}).get(name))


def _whole(given: str | float | None) -> int | None:
    if given is None:
        return None
    try:
        return max(parse_quantity(given).value(), 0)
    except MalformedQuantity:
        return None
