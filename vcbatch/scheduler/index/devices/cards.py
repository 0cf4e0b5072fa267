"""The cards of a node, and the annotations of nodes and pods about cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vcbatch.api import names
from vcbatch.api.node import Node
from vcbatch.api.quantity import MalformedQuantity, parse_quantity
from vcbatch.scheduler.index.devices.asks import WHOLE, PodAsks, Sharing
from vcbatch.scheduler.index.devices.config import DeviceConfig
from vcbatch.scheduler.index.devices.mig import Geometry, Place, decoded, encoded

HAMI_CORE, MIG, MPS = "hami-core", "mig", "mps"
UNLIMITED = 1 << 30
"""More users than a card ever has."""
_VENDOR = "NVIDIA"


@dataclass(frozen=True, slots=True)
class Card:
    """One card: `number` is its index on the node, `memory` in MiB, `places` how many may use it at once, `mode` how it
    is shared, `cores` in the unit of requests (0 if cores aren't counted). `geometries` are the ways to partition it;
    empty if it isn't partitioned. `network` is the network that it shares with other cards of its node; None unless
    every card is in one. Cards of one network are preferred together."""

    number: int
    uuid: str
    memory: int
    places: int = UNLIMITED
    kind: str = ""
    healthy: bool = True
    mode: str = HAMI_CORE
    geometries: tuple[Geometry, ...] = ()
    cores: int = WHOLE
    network: int | None = None


class Piece(NamedTuple):
    """The part of a card that one container uses; `place` is the partition of a partitioned card."""

    card: int
    memory: int
    cores: int
    place: Place | None = None


Assignment = tuple[tuple[Piece, ...], ...]
"""The pieces of a pod, container by container; `card` is the index on its node."""


def cards_of(node: Node, sharing: Sharing, config: DeviceConfig) -> tuple[Card, ...]:
    """The cards that the node reports."""
    if sharing is Sharing.VGPU:
        return _registered((node.metadata.annotations or {}).get(names.VGPU_REGISTER, ""), config)
    capacity = node.status.capacity or {}
    count, memory = whole_of(capacity.get(names.GPU_NUMBER)), whole_of(capacity.get(names.GPU_MEMORY))
    if not count or (sharing is Sharing.MEMORY and not memory):
        return ()
    unhealthy = _numbers((node.metadata.annotations or {}).get(names.GPU_UNHEALTHY, ""))
    return tuple(Card(i, str(i), memory // count, healthy=i not in unhealthy) for i in range(min(count, 1024)))


def _registered(text: str, config: DeviceConfig) -> tuple[Card, ...]:
    """Reads records `uuid,places,memory,type,health,mode`, each terminated by a colon. An invalid record makes the node
    one without cards: nothing is placed on cards that are partly understood."""
    cards: list[Card] = []
    for record in text.split(":"):
        if not record.strip():
            continue
        fields = [field.strip() for field in record.split(",")]
        if len(fields) < 6 or not fields[1].isdecimal() or not fields[2].isdecimal():
            return ()
        uuid, places, memory, kind, health, mode = fields[:6]
        geometries = config.geometries(kind) if mode == MIG else ()
        if mode == MIG and not geometries:
            mode = HAMI_CORE  # cards without known geometries are shared unpartitioned (Volcano)
        if mode not in (MIG, MPS):
            mode = HAMI_CORE
        healthy = health in ("1", "t", "T", "true", "TRUE", "True")
        cards.append(Card(len(cards), uuid, int(memory), int(places), kind, healthy, mode, geometries))
    return tuple(cards)


def whole_of(given: str | float | None) -> int:
    """The quantity as an integer; 0 without one."""
    try:
        return 0 if given is None else max(parse_quantity(given).value(), 0)
    except MalformedQuantity:
        return 0


def _numbers(text: str) -> set[int]:
    return {int(part) for part in text.split(",") if part.strip().isdecimal()}


# Pods -----------------------------------------------------------------------------------------------------------------


def recorded(
    assignment: Assignment, cards: Sequence[Card], sharing: Sharing, *, node: str, now: float
) -> dict[str, str]:
    """The annotations that tell the node's device plugin what the pod gets. `now` is in seconds since 1970."""
    if sharing is not Sharing.VGPU:
        numbers = ",".join(str(piece.card) for pieces in assignment for piece in pieces)
        return {names.GPU_INDEX: numbers, names.GPU_PREDICATE_TIME: str(int(now * 1_000_000_000))}
    ids = ";".join("".join(f"{_record(piece, cards)}:" for piece in pieces) for pieces in assignment)
    seconds = str(int(now))
    return {
        names.VGPU_IDS: ids,
        names.VGPU_TO_ALLOCATE: ids,
        names.VGPU_NODE: node,
        names.VGPU_TIME: seconds,
        names.DEVICE_BIND_TIME: seconds,
        names.DEVICE_BIND_PHASE: "allocating",
    }


def _record(piece: Piece, cards: Sequence[Card]) -> str:
    card = cards[piece.card]
    uuid = card.uuid if piece.place is None else encoded(card.uuid, piece.place)
    return f"{uuid},{_VENDOR},{piece.memory},{piece.cores}"


def held(notes: Mapping[str, str], asks: PodAsks | None, cards: Sequence[Card], sharing: Sharing) -> Assignment | None:
    """The assignment in a pod's annotations; None if they have none for these cards."""
    if sharing is Sharing.VGPU:
        text = notes.get(names.VGPU_IDS)
        return None if text is None else _decoded(text, {card.uuid: card.number for card in cards})
    numbers = sorted(_numbers(notes.get(names.GPU_INDEX, "")))
    if not numbers or asks is None:
        return None
    memory = asks.asks[0].memory if sharing is Sharing.MEMORY else 0
    return (tuple(Piece(number, memory, 0) for number in numbers if number < len(cards)),)


def _decoded(text: str, numbers: Mapping[str, int]) -> Assignment | None:
    found: list[tuple[Piece, ...]] = []
    for container in text.split(";"):
        pieces: list[Piece] = []
        for record in container.split(":"):
            fields = record.split(",")
            if len(fields) < 4 or not fields[2].isdecimal() or not fields[3].isdecimal():
                continue
            uuid, place = decoded(fields[0])
            if uuid in numbers:
                pieces.append(Piece(numbers[uuid], int(fields[2]), int(fields[3]), place))
        found.append(tuple(pieces))
    return tuple(found) if any(found) else None
