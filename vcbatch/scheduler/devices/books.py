"""What is remembered of cards from cycle to cycle: kept up to date by what changed, and equal to what the pods'
annotations say."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final, NamedTuple

from vcbatch.api import names
from vcbatch.api.config_map import ConfigMap
from vcbatch.scheduler.classes import TaskClass
from vcbatch.scheduler.devices.asks import PodAsks, Sharing, asks_of
from vcbatch.scheduler.devices.cards import Assignment, Card, cards_of, held
from vcbatch.scheduler.devices.mig import DEVICE_CONFIG, DeviceConfig, read_config
from vcbatch.scheduler.devices.table import CardTable, Hold, Layer
from vcbatch.scheduler.model import Task, TaskStatus

if TYPE_CHECKING:
    from vcbatch.scheduler.state import ClusterState

_MEMORY: Final = "deviceshare"
_RENAMED: Final = {
    "resourceCountName": names.VGPU_NUMBER,
    "resourceMemoryName": names.VGPU_MEMORY,
    "resourceCoreName": names.VGPU_CORES,
    "resourceMemoryPercentageName": names.VGPU_MEMORY_PERCENTAGE,
}


class Settings(NamedTuple):
    """How cards are shared, in which order they are asked, and the ConfigMap about them (namespace, name)."""

    sharing: Sharing
    policy: str
    config_map: tuple[str, str]


class Books:
    """The table of cards, and what pods hold that aren't known to hold it yet (`assumed`)."""

    def __init__(self, settings: Settings, config: DeviceConfig) -> None:
        self.settings = settings
        self.config = config
        self.table = CardTable(policy=settings.policy, factor=config.factor)
        self.assumed: dict[str, Assignment] = {}
        self._asks: dict[TaskClass, PodAsks | None] = {}
        self._cards: dict[str, tuple[Card, ...]] = {}
        self._rows: dict[str, int] = {}

    def asks(self, cls: TaskClass) -> PodAsks | None:
        """What pods of the class ask of cards."""
        if cls not in self._asks:
            if len(self._asks) > 65536:
                self._asks.clear()
            self._asks[cls] = asks_of(cls.spec, cls.notes, self.settings.sharing)
        return self._asks[cls]

    # What the cluster says --------------------------------------------------------------------------------------------

    def refresh(self, state: ClusterState) -> None:
        """Take in what changed since the last cycle."""
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
        holders.dirty.clear()
        holders.gone.clear()

    def _moved(self, state: ClusterState) -> bool:
        infos = state.nodes.infos
        return len(infos) != len(self._rows) or any(self._rows.get(info.name) != info.row for info in infos)

    def _cards_of(self, state: ClusterState, name: str) -> tuple[Card, ...]:
        info = state.node(name)
        if info is None or info.node is None or not info.present:
            return ()
        return cards_of(info.node, self.settings.sharing, self.config)

    def _recount(self, state: ClusterState, name: str) -> None:
        """Who holds what of the node's cards, from its pods."""
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
        found = held(notes, self.asks(task.cls), cards, self.settings.sharing)
        return self.assumed.get(task.uid) if found is None else found

    # What the cycle decides -------------------------------------------------------------------------------------------

    def place(self, task: Task, node: str, asks: PodAsks, *, barred: Collection[int]) -> None:
        """The task was placed on the node: on what is free, or on what will be. One that stays after all keeps what it
        had."""
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
        """The task was taken back, or is evicted: then it holds its cards until it is gone."""
        if task.status is TaskStatus.RELEASING:
            self.table.turn(task.uid, Layer.LEAVING)
        else:
            self.table.release(task.uid)
            self.assumed.pop(task.uid, None)


def books_of(state: ClusterState, settings: Settings | None) -> Books | None:
    """The books of this cluster, up to date; None where nothing is shared."""
    if settings is None:
        state.devices.stop()
        state.memory.pop(_MEMORY, None)
        return None
    config = _config(state, settings)
    known = state.memory.get(_MEMORY)
    if not isinstance(known, Books) or known.settings != settings or known.config != config or not state.devices.active:
        assumed = known.assumed if isinstance(known, Books) else {}
        known = state.memory[_MEMORY] = Books(settings, config)
        known.assumed.update(assumed)
        state.devices.start(state.nodes.infos)
    known.refresh(state)
    return known


def _config(state: ClusterState, settings: Settings) -> DeviceConfig:
    if settings.sharing is not Sharing.VGPU:
        return DeviceConfig()
    found = state.facts.of(ConfigMap).get("/".join(settings.config_map))
    text = (found.data or {}).get(DEVICE_CONFIG) if found is not None else None
    if text is None:
        return DeviceConfig()
    stamp = state.facts.stamp(ConfigMap)
    known = state.memory.get(f"{_MEMORY}/config")
    if known is None or known[0] != stamp:
        known = state.memory[f"{_MEMORY}/config"] = (stamp, read_config(text, resources=_RENAMED))
    return known[1]
