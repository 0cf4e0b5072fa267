"""Device sharing: GPUs by memory or by number, and vGPUs by memory and cores, with the assignment of cards to pods.

A node takes as many pods of a kind as its cards have capacity for, pod by pod; for pods that request one card this is a
sum over the cards of all nodes at once. The assignment is written to the pod's annotations when it is bound, and read
from them when the scheduler starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from vcbatch.api import names
from vcbatch.scheduler.framework.arguments import Argument, Arguments, ArgumentSpec, PolicyError
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import Cap, Floats, Plugin, Rejection, Rows
from vcbatch.scheduler.index.devices.asks import PodAsks, Sharing
from vcbatch.scheduler.index.devices.table import BINPACK, SPREAD
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Columns
from vcbatch.scheduler.model.facts import Facts
from vcbatch.scheduler.model.objects import Task
from vcbatch.scheduler.model.result import WaitReason
from vcbatch.scheduler.snapshot.card_usage import CardUsage, Settings, card_usage_of, config_of

NO_CARDS = "node(s) didn't have enough free cards, or memory or cores of cards"
NOT_ALONE = "node(s) had free cards only with pods that this one must not share a card with"

_MEMORY, _NUMBER, _VGPU = "deviceshare.GPUSharingEnable", "deviceshare.GPUNumberEnable", "deviceshare.VGPUEnable"
_LOCK = "deviceshare.NodeLockEnable"
_POLICY, _WEIGHT = "deviceshare.SchedulePolicy", "deviceshare.ScheduleWeight"
_CONFIG_NAME, _CONFIG_NAMESPACE = "deviceshare.KnownGeometriesCMName", "deviceshare.KnownGeometriesCMNamespace"
_RULES = "deviceshare.GPUExclusiveRules"
_NPUS, _MINDCLUSTER = "deviceshare.AscendHAMiVNPUEnable", "deviceshare.AscendMindClusterVNPUEnable"

_WAYS = {_MEMORY: Sharing.MEMORY, _NUMBER: Sharing.NUMBER, _VGPU: Sharing.VGPU}
Rule = Mapping[str, str]


def _policy(value: object, where: str) -> str:
    if value is None:
        return ""
    if value not in ("", BINPACK, SPREAD):
        raise PolicyError(f"{where}: got {value!r}; allowed: {BINPACK}, {SPREAD}, or empty")
    return str(value)


def _no_mindcluster(value: object, where: str) -> bool:
    if value in (None, False, "false"):
        return False
    if value in (True, "true"):
        raise PolicyError(f"{where}: MindCluster's way to share NPUs isn't supported; must be false. {_NPUS} is")
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
            _NPUS: Argument(default=False),
            _LOCK: Argument(default=False),
            _WEIGHT: Argument(default=0, minimum=0),
            _CONFIG_NAME: Argument(default=names.DEVICE_CONFIG_MAP),
            _CONFIG_NAMESPACE: Argument(default=names.DEVICE_CONFIG_NAMESPACE),
        },
        structured={_POLICY: _policy, _RULES: _rules, _MINDCLUSTER: _no_mindcluster},
        check=_one_way,
    )

    @classmethod
    def ignored_resources(cls, arguments: Arguments, facts: Facts) -> frozenset[str]:
        """Quantities of vGPUs and NPUs are per card: a node's sum doesn't show whether they fit."""
        settings = _settings(arguments)
        found: set[str] = set()
        if arguments[_VGPU]:
            found |= {names.VGPU_MEMORY, names.VGPU_MEMORY_PERCENTAGE, names.VGPU_CORES}
        if settings is not None and settings.npus:
            found |= {chip.memory_resource for chip in config_of(facts, settings).chips}
        return frozenset(found)

    @classmethod
    def config_maps(cls, arguments: Arguments) -> frozenset[tuple[str, str]]:
        settings = _settings(arguments)
        if settings is None or not (settings.npus or settings.sharing is Sharing.VGPU):
            return frozenset()
        return frozenset({settings.config_map})

    def open(self, session: Handle) -> None:
        self._state = session.state
        self._infos = session.nodes.infos
        self._now = session.now.timestamp()
        self._weight: int = self.arguments[_WEIGHT]
        self._rules: tuple[Rule, ...] = self.arguments[_RULES]
        self._usage = card_usage_of(session.state, _settings(self.arguments))

    def _asked(self, cls: TaskClass) -> Iterator[tuple[CardUsage, PodAsks]]:
        """The card requests of pods of the class, by family."""
        for usage in self._usage:
            asks = usage.asks(cls)
            if asks is not None:
                yield usage, asks

    # Node capacity --------------------------------------------------------------------------------------------------

    def caps(self, cls: TaskClass, rows: Rows) -> Sequence[Cap]:
        return self._caps(cls, rows, promising=False)

    def caps_later(self, cls: TaskClass, rows: Rows) -> Sequence[Cap]:
        return self._caps(cls, rows, promising=True)

    def _caps(self, cls: TaskClass, rows: Rows, *, promising: bool) -> Sequence[Cap]:
        return [self._cap(usage, asks, rows, promising=promising) for usage, asks in self._asked(cls)]

    def _cap(self, usage: CardUsage, asks: PodAsks, rows: Rows, *, promising: bool) -> Cap:
        error = usage.error(asks)
        if error:
            said = f"node(s) with {error}" if usage.family.error else error
            return Cap(said, np.zeros(len(rows)), WaitReason.DEVICE_SHARE)
        slots = usage.table.slots(asks, len(self._infos), rows, promising=promising)
        return Cap(NO_CARDS, slots, WaitReason.DEVICE_SHARE)

    def caps_empty(self, task: Task) -> Floats | None:
        count = len(self._infos)
        found = [
            np.zeros(count) if usage.error(asks) else usage.slots_of_empty(asks, count)
            for usage, asks in self._asked(task.cls)
        ]
        return np.minimum.reduce(found) if found else None

    def scores(self, cls: TaskClass, columns: Columns) -> Floats | None:
        rated = self._rated(cls)
        if not rated:
            return None
        out = np.zeros(columns.shape)
        steps: list[int] = columns.steps[:, 0].astype(int).tolist()
        for usage, asks in rated:
            for place, (fitting, points) in enumerate(usage.table.runs(asks, columns.rows, promising=False)):
                for depth, step in enumerate(steps):
                    if step < fitting:
                        out[depth, place] += points[step]
        return self._weight * np.floor(out + 0.5)

    def _rated(self, cls: TaskClass) -> list[tuple[CardUsage, PodAsks]]:
        """The card requests of pods of the class, by family, as far as nodes are scored by their cards."""
        if not self._weight or self.arguments[_POLICY] not in (BINPACK, SPREAD):
            return []
        return [pair for pair in self._asked(cls) if pair[0].table.policy in (BINPACK, SPREAD)]

    # Pods that share a card ------------------------------------------------------------------------------------------

    def couples(self, task: Task) -> bool:
        return any(asks.apart or any(_matches(rule, task) for rule in self._rules) for _, asks in self._asked(task.cls))

    def task_rejections(self, task: Task, static: Sequence[Rejection]) -> Sequence[Rejection]:
        if not self.couples(task):
            return ()
        refused = np.zeros(len(self._infos), dtype=bool)
        for usage, asks in self._asked(task.cls):
            for info in self._infos:
                barred = self._barred(task, usage, asks, info.name)
                if barred and usage.table.assign(info.name, asks, promising=True, barred=barred) is None:
                    refused[info.row] = True
        return (Rejection(NOT_ALONE, refused, word=WaitReason.DEVICE_SHARE),) if refused.any() else ()

    def task_scores(self, task: Task, candidates: Rows, static: Sequence[Rejection]) -> Floats | None:
        """The change of scores for a pod that gets other cards than `scores` assumes, because pods that it must not
        share a card with use those."""
        rated = self._rated(task.cls)
        if not rated or not self.couples(task):
            return None
        plain, barred = np.zeros(len(candidates)), np.zeros(len(candidates))
        for usage, asks in rated:
            runs = usage.table.runs(asks, candidates, promising=False)
            rows: list[int] = candidates.tolist()
            for place, (row, (fitting, points)) in enumerate(zip(rows, runs, strict=True)):
                plain[place] += points[0] if fitting else 0.0
                node = self._infos[row].name
                cards = self._barred(task, usage, asks, node)
                if cards:
                    found = usage.table.assign(node, asks, promising=False, barred=cards)
                    barred[place] += 0.0 if found is None else found[1]
                else:
                    barred[place] += points[0] if fitting else 0.0
        return self._weight * (np.floor(barred + 0.5) - np.floor(plain + 0.5))

    def _barred(self, task: Task, usage: CardUsage, asks: PodAsks, node: str) -> set[int]:
        """The node's cards that are used by pods which the task must not share a card with."""
        rules = [rule for rule in self._rules if _matches(rule, task)]
        if not rules and not asks.apart:
            return set()

        def minds(uid: str) -> bool:
            other = self._state.tasks.get(uid)
            if other is None or other is task:
                return False
            same = asks.apart and task.job is not None and other.job is task.job
            return same or any(_matches(rule, other) for rule in rules)

        return usage.table.barred(node, minds)

    # Accounting -----------------------------------------------------------------------------------------------------

    def moved(self, task: Task, row: int, step: int) -> None:
        if row < 0:
            return
        node = self._infos[row].name
        for usage, asks in self._asked(task.cls):
            if step > 0:
                usage.place(task, node, asks, barred=self._barred(task, usage, asks, node))
            else:
                usage.take_back(task)

    def binding_annotations(self, task: Task, row: int) -> Mapping[str, str]:
        recorded: dict[str, str] = {}
        for usage, _ in self._asked(task.cls):
            hold = usage.table.holds.get(task.uid)
            if hold is not None:
                cards = usage.table.nodes[hold.node].cards
                recorded |= usage.family.recorded(hold.assignment, cards, node=hold.node, now=self._now)
        return recorded

    def node_lock(self, task: Task) -> str:
        locks = (usage.family.lock for usage, _ in self._asked(task.cls)) if self.arguments[_LOCK] else ()
        return next(iter(locks), "")


def _settings(arguments: Arguments) -> Settings | None:
    """The settings in the arguments; None if no devices are shared."""
    sharing = next((way for name, way in _WAYS.items() if arguments[name]), None)
    if sharing is None and not arguments[_NPUS]:
        return None
    config = (arguments[_CONFIG_NAMESPACE], arguments[_CONFIG_NAME])
    return Settings(sharing, arguments[_NPUS], arguments[_POLICY], config)


def _matches(rule: Rule, task: Task) -> bool:
    return all(task.labels.get(key) == value for key, value in rule.items())
