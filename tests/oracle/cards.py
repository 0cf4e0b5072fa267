"""deviceshare: memory of one card, whole cards, or parts of several, container by container."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import yaml

from tests.oracle.model import Json, Node, Task
from tests.oracle.near import NearOracle
from tests.oracle.rules import Rules

PREFIX = "volcano.sh/"
UNSET = 101


class Use(NamedTuple):
    """The share of a card that a container uses; `part` identifies the geometry and the part of a partitioned
    (MIG) card."""

    memory: float
    cores: float = 0.0
    part: tuple[str, int] | None = None


@dataclass
class Card:
    """A card and the shares of its users: memory, and per cent of its cores. `cuts` are the possible partitionings: the
    memory of each part, by name."""

    uuid: str
    memory: float
    places: float = math.inf
    kind: str = ""
    cuts: Mapping[str, Sequence[int]] = field(default_factory=dict)
    uses: list[tuple[Task | None, Use]] = field(default_factory=list)

    @property
    def free(self) -> float:
        return self.memory - sum(use.memory for _, use in self.uses)

    @property
    def cores(self) -> float:
        return sum(use.cores for _, use in self.uses)

    def share(self, memory: float, cores: float) -> Use | None:
        """The share that a user with this request would get; None where the card lacks capacity."""
        if len(self.uses) >= self.places or self.free < memory or self.cores + cores > 100:
            return None
        if (cores == 100 and self.uses) or (self.cores >= 100 and cores == 0):
            return None
        if not self.cuts:
            return Use(memory, cores)
        taken = {use.part for _, use in self.uses if use.part is not None}
        ways = [way for way in self.cuts if not taken or any(way == cut for cut, _ in taken)]
        for way in ways:
            parts = [(size, i) for i, size in enumerate(self.cuts[way]) if size >= memory and (way, i) not in taken]
            if parts:
                size, i = min(parts)
                return Use(size, cores, (way, i)) if size <= self.free else None
        return None


class Cards(Rules):
    def __init__(self, oracle: NearOracle, world: Json, given: Json) -> None:
        super().__init__(oracle, world, given)
        self._mode = next(
            mode for mode in ("GPUSharing", "GPUNumber", "VGPU") if given.get(f"deviceshare.{mode}Enable")
        )
        self._policy: str = given.get("deviceshare.SchedulePolicy", "")
        self._models: list[Json] = [
            model
            for config in world.get("configMaps") or ()
            for model in yaml.safe_load(config["data"]["device-config.yaml"])["nvidia"]["knownMigGeometries"]
        ]
        self._cards = {node["metadata"]["name"]: self._read(node) for node in world["nodes"]}
        self._pods = {pod["metadata"]["uid"]: pod for pod in world["pods"]}
        for node in oracle.nodes:
            for task in node.tasks:
                self._remember(task, self._cards[node.name])

    # Cards ---------------------------------------------------------------------------------------------------------

    def _read(self, node: Json) -> list[Card]:
        notes, capacity = node["metadata"].get("annotations") or {}, node["status"]["capacity"]
        if self._mode == "VGPU":
            records = [r.split(",") for r in notes.get(f"{PREFIX}node-vgpu-register", "").split(":") if r]
            return [
                Card(uuid, float(memory), float(places) if health == "true" else 0, kind, self._cuts(kind, mode))
                for uuid, places, memory, kind, health, mode in records
            ]
        number = int(capacity.get(f"{PREFIX}gpu-number", 0))
        memory = int(capacity.get(f"{PREFIX}gpu-memory", 0)) // number if number else 0
        bad = notes.get(f"{PREFIX}gpu-unhealthy-ids", "").split(",")
        return [Card(str(i), memory, 0 if str(i) in bad else math.inf) for i in range(number)]

    def _cuts(self, kind: str, mode: str) -> dict[str, list[int]]:
        model = next((m for m in self._models if mode == "mig" and any(word in kind for word in m["models"])), None)
        return {
            cut["group"]: [part["memory"] for part in cut["geometries"] for _ in range(part["count"])]
            for cut in (model["allowedGeometries"] if model is not None else ())
        }

    def _remember(self, task: Task, cards: Sequence[Card]) -> None:
        """Record the shares that a running pod was allocated."""
        notes = self._pods[task.uid]["metadata"]["annotations"]
        by_uuid = {card.uuid: card for card in cards}
        for record in filter(None, notes.get(f"{PREFIX}vgpu-ids-new", "").replace(";", ":").split(":")):
            uuid, _, memory, cores = record.split(",")
            by_uuid[uuid].uses.append((task, Use(float(memory), float(cores))))
        if (index := notes.get(f"{PREFIX}gpu-index")) is not None:
            memory = self._asked(task, "gpu-memory") if self._mode == "GPUSharing" else 0
            by_uuid[index].uses.append((task, Use(memory)))

    def _asked(self, task: Task, name: str) -> int:
        return sum(_limits(container).get(name, 0) for container in self._pods[task.uid]["spec"]["containers"])

    # Allocation ----------------------------------------------------------------------------------------------------

    def _try(self, node: Node, task: Task) -> float | None:
        """Allocate cards of the node to the pod, container by container; returns the points of these cards. None,
        without any allocation, where one of its containers doesn't find enough."""
        points = 0.0
        for container in self._pods[task.uid]["spec"]["containers"]:
            number, cards = self._wanted(node, task, container)
            if len(cards) < number:
                self.gone(node, task)
                return None
            for card, use in cards[:number]:
                alone = not card.uses
                card.uses.append((task, use))
                full = 100 * (card.memory - card.free) / card.memory if card.memory else 0.0
                points += {"binpack": full, "spread": 100.0 * alone}.get(self._policy, 0.0)
        return points

    def _wanted(self, node: Node, task: Task, container: Json) -> tuple[int, list[tuple[Card, Use]]]:
        """The number of cards that the container requests, and the cards that suit it with the share of each, the best
        first."""
        cards, limits = self._cards[node.name], _limits(container)
        first = container is self._pods[task.uid]["spec"]["containers"][0]
        if self._mode == "GPUSharing":
            memory = self._asked(task, "gpu-memory") if first else 0
            allowed = [card for card in cards if self._may(card, task)]
            return min(memory, 1), [(c, Use(memory)) for c in allowed if c.places and c.free >= memory]
        if self._mode == "GPUNumber":
            number = self._asked(task, "gpu-number") if first else 0
            return number, [(c, Use(c.memory)) for c in cards if c.places and not c.uses]
        order = cards[::-1]
        if self._policy == "binpack":
            order.sort(key=lambda card: card.free - card.memory)
        elif self._policy == "spread":
            order.sort(key=lambda card: len(card.uses))
        cores = limits.get("vgpu-cores", 0)
        allowed = [card for card in order if self._may(card, task)]
        fitting = [(card, use) for card in allowed if (use := card.share(_memory(card, limits), cores)) is not None]
        return limits.get("vgpu-number", 0), fitting

    def _may(self, card: Card, task: Task) -> bool:
        meta = self._pods[task.uid]["metadata"]
        notes, labels = meta["annotations"], meta["labels"]

        def said(name: str) -> list[str]:
            return [word for word in notes.get(name, "").split(",") if word]

        uuids, no_uuids = said(f"{PREFIX}vgpu-use-gpuuuid"), said(f"{PREFIX}vgpu-nouse-gpuuuid")
        kinds, no_kinds = said("nvidia.com/use-gputype"), said("nvidia.com/nouse-gputype")
        if (uuids and card.uuid not in uuids) or card.uuid in no_uuids:
            return False
        if kinds and not any(kind.upper() in card.kind.upper() for kind in kinds):
            return False
        if any(kind.upper() in card.kind.upper() for kind in no_kinds):
            return False
        others = [other for other, _ in card.uses if other is not None and other is not task]
        if notes.get(f"{PREFIX}vgpu-podgroup-policy") == "spread" and any(other.job is task.job for other in others):
            return False
        rules = [rule for rule in self.given.get("deviceshare.GPUExclusiveRules", ()) if _matches(rule, labels)]
        return not any(_matches(rule, other.labels) for rule in rules for other in others)

    def passes(self, node: Node, task: Task) -> bool:
        if self._try(node, task) is None:
            return False
        self.gone(node, task)
        return True

    def points(self, nodes: Sequence[Node], task: Task) -> list[float]:
        weight: int = self.given.get("deviceshare.ScheduleWeight", 0) if self._mode == "VGPU" else 0
        out: list[float] = []
        for node in nodes:
            found = self._try(node, task)
            self.gone(node, task)
            out.append(weight * math.floor((found or 0.0) + 0.5))
        return out

    def placed(self, node: Node, task: Task) -> None:
        self._try(node, task)

    def gone(self, node: Node, task: Task) -> None:
        for card in self._cards[node.name]:
            card.uses = [(other, use) for other, use in card.uses if other is not task]


def _matches(rule: Json, labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in rule.items())


def _memory(card: Card, limits: Mapping[str, int]) -> float:
    """The requested memory of the card; all of it without a request."""
    share, amount = limits.get("vgpu-memory-percentage", UNSET), limits.get("vgpu-memory")
    if share == UNSET and amount is None:
        share = 100
    return amount or 0 if share == UNSET else card.memory * share // 100


def _limits(container: Json) -> dict[str, int]:
    limits = container.get("resources", {}).get("limits") or {}
    return {name.removeprefix(PREFIX): int(amount) for name, amount in limits.items() if name.startswith(PREFIX)}
