"""The usage of device cards, kept between cycles: updated by what changed, and equal to what the pods' annotations
record."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from vcbatch.api import names
from vcbatch.api.config_map import ConfigMap
from vcbatch.scheduler.index.devices.ascend import Npus
from vcbatch.scheduler.index.devices.asks import PodAsks, Sharing
from vcbatch.scheduler.index.devices.cards import Assignment, Card
from vcbatch.scheduler.index.devices.config import DEVICE_CONFIG, DeviceConfig, read_config
from vcbatch.scheduler.index.devices.family import Family, Gpus
from vcbatch.scheduler.index.devices.table import LOWEST, CardTable, Hold, Layer
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Floats
from vcbatch.scheduler.model.facts import Facts
from vcbatch.scheduler.model.objects import Task, TaskStatus
from vcbatch.scheduler.snapshot.snapshot import Snapshot

_MEMORY: Final = "deviceshare"
_RENAMED: Final = {
    "resourceCountName": names.VGPU_NUMBER,
    "resourceMemoryName": names.VGPU_MEMORY,
    "resourceCoreName": names.VGPU_CORES,
    "resourceMemoryPercentageName": names.VGPU_MEMORY_PERCENTAGE,
}


class Settings(NamedTuple):
    """How GPUs are shared (None: not at all), whether NPUs are, by which policy cards are chosen, and the ConfigMap
    with the device configuration (namespace, name)."""

    sharing: Sharing | None
    npus: bool
    policy: str
    config_map: tuple[str, str]


class CardUsage:
    """The table of one family's cards, and the assignments to pods whose annotations don't record them yet
    (`assumed`)."""

    def __init__(self, family: Family, policy: str) -> None:
        self.family = family
        self.table = CardTable(policy=policy, factor=family.factor)
        self.assumed: dict[str, Assignment] = {}
        self._asks: dict[TaskClass, PodAsks | None] = {}
        self._cards: dict[str, tuple[Card, ...]] = {}
        self._rows: dict[str, int] = {}

    def asks(self, cls: TaskClass) -> PodAsks | None:
        """The card requests of pods of the class; None if they request none."""
        if cls not in self._asks:
            if len(self._asks) > 65536:
                self._asks.clear()
            self._asks[cls] = self.family.asks(cls.spec, cls.notes)
        return self._asks[cls]

    def error(self, asks: PodAsks) -> str:
        """Why no card can serve pods with these requests; empty if some may."""
        return self.family.error or asks.error

    def slots_of_empty(self, asks: PodAsks, count: int) -> Floats:
        """How many pods with these requests each of `count` nodes has slots for, if all its cards are free and healthy;
        [N]."""
        table = CardTable(policy=self.table.policy, factor=self.family.factor)
        cards = {name: tuple(replace(card, healthy=True) for card in own) for name, own in self._cards.items()}
        table.lay(cards, self._rows)
        return table.slots(asks, count, np.arange(count, dtype=np.intp), promising=False)

    # Observed state ---------------------------------------------------------------------------------------------------

    def refresh(self, state: Snapshot) -> None:
        """Apply the changes since the last cycle."""
        holders = state.devices
        for uid in holders.gone:
            task = state.tasks.get(uid)
            if task is None or not task.node:
                self.assumed.pop(uid, None)
        rows = {info.name: info.row for info in state.nodes.infos} if self._moved(state) else self._rows
        changed = {name: self._cards_of(state, name) for name in holders.dirty}
        if rows is not self._rows or any(self._cards.get(name, ()) != cards for name, cards in changed.items()):
            self._cards.update(changed)
            self._cards = {name: cards for name, cards in self._cards.items() if cards and name in rows}
            self._rows = rows
            self.table.lay(self._cards, rows)
            again: Collection[str] = self._cards
        else:
            again = holders.dirty & self._cards.keys()
        for name in sorted(again):
            self._recount(state, name)

    def _moved(self, state: Snapshot) -> bool:
        infos = state.nodes.infos
        return len(infos) != len(self._rows) or any(self._rows.get(info.name) != info.row for info in infos)

    def _cards_of(self, state: Snapshot, name: str) -> tuple[Card, ...]:
        info = state.node(name)
        if info is None or info.node is None or not info.present:
            return ()
        return self.family.cards(info.node)

    def _recount(self, state: Snapshot, name: str) -> None:
        """Recompute which pods use the node's cards, from its pods."""
        node = self.table.nodes[name]
        for uid in sorted(set[str]().union(*node.holders)):
            self.table.release(uid)
        info = state.node(name)
        for task in info.tasks.values() if info is not None else ():
            assignment = self._held(task, node.cards)
            if assignment is not None and all(p.card < len(node.cards) for pieces in assignment for p in pieces):
                layer = Layer.LEAVING if task.status is TaskStatus.RELEASING else Layer.HELD
                self.table.hold(task.uid, Hold(name, assignment, layer))

    def _held(self, task: Task, cards: tuple[Card, ...]) -> Assignment | None:
        notes = task.pod.metadata.annotations or {}
        found = self.family.held(notes, self.asks(task.cls), cards)
        return self.assumed.get(task.uid) if found is None else found

    # Decisions --------------------------------------------------------------------------------------------------------

    def place(self, task: Task, node: str, asks: PodAsks, *, barred: Collection[int]) -> None:
        """Assign cards to a task that was placed on the node, on free cards or, if it is pipelined, on those being
        released. A task whose eviction was rolled back keeps its cards."""
        hold = self.table.holds.get(task.uid)
        if hold is not None:
            self.table.turn(task.uid, Layer.HELD)
            return
        promising = task.status is TaskStatus.PIPELINED
        found = self.table.assign(node, asks, promising=promising, barred=barred)
        if found is None:
            if promising:
                return  # it waits for more than cards
            raise RuntimeError(f"{task.namespace}/{task.name} was placed on {node}, whose cards have no room for it")
        self.table.hold(task.uid, Hold(node, found[0], Layer.PROMISED if promising else Layer.HELD))
        if not promising:
            self.assumed[task.uid] = found[0]

    def take_back(self, task: Task) -> None:
        """Undo the assignment of a task whose placement was rolled back. A task that is evicted keeps its cards until
        it ends."""
        if task.status is TaskStatus.RELEASING:
            self.table.turn(task.uid, Layer.LEAVING)
        else:
            self.table.release(task.uid)
            self.assumed.pop(task.uid, None)


