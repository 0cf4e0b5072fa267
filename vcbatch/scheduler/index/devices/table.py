"""The cards of all nodes in arrays, their usage, and where a pod fits.

There are three layers: what is used, the part of it that terminating pods release, and what pods are pipelined on.
Every assignment is stored with its cards, so that releasing it restores each number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.index.devices.asks import WHOLE, Ask, PodAsks
from vcbatch.scheduler.index.devices.cards import MIG, UNLIMITED, Assignment, Card, Piece
from vcbatch.scheduler.index.devices.mig import Geometry, Place, pick

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MEMORY, CORES, USERS = 0, 1, 2
BINPACK, SPREAD = "binpack", "spread"
LOWEST = "lowest"
"""Cards are tried in the order of their index."""
_NETWORK_POINTS: Final = 10
"""The score of cards that all share a network."""
_MOST_PODS = 4096
"""The most pods of a kind that are tried on one node."""


class Layer(Enum):
    """How a pod uses cards. Cards of a terminating pod count as used until it has ended."""

    HELD = auto()
    LEAVING = auto()
    """Used by a terminating pod."""
    PROMISED = auto()
    """For a pipelined pod, on cards that terminating pods release."""


class Hold(NamedTuple):
    """The cards that one pod uses on its node."""

    node: str
    assignment: Assignment
    layer: Layer


@dataclass(slots=True)
class NodeCards:
    """The cards of one node, and their position in the arrays. `places` has the used partitions of partitioned cards,
    by card and partition, with their layer; `holders` the pods that use each card."""

    node: str
    cards: tuple[Card, ...]
    start: int
    places: list[dict[Place, list[Layer]]] = field(default_factory=list[dict[Place, list[Layer]]])
    holders: list[set[str]] = field(default_factory=list[set[str]])

    @property
    def span(self) -> slice:
        return slice(self.start, self.start + len(self.cards))


class Try:
    """The cards of a node in a trial that assigns them to one pod after the other, without changing anything."""

    def __init__(self, cards: Sequence[Card], taken: Counts, places: Sequence[Collection[Place]], factor: int) -> None:
        """`taken` is [3, C]: memory, cores and users of each card."""
        self._cards = cards
        self._memory: list[int] = taken[MEMORY].tolist()
        self._cores: list[int] = taken[CORES].tolist()
        self._users: list[int] = taken[USERS].tolist()
        self._places = [set(held) for held in places]
        self._factor = factor

    def put(self, asks: PodAsks, policy: str, barred: Collection[int] = ()) -> tuple[Assignment, float] | None:
        """Assign cards to one more pod: the pieces of each container, and the score of the chosen cards. None if not
        all of its containers fit; the trial can't be used after that."""
        if asks.mode and any(card.mode != asks.mode for card in self._cards):
            return None
        out: list[tuple[Piece, ...]] = []
        points = 0.0
        used = set(barred)
        for ask in asks.asks:
            pieces = self._chosen(ask, asks, policy, used)
            if len(pieces) < ask.count:
                return None
            for piece in pieces:
                self._take(piece)
                points += self._points(piece.card, policy)
            if asks.distinct:
                used.update(piece.card for piece in pieces)
            out.append(pieces)
        return tuple(out), points + self._together(out)

    def _chosen(self, ask: Ask, asks: PodAsks, policy: str, barred: Collection[int]) -> tuple[Piece, ...]:
        """The pieces of the container: of the first fitting cards, as far as there are enough; if the cards are in
        networks, of the network with most fitting cards first."""
        order = self._order(policy)
        fitting = (piece for i in order if i not in barred and (piece := self._piece(i, ask, asks)) is not None)
        if not self._networked:
            return tuple(islice(fitting, ask.count))
        found = list(fitting)
        sizes = Counter(self._cards[piece.card].network for piece in found)
        found.sort(key=lambda piece: (-sizes[(net := self._cards[piece.card].network)], net or 0))
        return tuple(found[: ask.count])

    @property
    def _networked(self) -> bool:
        return all(card.network is not None for card in self._cards)

    def _together(self, out: Sequence[Sequence[Piece]]) -> float:
        """The score of cards of one network: by the share of the cards in the network that has most of them."""
        if not self._networked:
            return 0.0
        sizes = Counter(self._cards[piece.card].network for pieces in out for piece in pieces)
        return _NETWORK_POINTS * max(sizes.values()) / sizes.total() if sizes else 0.0

    def _order(self, policy: str) -> list[int]:
        """The cards in the order in which they are tried; the highest index first among equals."""
        indexes = range(len(self._cards) - 1, -1, -1)
        if policy == LOWEST:
            return list(reversed(indexes))
        if policy == BINPACK:
            return sorted(indexes, key=lambda i: -self._memory[i])
        if policy == SPREAD:
            return sorted(indexes, key=lambda i: self._users[i])
        return list(indexes)

    def _piece(self, index: int, ask: Ask, asks: PodAsks) -> Piece | None:
        """The piece of the card for the container; None if the card doesn't fit."""
        card = self._cards[index]
        memory = ask.memory_of(card.memory)
        users, cores = self._users[index], self._cores[index]
        if not card.healthy or users >= card.places or card.memory - self._memory[index] < memory:
            return None
        if ask.alone and users:
            return None
        if cores + ask.cores > card.cores or (0 < card.cores <= cores and ask.cores == 0):
            return None
        if not asks.admits(card.uuid, card.kind):
            return None
        if card.mode != MIG:
            return Piece(index, memory, ask.cores)
        place = pick(card.geometries, self._places[index], memory * self._factor)
        if place is None:
            return None
        piece = Piece(index, memory, ask.cores, place)
        return piece if cost(card, piece, self._factor) <= card.memory - self._memory[index] else None

    def _take(self, piece: Piece) -> None:
        index = piece.card
        self._memory[index] += cost(self._cards[index], piece, self._factor)
        self._cores[index] += piece.cores
        self._users[index] += 1
        if piece.place is not None:
            self._places[index].add(piece.place)

    def _points(self, index: int, policy: str) -> float:
        card = self._cards[index]
        if policy == BINPACK:
            return 100.0 * self._memory[index] / card.memory if card.memory else 0.0
        return 100.0 if policy == SPREAD and self._users[index] == 1 else 0.0


