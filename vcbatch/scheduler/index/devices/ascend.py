"""NPUs of one chip model, in the annotations of HAMi's device plugin for Ascend chips."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from vcbatch.api import names
from vcbatch.api.node import Node
from vcbatch.api.pod import Container, PodSpec
from vcbatch.scheduler.index.devices.asks import Ask, PodAsks, amount_of, limit_of, words_of
from vcbatch.scheduler.index.devices.cards import Assignment, Card, Piece, whole_of
from vcbatch.scheduler.index.devices.npu import Chip

_NETWORKED: Final = "Ascend910"
"""Chips whose names start with this are connected by networks within a node."""
_SOFT_SLICES: Final = "hami-core"
_MOST_CARDS: Final = 1024


class _Custom(msgspec.Struct, frozen=True):
    network: float | None = msgspec.field(default=None, name="NetworkID")


class _Registered(msgspec.Struct, frozen=True):
    """One chip in a node's register; `devmem` is in MiB, `count` how many parts it may be split into. Values that are
    false or 0 are left out in the annotation."""

    id: str
    count: int = 0
    devmem: int = 0
    type: str = ""
    health: bool = False
    custominfo: _Custom = _Custom()


@dataclass(frozen=True, slots=True)
class Npus:
    """The NPUs of one chip model."""

    chip: Chip
    error_text: str = ""

    @property
    def key(self) -> str:
        return f"npus/{self.chip.word}"

    @property
    def error(self) -> str:
        return f"NPUs aren't used: {self.error_text}" if self.error_text else ""

    @property
    def factor(self) -> int:
        return 1

    @property
    def lock(self) -> str:
        return self.chip.word

    # Nodes ------------------------------------------------------------------------------------------------------------

    def cards(self, node: Node) -> tuple[Card, ...]:
        """The cards in the node's register. Empty if the node has none of the resource, because its device plugin isn't
        running, and if the register is invalid."""
        text = (node.metadata.annotations or {}).get(names.NPU_REGISTER + self.chip.word)
        if text is None or not whole_of((node.status.allocatable or {}).get(self.chip.resource)):
            return ()
        try:
            entries = msgspec.json.decode(text, type=list[_Registered])
        except msgspec.DecodeError:  # also for valid JSON that isn't such a list
            return ()
        known = list({entry.id: entry for entry in entries[:_MOST_CARDS]}.values())
        joined = self.chip.word.startswith(_NETWORKED) and all(e.custominfo.network is not None for e in known)
        return tuple(
            Card(
                number,
                entry.id,
                entry.devmem,
                entry.count,
                kind=entry.type,
                healthy=entry.health,
                cores=self.chip.cores,
                network=int(entry.custominfo.network or 0) if joined else None,
            )
            for number, entry in enumerate(known)
        )

    # Pods -------------------------------------------------------------------------------------------------------------

    def asks(self, spec: PodSpec, notes: Mapping[str, str]) -> PodAsks | None:
        """The requests of the containers, with different chips for each: the device plugin identifies a container by
        its chips."""
        asks = tuple(ask for container in spec.side_by_side if (ask := self._ask(container)) is not None)
        if not asks:
            return None
        word = self.chip.word
        return PodAsks(
            asks,
            uuids=frozenset(words_of(notes.get(names.NPU_USE_UUID.format(word)))),
            not_uuids=frozenset(words_of(notes.get(names.NPU_NOT_UUID.format(word)))),
            distinct=True,
            error=self._unfit(asks, notes),
        )

    def _ask(self, container: Container) -> Ask | None:
        """A container that requests memory and no number of chips gets one; without memory it gets whole chips. A part
        has the size of its template."""
        count, memory = limit_of(container, self.chip.resource), limit_of(container, self.chip.memory_resource)
        if count == 0 or (count is None and memory is None):
            return None
        memory = amount_of(container, self.chip.memory_resource) or 0
        part = self.chip.part(memory) if memory else self.chip.whole
        number = 1 if count is None else count
        if part is None:
            return Ask(number, memory=memory, cores=self.chip.cores, alone=True)
        return Ask(number, memory=part.memory, cores=part.cores, alone=part == self.chip.whole)

    def _unfit(self, asks: Sequence[Ask], notes: Mapping[str, str]) -> str:
        chip = self.chip
        if notes.get(names.NPU_MODE) == _SOFT_SLICES:
            return f"{names.NPU_MODE}: {_SOFT_SLICES} isn't supported, only parts by template are"
        for ask in asks:
            if ask.memory > chip.capacity:
                return f"{chip.memory_resource} {ask.memory} is more than a chip has ({chip.capacity})"
            if ask.count > 1 and not ask.alone:
                return f"several {chip.resource} are given whole only; {chip.memory_resource} must be left out"
        return ""

    def recorded(self, assignment: Assignment, cards: Sequence[Card], *, node: str, now: float) -> dict[str, str]:
        word, seconds = self.chip.word, str(int(now))
        ids = "".join(
            "".join(f"{cards[piece.card].uuid},{word},{piece.memory},0:" for piece in pieces) + ";"
            for pieces in assignment
        )
        return {
            names.NPU_TO_ALLOCATE.format(word): ids,
            names.NPU_ALLOCATED.format(word): ids,
            names.NPU_PARTS.format(word): json.dumps(list(self._parts(assignment, cards)), separators=(",", ":")),
            names.NPU_PREDICATE_TIME: seconds,
            names.NPU_NODE: node,
            names.NPU_TIME: seconds,
            names.NPU_BIND_TIME: seconds,
            names.NPU_BIND_PHASE: "allocating",
        }

    def _parts(self, assignment: Assignment, cards: Sequence[Card]) -> Iterator[dict[str, str]]:
        """Each chip with the template of its part; a whole chip has none."""
        for pieces in assignment:
            for piece in pieces:
                part = self.chip.part(piece.memory) or self.chip.whole
                yield {"UUID": cards[piece.card].uuid, **({"temp": part.name} if part.name else {})}

    def held(self, notes: Mapping[str, str], asks: PodAsks | None, cards: Sequence[Card]) -> Assignment | None:
        text = notes.get(names.NPU_ALLOCATED.format(self.chip.word))
        text = notes.get(names.NPU_TO_ALLOCATE.format(self.chip.word)) if text is None else text
        if text is None:
            return None
        numbers = {card.uuid: card.number for card in cards}
        found = tuple(tuple(self._decoded(container, numbers)) for container in text.split(";"))
        return found if any(found) else None

    def _decoded(self, text: str, numbers: Mapping[str, int]) -> Iterator[Piece]:
        for record in text.split(":"):
            fields = record.split(",")
            if len(fields) >= 4 and fields[0] in numbers and fields[2].isdecimal():
                memory = int(fields[2])
                part = self.chip.part(memory) or self.chip.whole
                yield Piece(numbers[fields[0]], memory, part.cores)
