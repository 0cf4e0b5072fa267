"""ResourceQuotas and PodDisruptionBudgets of a simulated cluster: their status follows the pods, as controllers of a
cluster keep it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec

from vcbatch.api import quantities
from vcbatch.api.disruption import DisruptionBudget, desired_healthy
from vcbatch.api.names import GROUP_NAME
from vcbatch.api.pod import TERMINAL_PHASES, Pod, PodPhase
from vcbatch.api.pod_usage import Amounts, pod_usage
from vcbatch.api.quantity import ZERO
from vcbatch.api.quota import Quota
from vcbatch.api.scheduling import PodGroupView
from vcbatch.scheduler.filters.selectors import LabelSelector

T = TypeVar("T", bound=msgspec.Struct)
Pods = Mapping[str, Pod]
"""By UID."""
Groups = Iterable[PodGroupView]


class Limits:
    """Quotas and budgets with the status that they were given, and what of it has changed since.

    A pod counts in its namespace's quotas from when it exists: on a cluster a job makes its pods once its gang is
    admitted, so those of gangs that wait for admission don't count yet.
    """

    def __init__(self) -> None:
        self._quotas: dict[str, tuple[Quota, Amounts]] = {}
        """As given, each with the usage of the pods that counted then; likewise with how many pods a budget selected
        then, and how many of them it allowed to be disrupted."""
        self._budgets: dict[str, tuple[DisruptionBudget, int, int]] = {}
        self._told: dict[str, msgspec.Struct] = {}

    def begin(self, objects: Iterable[msgspec.Struct], pods: Pods, groups: Groups) -> None:
        """These objects hold for these pods, as their status says."""
        there = list(_existing(pods, groups))
        for obj in objects:
            match obj:
                case Quota():
                    self._quotas[obj.metadata.uid] = obj, _used(obj, there)
                case DisruptionBudget():
                    expected = len(_selected(obj, pods.values()))
                    self._budgets[obj.metadata.uid] = obj, expected, _allowed(obj, pods.values(), expected)
                case _:
                    continue
            self._told[obj.metadata.uid] = obj

    def changed(self, pods: Pods, groups: Groups) -> Iterator[Quota | DisruptionBudget]:
        """Those whose status is another one now, in the order in which they were given."""
        if not self._told:
            return
        there = list(_existing(pods, groups))
        for quota, before in self._quotas.values():
            now, used = _used(quota, there), dict(quota.status.used or {})
            for name in (quota.status.hard or {}).keys() & (now.keys() | before.keys()):
                total = quantities.read(used.get(name)) + now.get(name, ZERO) - before.get(name, ZERO)
                used[name] = max(total, ZERO).format()
            yield from self._new(msgspec.structs.replace(quota, status=_replaced(quota.status, used=used)))
        for budget, expected, at_first in self._budgets.values():
            allowed = max(0, budget.status.disruptions_allowed + _allowed(budget, pods.values(), expected) - at_first)
            status = _replaced(budget.status, disruptions_allowed=allowed)
            yield from self._new(msgspec.structs.replace(budget, status=status))

    def _new(self, obj: Quota | DisruptionBudget) -> Iterator[Quota | DisruptionBudget]:
        if self._told[obj.metadata.uid] != obj:
            self._told[obj.metadata.uid] = obj
            yield obj


def _existing(pods: Pods, groups: Groups) -> Iterator[Pod]:
    waiting = {group.metadata.key for group in groups if group.status.phase in ("", "Pending")}
    for pod in pods.values():
        gang = (pod.metadata.annotations or {}).get(GROUP_NAME, "")
        if pod.status.phase in TERMINAL_PHASES:
            continue
        if pod.spec.node_name or f"{pod.metadata.namespace}/{gang}" not in waiting:
            yield pod


def _used(quota: Quota, pods: Iterable[Pod]) -> Amounts:
    total: Amounts = {}
    for pod in pods:
        if pod.metadata.namespace == quota.metadata.namespace:
            for name, amount in pod_usage(msgspec.to_builtins(pod.spec)).items():
                total[name] = total.get(name, ZERO) + amount
    return total


def _allowed(budget: DisruptionBudget, pods: Iterable[Pod], expected: int) -> int:
    """How many more pods are ready than the budget wants of at least so many; below zero where they are fewer. Those
    that were evicted are expected still: on a cluster their owner makes others in their place."""
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
    """Pods that run are taken to be ready unless they say that they aren't."""
    said = next((one.status for one in pod.status.conditions or () if one.type == "Ready"), "True")
    return pod.status.phase == PodPhase.RUNNING and said == "True"


def _replaced(obj: T, **fields: object) -> T:
    return msgspec.structs.replace(obj, **fields)
