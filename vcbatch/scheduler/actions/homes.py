"""The network topology domains in which best-effort members of a gang may be placed."""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.blocker import Blocker
from vcbatch.scheduler.model.domain import Domain
from vcbatch.scheduler.model.objects import Job, Run, Task
from vcbatch.scheduler.model.result import WaitReason
from vcbatch.scheduler.model.sub_gangs import SubKey
from vcbatch.scheduler.reasons.domain_blockers import inconsistent
from vcbatch.scheduler.topology.domain_search import DomainSearch, Room


class Homes:
    """The domains of a gang and of its sub-gangs: those that its topology allows around its placed pods; if it has
    none, the lowest-tier domain that takes its best-effort pods."""

    def __init__(self, session: Session, job: Job, tasks: Sequence[Task]) -> None:
        self._session = session
        self._job = job
        self._tasks = tasks
        self._chosen: dict[SubKey | None, Domain | None] = {}

    def of(self, task: Task) -> Domain | Blocker:
        """The domain for this task, or why there is none."""
        search = self._session.shared(DomainSearch)
        misfit = search.misfit(self._job)
        if misfit is not None:
            return inconsistent(self._job, misfit, task=task.name)
        sub = task.sub if task.sub is not None and self._job.rules[task.sub[0]].topology is not None else None
        found = self._home(None)
        if found is not None and sub is not None:
            found = self._home(sub)
        if found is not None:
            return found
        text = f"no domain of tier {search.limit(self._job, sub)} or lower has room for the pods that ask for nothing"
        return Blocker(reason=WaitReason.TOPOLOGY, text=text, task=task.name, placed=self._job.ready_count)

    def _home(self, sub: SubKey | None) -> Domain | None:
        if sub not in self._chosen:
            self._chosen[sub] = self._choose(sub)
        return self._chosen[sub]

    def _choose(self, sub: SubKey | None) -> Domain | None:
        search, job = self._session.shared(DomainSearch), self._job
        whole = self._home(None) if sub is not None else None
        allowed = search.allowed(job, sub, None if whole is None else whole.number)
        if not len(allowed):
            return None
        if search.allocated(job, sub) is not None:
            return search.tree.domain(int(allowed[-1]))  # numbers ascend with the tier
        runs = [Run(t.cls, t.role, t.sub, [t]) for t in self._tasks if sub is None or t.sub == sub]
        needed = job.min_member - job.ready_count if sub is None else search.missing_of(job, sub)
        room = search.placeable(runs, Room.FREE)[allowed]
        enough = allowed[room >= min(max(needed, 1), len(runs))]
        return search.tree.domain(int(enough[0])) if len(enough) else None
