"""ResourceQuotas and PodDisruptionBudgets of a simulated cluster: their status follows the pods, as the controllers of
a cluster update it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from vcbatch.api import quantities
from vcbatch.api.disruption import DisruptionBudget, desired_healthy
from vcbatch.api.names import GROUP_NAME
from vcbatch.api.pod import TERMINAL_PHASES, Pod, PodPhase
from vcbatch.api.pod_usage import Amounts, add, pod_usage
from vcbatch.api.quantity import ZERO
from vcbatch.api.quota import Quota
from vcbatch.api.scheduling import PodGroupView
from vcbatch.scheduler.model.selectors import LabelSelector

Pods = Mapping[str, Pod]
"""By UID."""
Groups = Iterable[PodGroupView]


class Limits:
    """Quotas and budgets with their given status, and the changes since.

    A pod counts against the quotas of its namespace from its creation: on a cluster a job creates its pods once its
    gang is admitted, so those of gangs that wait for admission don't count yet.
    """

    def __init__(self) -> None:
        self._quotas: dict[str, tuple[Quota, Amounts]] = {}
        """The given quotas, each with the usage of the pods that counted then."""
        self._budgets: dict[str, tuple[DisruptionBudget, int, int]] = {}
        """The given budgets, each with the number of pods that it selected then, and how many disruptions these
        allowed."""
        self._reported: dict[str, msgspec.Struct] = {}
        self._usages: dict[str, Amounts] = {}
        """By UID of the pod: its usage, which doesn't depend on its node."""

    def begin(self, objects: Iterable[msgspec.Struct], pods: Pods, groups: Groups) -> None:
        """Start with these objects, whose status applies to these pods."""
        there = list(_existing(pods, groups))
        for obj in objects:
            match obj:
                case Quota():
                    self._quotas[obj.metadata.uid] = obj, self._used(obj, there)
                case DisruptionBudget():
                    expected = len(_selected(obj, pods.values()))
                    self._budgets[obj.metadata.uid] = obj, expected, _allowed(obj, pods.values(), expected)
                case _:
                    continue
            self._reported[obj.metadata.uid] = obj

    def changed(self, pods: Pods, groups: Groups) -> Iterator[Quota | DisruptionBudget]:
        """The objects whose status changed, in the order in which they were given."""
        if not self._reported:
            return
        there = list(_existing(pods, groups)) if self._quotas else []
        for quota, before in self._quotas.values():
            now, used = self._used(quota, there), dict(quota.status.used or {})
            for name in (quota.status.hard or {}).keys() & (now.keys() | before.keys()):
                total = quantities.read(used.get(name)) + now.get(name, ZERO) - before.get(name, ZERO)
                used[name] = max(total, ZERO).format()
            yield from self._new(replace(quota, status=replace(quota.status, used=used)))
        for budget, expected, at_first in self._budgets.values():
            allowed = max(0, budget.status.disruptions_allowed + _allowed(budget, pods.values(), expected) - at_first)
            yield from self._new(replace(budget, status=replace(budget.status, disruptions_allowed=allowed)))

    def _used(self, quota: Quota, pods: Iterable[Pod]) -> Amounts:
        total: Amounts = {}
        for pod in pods:
            if pod.metadata.namespace != quota.metadata.namespace:
                continue
            usage = self._usages.get(pod.metadata.uid)
            if usage is None:
                usage = self._usages[pod.metadata.uid] = pod_usage(msgspec.to_builtins(pod.spec))
            add(total, usage, times=1)
        return total

    def _new(self, obj: Quota | DisruptionBudget) -> Iterator[Quota | DisruptionBudget]:
        if self._reported[obj.metadata.uid] != obj:
            self._reported[obj.metadata.uid] = obj
            yield obj


def _existing(pods: Pods, groups: Groups) -> Iterator[Pod]:
    waiting = {group.metadata.key for group in groups if group.status.phase in ("", "Pending")}
    for pod in pods.values():
        gang = (pod.metadata.annotations or {}).get(GROUP_NAME, "")
        if pod.status.phase in TERMINAL_PHASES:
            continue
        if pod.spec.node_name or f"{pod.metadata.namespace}/{gang}" not in waiting:
            yield pod


def _allowed(budget: DisruptionBudget, pods: Iterable[Pod], expected: int) -> int:
    """How many more pods are ready than the budget requires; negative if fewer are. Evicted pods are still expected: on
    a cluster their owner recreates them."""
    selected = _selected(budget, pods)
    most = max(len(selected), expected)
    return sum(map(_ready, selected)) - desired_healthy(budget.spec.min_available, budget.spec.max_unavailable, most)


def _selected(budget: DisruptionBudget, pods: Iterable[Pod]) -> list[Pod]:
    selector = LabelSelector.parse(budget.spec.selector)
    return [
        pod
        for pod in pods
        if pod.metadata.namespace == budget.metadata.namespace
        and pod.spec.node_name
        and not pod.metadata.deletion_timestamp
        and pod.status.phase not in TERMINAL_PHASES
        and selector.matches(pod.metadata.labels or {})
    ]


def _ready(pod: Pod) -> bool:
    """Running pods count as ready unless their condition says otherwise."""
    said = next((one.status for one in pod.status.conditions or () if one.type == "Ready"), "True")
    return pod.status.phase == PodPhase.RUNNING and said == "True"