@dataclass(slots=True)
class Shelf:
    """The usage of the cards of all families, with the settings and the configuration that it was created from."""

    settings: Settings
    config: DeviceConfig
    usage: tuple[CardUsage, ...]


def card_usage_of(state: Snapshot, settings: Settings | None) -> tuple[CardUsage, ...]:
    """The up-to-date usage of this cluster's cards; empty if no cards are shared."""
    if settings is None:
        state.devices.stop()
        state.memory.pop(_MEMORY, None)
        return ()
    config = _config(state, settings)
    known = state.memory.get(_MEMORY)
    shelf = known if isinstance(known, Shelf) else None
    if shelf is None or shelf.settings != settings or shelf.config != config or not state.devices.active:
        shelf = state.memory[_MEMORY] = _opened(settings, config, () if shelf is None else shelf.usage)
        state.devices.start(state.nodes.infos)
    for usage in shelf.usage:
        usage.refresh(state)
    state.devices.seen()
    return shelf.usage


def _opened(settings: Settings, config: DeviceConfig, before: Iterable[CardUsage]) -> Shelf:
    families: list[tuple[Family, str]] = []
    if settings.sharing is not None:
        policy = settings.policy if settings.sharing is Sharing.VGPU else LOWEST
        families.append((Gpus(settings.sharing, config), policy))
    if settings.npus:
        families += [(Npus(chip, config.npu_error), settings.policy) for chip in config.chips]
    shelf = Shelf(settings, config, tuple(CardUsage(family, policy) for family, policy in families))
    assumed = {usage.family.key: usage.assumed for usage in before}
    for usage in shelf.usage:
        usage.assumed.update(assumed.get(usage.family.key, {}))
    return shelf


def _config(state: Snapshot, settings: Settings) -> DeviceConfig:
    stamp = state.facts.stamp(ConfigMap)
    known = state.memory.get(f"{_MEMORY}/config")
    if known is None or known[0] != (stamp, settings):
        known = state.memory[f"{_MEMORY}/config"] = ((stamp, settings), config_of(state.facts, settings))
    return known[1]


def config_of(facts: Facts, settings: Settings) -> DeviceConfig:
    """The device configuration of the ConfigMap, as far as these settings use it; the defaults if there is none."""
    if settings.sharing is not Sharing.VGPU and not settings.npus:
        return DeviceConfig()
    found = facts.of(ConfigMap).get("/".join(settings.config_map))
    text = (found.data or {}).get(DEVICE_CONFIG) if found is not None else None
    return DeviceConfig() if text is None else read_config(text, resources=_RENAMED)
