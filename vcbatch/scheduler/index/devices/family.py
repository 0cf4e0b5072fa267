"""The interface of one kind of devices: what nodes report, what pods request, and the annotations of pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from vcbatch.api import names
from vcbatch.api.node import Node
from vcbatch.api.pod import PodSpec
from vcbatch.scheduler.index.devices.asks import PodAsks, Sharing, asks_of
from vcbatch.scheduler.index.devices.cards import Assignment, Card, cards_of, held, recorded
from vcbatch.scheduler.index.devices.config import DeviceConfig


class Family(Protocol):
    """One kind of devices. Two that are equal read and write the same."""

    @property
    def key(self) -> str:
        """Its name, the key of its usage between cycles."""
        ...

    @property
    def error(self) -> str:
        """Why its devices can't be used; empty if they can."""
        ...

    @property
    def factor(self) -> int:
        """The factor for memory that pods request of a partitioned card."""
        ...

    @property
    def lock(self) -> str:
        """The annotation that locks a node while a pod gets its devices."""
        ...

    def cards(self, node: Node) -> tuple[Card, ...]:
        """The cards that the node reports."""
        ...

    def asks(self, spec: PodSpec, notes: Mapping[str, str]) -> PodAsks | None:
        """The requests of a pod with that spec and those annotations; None if it has none."""
        ...

    def recorded(self, assignment: Assignment, cards: Sequence[Card], *, node: str, now: float) -> dict[str, str]:
        """The annotations that tell the node's device plugin what the pod gets. `now` is in seconds since 1970."""
        ...

    def held(self, notes: Mapping[str, str], asks: PodAsks | None, cards: Sequence[Card]) -> Assignment | None:
        """The assignment in a pod's annotations; None if they have none for these cards."""
        ...


@dataclass(frozen=True, slots=True)
class Gpus:
    """GPUs that are shared in one of the ways."""

    sharing: Sharing
    config: DeviceConfig

    @property
    def key(self) -> str:
        return "gpus"

    @property
    def error(self) -> str:
        return f"vGPUs aren't used: {self.config.error}" if self.config.error else ""

    @property
    def factor(self) -> int:
        return self.config.factor

    @property
    def lock(self) -> str:
        return names.VGPU_LOCK if self.sharing is Sharing.VGPU else names.GPU_LOCK

    def cards(self, node: Node) -> tuple[Card, ...]:
        return cards_of(node, self.sharing, self.config)

    def asks(self, spec: PodSpec, notes: Mapping[str, str]) -> PodAsks | None:
        return asks_of(spec, notes, self.sharing)

    def recorded(self, assignment: Assignment, cards: Sequence[Card], *, node: str, now: float) -> dict[str, str]:
        return recorded(assignment, cards, self.sharing, node=node, now=now)

    def held(self, notes: Mapping[str, str], asks: PodAsks | None, cards: Sequence[Card]) -> Assignment | None:
        return held(notes, asks, cards, self.sharing)
