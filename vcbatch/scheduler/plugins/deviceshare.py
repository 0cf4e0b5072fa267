"""Cards that pods share: GPUs by memory or by number, and vGPUs by memory and cores, with the card each pod gets.

A node takes as many pods of a kind as its cards have room for, one by one; where a pod wants one card, that is a sum
over the cards of all nodes at once. What a pod got is written on it when it is bound, and read from there when the
scheduler starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from vcbatch.api import names
from vcbatch.scheduler.arguments import Argument, Arguments, ArgumentSpec, PolicyError
from vcbatch.scheduler.classes import TaskClass
from vcbatch.scheduler.columns import Columns
from vcbatch.scheduler.devices.asks import PodAsks, Sharing
from vcbatch.scheduler.devices.books import Books, Settings, books_of
from vcbatch.scheduler.devices.cards import told
from vcbatch.scheduler.devices.table import BINPACK, LOWEST, SPREAD
from vcbatch.scheduler.model import Task
from vcbatch.scheduler.plugins.base import Cap, Floats, Plugin, Rejection, Rows

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session

NO_CARDS = "node(s) didn't have enough free cards, or memory or cores of cards"
NOT_ALONE = "node(s) had free cards only with pods that this one must not share a card with"

_MEMORY, _NUMBER, _VGPU = "deviceshare.GPUSharingEnable", "deviceshare.GPUNumberEnable", "deviceshare.VGPUEnable"
_LOCK = "deviceshare.NodeLockEnable"
_POLICY, _WEIGHT = "deviceshare.SchedulePolicy", "deviceshare.ScheduleWeight"
_CONFIG_NAME, _CONFIG_NAMESPACE = "deviceshare.KnownGeometriesCMName", "deviceshare.KnownGeometriesCMNamespace"
_RULES = "deviceshare.GPUExclusiveRules"
_ASCEND = ("deviceshare.AscendMindClusterVNPUEnable", "deviceshare.AscendHAMiVNPUEnable")

_WAYS = {_MEMORY: Sharing.MEMORY, _NUMBER: Sharing.NUMBER, _VGPU: Sharing.VGPU}
Rule = Mapping[str, str]


def _policy(value: object, where: str) -> str:
    if value is None:
        return ""
    if value not in ("", BINPACK, SPREAD):
        raise PolicyError(f"{where}: got {value!r}; allowed: {BINPACK}, {SPREAD}, or empty")
    return str(value)


def _no_npus(value: object, where: str) -> bool:
    if value in (None, False, "false"):
        return False
    if value in (True, "true"):
        raise PolicyError(f"{where}: Ascend NPUs are not supported; must be false")
    raise PolicyError(f"{where}: must be true or false, got {value!r}")


def _rules(value: object, where: str) -> tuple[Rule, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise PolicyError(f"{where}: must be a list of label maps, got {value!r}")
    return tuple(_rule(entry, f"{where}[{i}]") for i, entry in enumerate(cast("list[object]", value)))


def _rule(entry: object, where: str) -> Rule:
    if not isinstance(entry, Mapping) or not entry:
        raise PolicyError(f"{where}: must be a map of labels, got {entry!r}")
    return {str(key): str(value) for key, value in cast("Mapping[object, object]", entry).items()}


def _one_way(arguments: Mapping[str, Any], where: str) -> None:
    chosen = [name for name in _WAYS if arguments[name]]
    if len(chosen) > 1:
        raise PolicyError(f"{where}: {' and '.join(chosen)} exclude each other; set one of them")


class DeviceShare(Plugin):
    ARGUMENTS = ArgumentSpec(
        named={
            _MEMORY: Argument(default=False),
            _NUMBER: Argument(default=False),
            _VGPU: Argument(default=False),
            _LOCK: Argument(default=False),
            _WEIGHT: Argument(default=0, minimum=0),
            _CONFIG_NAME: Argument(default=names.DEVICE_CONFIG_MAP),
            _CONFIG_NAMESPACE: Argument(default=names.DEVICE_CONFIG_NAMESPACE),
        },
        structured={_POLICY: _policy, _RULES: _rules, **dict.fromkeys(_ASCEND, _no_npus)},
        check=_one_way,
    )

    @classmethod
    def ignored_resources(cls, arguments: Arguments) -> frozenset[str]:
        """Amounts of vGPUs are per card: a node's sum says nothing about whether they fit."""
        if not arguments[_VGPU]:
            return frozenset()
        return frozenset({names.VGPU_MEMORY, names.VGPU_MEMORY_PERCENTAGE, names.VGPU_CORES})

    @classmethod
    def config_maps(cls, arguments: Arguments) -> frozenset[tuple[str, str]]:
        named = (arguments[_CONFIG_NAMESPACE], arguments[_CONFIG_NAME])
        return frozenset({named}) if arguments[_VGPU] else frozenset()

    def open(self, session: Session) -> None:
        self._state = session.state
        self._infos = session.nodes.infos
        self._now = session.now.timestamp()
        self._weight: int = self.arguments[_WEIGHT]
        self._rules: tuple[Rule, ...] = self.arguments[_RULES]
        self._books: Books | None = None
        chosen = [way for name, way in _WAYS.items() if self.arguments[name]]
        config = (self.arguments[_CONFIG_NAMESPACE], self.arguments[_CONFIG_NAME])
        policy = self.arguments[_POLICY] if chosen == [Sharing.VGPU] else LOWEST
        settings = Settings(chosen[0], policy, config) if chosen else None
        self._books = books_of(session.state, settings)

    # Where pods fit --------------------------------------------------------------------------------------------------

    def caps(self, cls: TaskClass, rows: Rows) -> Sequence[Cap]:
        return self._caps(cls, rows, promising=False)

    def caps_later(self, cls: TaskClass, rows: Rows) -> Sequence[Cap]:
        return self._caps(cls, rows, promising=True)

    def _caps(self, cls: TaskClass, rows: Rows, *, promising: bool) -> Sequence[Cap]:
        books = self._books
        asks = books.asks(cls) if books is not None else None
        if books is None or asks is None:
            return ()
        if books.config.fault:
            return (Cap(f"node(s) with vGPUs aren't used: {books.config.fault}", np.zeros(len(rows))),)
        return (Cap(NO_CARDS, books.table.slots(asks, len(self._infos), rows, promising=promising)),)

    def scores(self, cls: TaskClass, columns: Columns) -> Floats | None:
        books = self._books
        asks = books.asks(cls) if books is not None and self._weight else None
        if books is None or asks is None or books.settings.policy not in (BINPACK, SPREAD):
            return None
        out = np.zeros(columns.shape)
        steps: list[int] = columns.steps[:, 0].astype(int).tolist()
        for place, (fitting, points) in enumerate(books.table.runs(asks, columns.rows, promising=False)):
            for depth, step in enumerate(steps):
                if step < fitting:
                    out[depth, place] = np.floor(points[step] + 0.5)
        return self._weight * out

    # Whom a pod shares a card with -----------------------------------------------------------------------------------

    def couples(self, task: Task) -> bool:
        asks = self._books.asks(task.cls) if self._books is not None else None
        return asks is not None and (asks.apart or any(_matches(rule, task) for rule in self._rules))

    def task_rejections(self, task: Task, static: Sequence[Rejection]) -> Sequence[Rejection]:
        books = self._books
        asks = books.asks(task.cls) if books is not None else None
        if books is None or asks is None or not self.couples(task):
            return ()
        refused = np.zeros(len(self._infos), dtype=bool)
        for info in self._infos:
            barred = self._barred(task, asks, info.name)
            if barred and books.table.assign(info.name, asks, promising=True, barred=barred) is None:
                refused[info.row] = True
        return (Rejection(NOT_ALONE, refused),) if refused.any() else ()

    def _barred(self, task: Task, asks: PodAsks, node: str) -> set[int]:
        """The node's cards that somebody is on whom the task must not meet."""
        if self._books is None:
            return set()
        rules = [rule for rule in self._rules if _matches(rule, task)]
        if not rules and not asks.apart:
            return set()

        def minds(uid: str) -> bool:
            other = self._state.tasks.get(uid)
            if other is None or other is task:
                return False
            same = asks.apart and task.job is not None and other.job is task.job
            return same or any(_matches(rule, other) for rule in rules)

        return self._books.table.barred(node, minds)

    # Books -----------------------------------------------------------------------------------------------------------

    def moved(self, task: Task, row: int, step: int) -> None:
        books = self._books
        asks = books.asks(task.cls) if books is not None else None
        if books is None or asks is None or row < 0:
            return
        node = self._infos[row].name
        if step > 0:
            books.place(task, node, asks, barred=self._barred(task, asks, node))
        else:
            books.take_back(task)

    def binding_annotations(self, task: Task, row: int) -> Mapping[str, str]:
        books = self._books
        hold = books.table.holds.get(task.uid) if books is not None else None
        if books is None or hold is None:
            return {}
        cards = books.table.nodes[hold.node].cards
        return told(hold.assignment, cards, books.settings.sharing, node=hold.node, now=self._now)

    def node_lock(self, task: Task) -> str:
        books = self._books
        if books is None or not self.arguments[_LOCK] or books.asks(task.cls) is None:
            return ""
        return names.VGPU_LOCK if books.settings.sharing is Sharing.VGPU else names.GPU_LOCK


def _matches(rule: Rule, task: Task) -> bool:
    return all(task.labels.get(key) == value for key, value in rule.items())
