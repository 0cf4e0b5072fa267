"""Fair share over time: accounts with little recent usage are first.

The usage of an account (a namespace, or the value of a label of the PodGroup) is averaged over the past, with a weight
that halves every half-life, as in Slurm's multifactor priority. Present usage is added, so that no account gets
everything before the average reflects it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from vcbatch.api.timestamps import parse_time
from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import OrderTerm, Plugin
from vcbatch.scheduler.framework.structures import duration
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.objects import Job, Queue
from vcbatch.scheduler.model.resources import EPS, Vector
from vcbatch.scheduler.snapshot.snapshot import Snapshot

_MEMORY = "fair-share"
_FORGET_ABOVE = 4096
_FADED = 1e-6


@dataclass(slots=True)
class _Usage:
    """The usage of accounts and queues that is kept between cycles: the decayed average of the part of the cluster that
    they used (their dominant resource), up to `at`, and the part that they used then; both [number of keys]."""

    at: datetime
    number: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    average: Vector = field(default_factory=lambda: np.zeros(0))
    held: Vector = field(default_factory=lambda: np.zeros(0))
    accounts: npt.NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    """By gang row: the number of its account, -1 where it has none yet."""

    def of(self, kind: str, name: str) -> int:
        """The number of an account or a queue; a new number on first use."""
        known = self.number.get((kind, name))
        if known is None:
            known = self.number[kind, name] = len(self.number)
            self.average = np.append(self.average, 0.0)
            self.held = np.append(self.held, 0.0)
        return known


class FairShare(Plugin):
    """Orders gangs by the usage of their account, and queues by their usage per unit of weight."""

    SHARES_PLACES = True
    JOB_TERM = OrderTerm("usage")
    REMEMBERS_ORDER = True
    ARGUMENTS = ArgumentSpec(
        named={"account-label": Argument(default="")}, structured={"half-life": duration("168h", least="1m")}
    )

    def open(self, session: Handle) -> None:
        self._state = session.state
        self._half_life: timedelta = self.arguments["half-life"]
        self._label = str(self.arguments["account-label"])
        self._total = np.where(session.total >= EPS, session.total, np.inf)
        usage = session.state.memory.get(_MEMORY)
        first = not isinstance(usage, _Usage)
        self._usage = session.state.memory[_MEMORY] = _Usage(session.now) if first else usage
        self._enter_gangs(session.state, everybody=first)
        if first:
            self._recover(session)
        else:
            self._age(session.now)
            self._forget(session.state)
        self._usage.held = self._held(session.state)
        self._used: list[float] = (self._usage.average + self._usage.held).tolist()
        self._parts: dict[int, float] = {}

    def job_key(self, job: Job) -> float:
        return self._used[self._account(job)]

    def queue_key(self, queue: Queue) -> tuple[float, ...]:
        return (self._used[self._usage.of("queue", queue.name)] / max(queue.weight, 1),)

    def queue_terms(self, queue: Queue) -> Sequence[OrderTerm]:
        return (OrderTerm("usage by weight"),)

    def placed(self, job: Job, cls: TaskClass, count: int) -> None:
        part = self._parts.get(cls.id)
        if part is None:
            part = self._parts[cls.id] = float((cls.request / self._total).max())
        self._used[self._account(job)] += count * part
        if job.queue is not None:
            self._used[self._usage.of("queue", job.queue.name)] += count * part

    # State between cycles -------------------------------------------------------------------------------------------

    def _account(self, job: Job) -> int:
        return int(self._usage.accounts[job.row])

    def _enter_gangs(self, state: Snapshot, *, everybody: bool) -> None:
        """Assign an account to every new or changed gang, and a number to every queue."""
        usage, rows = self._usage, len(state.jobs_table.queue)
        missing = rows - len(usage.accounts)
        if missing > 0:
            usage.accounts = np.concatenate([usage.accounts, np.full(missing, -1, dtype=np.intp)])
        for job in (state.jobs if everybody else state.touched).values():
            usage.accounts[job.row] = usage.of("account", self._name(job))
        for name in state.queues:
            usage.of("queue", name)

    def _name(self, job: Job) -> str:
        if self._label and job.group is not None:
            return (job.group.metadata.labels or {}).get(self._label, "")
        return job.key.partition("/")[0]

    def _held(self, state: Snapshot) -> Vector:
        """The part of the cluster that each account and each queue uses."""
        table, usage = state.jobs_table, self._usage
        parts = (table.allocated / self._total).max(axis=1, initial=0.0)
        held = np.zeros(len(usage.number))
        known = usage.accounts >= 0
        np.add.at(held, usage.accounts[known], parts[known])
        numbers = np.full(1 + max((q.row for q in state.queues.values()), default=-1), -1, dtype=np.intp)
        for queue in state.queues.values():
            numbers[queue.row] = usage.of("queue", queue.name)
        queued = table.queue >= 0
        np.add.at(held, numbers[table.queue[queued]], parts[queued])
        return held

    def _age(self, now: datetime) -> None:
        """Decay the average up to `now`, and add what was used since the last update, weighted by its duration."""
        kept = self._kept(now - self._usage.at)
        count = len(self._usage.number)
        held = np.zeros(count)
        held[: len(self._usage.held)] = self._usage.held
        self._usage.average = self._usage.average * kept + held * (1.0 - kept)
        self._usage.at = max(now, self._usage.at)

    def _forget(self, state: Snapshot) -> None:
        """Remove accounts that no gang has any more and whose average has decayed."""
        usage = self._usage
        if len(usage.number) <= _FORGET_ABOVE + 2 * (len(state.jobs) + len(state.queues)):
            return
        used = {usage.of("account", self._name(job)) for job in state.jobs.values()}
        used |= {usage.of("queue", name) for name in state.queues}
        kept = [(key, i) for key, i in usage.number.items() if i in used or usage.average[i] > _FADED]
        places = np.full(len(usage.number), -1, dtype=np.intp)
        places[[i for _, i in kept]] = np.arange(len(kept))
        usage.average = usage.average[[i for _, i in kept]]
        usage.accounts = np.where(usage.accounts >= 0, places[usage.accounts], -1)
        usage.number = {key: place for place, (key, _) in enumerate(kept)}

    def _kept(self, passed: timedelta) -> float:
        return math.pow(0.5, max(passed, timedelta(0)) / self._half_life)

    def _recover(self, session: Handle) -> None:
        """After a restart, count what running gangs use since their start. The usage of gangs that ended before is
        lost."""
        table = session.state.jobs_table
        for job in session.state.jobs.values():
            if not job.allocated_count or job.group is None:
                continue
            part = float((table.allocated[job.row] / self._total).max())
            gained = part * (1.0 - self._kept(session.now - _since(job, session.now)))
            self._usage.average[self._account(job)] += gained
            if job.queue is not None:
                self._usage.average[self._usage.of("queue", job.queue.name)] += gained


def _since(job: Job, now: datetime) -> datetime:
    starts = [task.pod.status.start_time for task in job.tasks.values() if task.pod.status.start_time]
    try:
        return parse_time(min(starts)) if starts else now
    except ValueError:
        return now