def cost(card: Card, piece: Piece, factor: int) -> int:
    """The memory that a piece uses of its card: a partition is used as a whole."""
    if piece.place is None:
        return piece.memory
    group, number = piece.place
    geometry = next((g for g in card.geometries if g.group == group), Geometry("", ()))
    return geometry.memory(number) // factor


class CardTable:
    """The cards of all nodes. `row` of a card's node is -1 while the node isn't in the node table."""

    def __init__(self, *, policy: str, factor: int) -> None:
        self.policy = policy
        self.factor = factor
        self.holds: dict[str, Hold] = {}
        self.nodes: dict[str, NodeCards] = {}
        self._rows: npt.NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._size: Counts = np.zeros((3, 0), dtype=np.int64)
        self._healthy: npt.NDArray[np.bool_] = np.zeros(0, dtype=bool)
        self._plain: npt.NDArray[np.bool_] = np.zeros(0, dtype=bool)
        self._layers: dict[Layer, Counts] = {layer: np.zeros((3, 0), dtype=np.int64) for layer in Layer}
        self._known: dict[tuple[object, ...], tuple[int, tuple[float, ...]]] = {}

    # Cards ------------------------------------------------------------------------------------------------------------

    def lay(self, cards: Mapping[str, tuple[Card, ...]], rows: Mapping[str, int]) -> None:
        """Set the nodes' cards, without any assignments."""
        self.holds.clear()
        self.nodes.clear()
        every = [(name, card) for name in sorted(cards) for card in cards[name]]
        for at, (name, card) in enumerate(every):
            if card.number == 0:
                made = NodeCards(name, cards[name], at)
                made.places = [{} for _ in made.cards]
                made.holders = [set() for _ in made.cards]
                self.nodes[name] = made
        self._rows = np.array([rows.get(name, -1) for name, _ in every], dtype=np.intp)
        sizes = [(card.memory, card.cores, min(card.places, UNLIMITED)) for _, card in every]
        self._size = np.array(sizes, dtype=np.int64).reshape(-1, 3).T
        self._healthy = np.array([card.healthy for _, card in every], dtype=bool)
        self._plain = np.array([card.mode != MIG for _, card in every], dtype=bool)
        self._layers = {layer: np.zeros((3, len(every)), dtype=np.int64) for layer in Layer}
        self._known.clear()

    # Assignments ------------------------------------------------------------------------------------------------------

    def hold(self, uid: str, hold: Hold) -> None:
        """Add the pod's assignment."""
        self.holds[uid] = hold
        self._book(uid, hold, 1)

    def release(self, uid: str) -> Hold | None:
        """Remove the pod's assignment; returns it, None if there was none."""
        hold = self.holds.pop(uid, None)
        if hold is not None:
            self._book(uid, hold, -1)
        return hold

    def turn(self, uid: str, layer: Layer) -> None:
        """Move the pod's assignment to this layer."""
        hold = self.release(uid)
        if hold is not None:
            self.hold(uid, hold._replace(layer=layer))

    def _book(self, uid: str, hold: Hold, step: int) -> None:
        node = self.nodes.get(hold.node)
        if node is None:
            return
        layers = [self._layers[hold.layer]]
        if hold.layer is Layer.LEAVING:
            layers.append(self._layers[Layer.HELD])  # it counts as used until the pod has ended
        for piece in _pieces(hold.assignment):
            card = node.cards[piece.card]
            amounts = (cost(card, piece, self.factor), piece.cores, 1)
            for layer in layers:
                layer[:, node.start + piece.card] += step * np.array(amounts, dtype=np.int64)
            if piece.place is not None:
                held = node.places[piece.card].setdefault(piece.place, [])
                held.append(hold.layer) if step > 0 else held.remove(hold.layer)
                if not held:
                    del node.places[piece.card][piece.place]
            (node.holders[piece.card].add if step > 0 else node.holders[piece.card].discard)(uid)

    # Slots ------------------------------------------------------------------------------------------------------------

    def assign(
        self, node: str, asks: PodAsks, *, promising: bool, barred: Collection[int] = ()
    ) -> tuple[Assignment, float] | None:
        """The assignment of one more pod on the node's free cards or, with `promising`, also on those being released;
        None if it doesn't fit. `barred` cards are left out."""
        cards = self.nodes.get(node)
        return None if cards is None else self._try(cards, promising=promising).put(asks, self.policy, barred)

    def slots(self, asks: PodAsks, count: int, rows: npt.NDArray[np.intp], *, promising: bool) -> Floats:
        """How many pods of this kind the nodes of these rows have slots for; [len(rows)]. `count` is the number of
        nodes."""
        if asks.simple and bool(self._plain.all()):
            return self._sums(asks, count, promising=promising)[rows]
        return np.array([float(s) for s, _ in self.runs(asks, rows, promising=promising)])

    def runs(
        self, asks: PodAsks, rows: npt.NDArray[np.intp], *, promising: bool
    ) -> Iterator[tuple[int, tuple[float, ...]]]:
        """For each of the rows, how many pods of this kind fit, and the scores of the first, the second … of them.
        Equal cards in equal states are tried once."""
        by_row = {int(self._rows[node.start]): node for node in self.nodes.values()}
        taken = self._taken(promising=promising)
        for row in rows:
            node = by_row.get(int(row))
            if node is None:
                yield 0, ()
                continue
            key = (
                asks,
                node.cards,
                taken[:, node.span].tobytes(),
                tuple(tuple(sorted(self._used(p, promising=promising))) for p in node.places),
            )
            known = self._known.get(key)
            if known is None:
                if len(self._known) > _MOST_PODS:
                    self._known.clear()
                known = self._known[key] = self._run(node, asks, promising=promising)
            yield known

    def _run(self, node: NodeCards, asks: PodAsks, *, promising: bool) -> tuple[int, tuple[float, ...]]:
        trial, points = self._try(node, promising=promising), list[float]()
        while len(points) < _MOST_PODS and (found := trial.put(asks, self.policy)) is not None:
            points.append(found[1])
        return len(points), tuple(points)

    def barred(self, node: str, minds: Callable[[str], bool]) -> set[int]:
        """The node's cards that are used by a pod for which `minds` returns true."""
        cards = self.nodes.get(node)
        return set() if cards is None else {i for i, uids in enumerate(cards.holders) if any(map(minds, uids))}

    def _sums(self, asks: PodAsks, count: int, *, promising: bool) -> Floats:
        """For pods that request one card: the sum over each node's cards of the pods that each takes; [N]."""
        ask = asks.asks[0]
        size, cores, places = self._size
        taken = self._taken(promising=promising)
        free = size - taken[MEMORY]
        need = np.full(len(size), ask.memory) if ask.percent is None else size * ask.percent // WHOLE
        each = np.minimum(places - taken[USERS], np.where(need > 0, free // np.maximum(need, 1), _MOST_PODS))
        if ask.alone:
            each = np.where(taken[USERS] == 0, np.minimum(each, 1), 0)
        if ask.cores:
            each = np.minimum(each, (cores - taken[CORES]) // ask.cores)
        else:
            each = np.where((cores > 0) & (taken[CORES] >= cores), 0, each)
        open_ = self._healthy & (free >= need) & self._admitted(asks) & (self._rows >= 0)
        each = np.where(open_, np.maximum(each, 0), 0)
        return np.bincount(self._rows[open_], weights=each[open_].astype(np.float64), minlength=count).astype(
            np.float64
        )

    def _admitted(self, asks: PodAsks) -> npt.NDArray[np.bool_]:
        """The cards that pass the pod's own filters."""
        if not (asks.uuids or asks.not_uuids or asks.types or asks.not_types or asks.mode):
            return np.ones(len(self._rows), dtype=bool)
        found: list[bool] = []
        for node in sorted(self.nodes.values(), key=lambda n: n.start):
            wrong = bool(asks.mode) and any(card.mode != asks.mode for card in node.cards)
            found += [not wrong and asks.admits(card.uuid, card.kind) for card in node.cards]
        return np.array(found, dtype=bool)

    def _taken(self, *, promising: bool) -> Counts:
        """The used quantities, [3, C]. For pods that start now, pipelined quantities beyond those being released count
        as well."""
        held, leaving, promised = (self._layers[layer] for layer in Layer)
        return held - leaving + promised if promising else held + np.maximum(promised - leaving, 0)

    @staticmethod
    def _used(places: Mapping[Place, Sequence[Layer]], *, promising: bool) -> set[Place]:
        if promising:
            return {place for place, layers in places.items() if set(layers) != {Layer.LEAVING}}
        return set(places)

    def _try(self, node: NodeCards, *, promising: bool) -> Try:
        places = [self._used(held, promising=promising) for held in node.places]
        return Try(node.cards, self._taken(promising=promising)[:, node.span], places, self.factor)

    def totals(self) -> Mapping[str, tuple[tuple[int, ...], ...]]:
        """By node, the memory, cores and users of each of its cards; for comparison."""
        held = self._layers[Layer.HELD]
        return {
            name: tuple(tuple(int(a) for a in held[:, node.start + i]) for i in range(len(node.cards)))
            for name, node in self.nodes.items()
        }


def _pieces(assignment: Assignment) -> Iterator[Piece]:
    for pieces in assignment:
        yield from pieces
