"""PodDisruptionBudgets apply to pods that the scheduler evicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from vcbatch.api.disruption import DisruptionBudget
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import GangEviction, Plugin
from vcbatch.scheduler.index.victims import VICTIM_STATUSES
from vcbatch.scheduler.model.objects import Task, TaskStatus
from vcbatch.scheduler.model.selectors import LabelSelector

_MEMORY: Final = "pdb"


@dataclass(frozen=True, slots=True)
class _Budget:
    key: str
    namespace: str
    selector: LabelSelector
    allowed: int
    disrupted: frozenset[str]

    def counts(self, task: Task) -> bool:
        """Whether the pod's eviction counts against the budget. A pod that is listed as disrupted was counted
        already."""
        if task.namespace != self.namespace or task.name in self.disrupted:
            return False
        return self.selector.matches(task.labels)


class DisruptionBudgets(Plugin):
    """Candidates count against every budget that selects them, in their order; a candidate that would exceed one is
    protected. Evictions of this cycle have been counted, and so have those of earlier cycles until the API server shows
    the pods as terminating. A pod that no budget selects, labelled or not, is never protected."""

    VICTIMS_BY_STANDING = True
    KEEPS_VICTIMS = True

    def open(self, session: Handle) -> None:
        self._budgets = [
            _Budget(
                key,
                budget.metadata.namespace,
                LabelSelector.parse(budget.spec.selector),
                budget.status.disruptions_allowed,
                frozenset(budget.status.disrupted_pods or ()),
            )
            for key, budget in sorted(session.state.facts.of(DisruptionBudget).items())
        ]
        self._taken: Counter[str] = Counter()
        ending: list[str] = []
        for uid in session.state.memory.get(_MEMORY, ()):
            task = session.state.tasks.get(uid)
            if task is not None and task.evicting and task.pod.metadata.deletion_timestamp is None:
                ending.append(uid)
                self._take(task, 1)
        self._ending = ending

    def close(self, session: Handle) -> None:
        session.state.memory[_MEMORY] = [*self._ending, *(eviction.uid for eviction in session.evictions)]

    def moved(self, task: Task, row: int, step: int) -> None:
        if step < 0 and task.status is TaskStatus.RELEASING:
            self._take(task, 1)
        elif step > 0 and task.status in VICTIM_STATUSES:
            self._take(task, -1)

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> list[Task]:
        return self._within(candidates)

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> list[Task]:
        return self._within(candidates)

    def evictable(self, eviction: GangEviction, candidates: Sequence[Task]) -> list[Task]:
        return self._within(candidates)

    def movable(self, unwanted: Sequence[Task]) -> list[Task]:
        return self._within(unwanted)

    def _take(self, task: Task, count: int) -> None:
        for budget in self._budgets:
            if budget.counts(task):
                self._taken[budget.key] += count

    def _within(self, candidates: Sequence[Task]) -> list[Task]:
        if not self._budgets:
            return list(candidates)
        left = {budget.key: budget.allowed - self._taken[budget.key] for budget in self._budgets}
        out: list[Task] = []
        for task in candidates:
            mine = [budget.key for budget in self._budgets if budget.counts(task)]
            if all(left[key] > 0 for key in mine):
                out.append(task)
                for key in mine:
                    left[key] -= 1
        return out
