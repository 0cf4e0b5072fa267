"""Time-division multiplexing: nodes of a revocable zone take batch pods in a window of the day."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, ClassVar, Final

import numpy as np

from vcbatch.api import names
from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec, PolicyError
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import Cap, OrderTerm, Plugin, Vote
from vcbatch.scheduler.framework.structures import duration
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Columns, Floats, Rows
from vcbatch.scheduler.model.objects import Job, Queue, Task, TaskStatus
from vcbatch.scheduler.model.reading import TRUE, note
from vcbatch.scheduler.model.resources import Mask
from vcbatch.scheduler.model.result import WaitReason

_ZONE: Final = "tdm.revocable-zone."
_PERIOD: Final = "tdm.evict.period"
_OFFSET: Final = "tdm.utc-offset"
_MEMORY: Final = "tdm"
_WINDOW = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})", re.ASCII)
_UTC_OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})", re.ASCII)
_DAY = timedelta(days=1)
_POINTS = 100.0
_period = duration("1m")


@dataclass(frozen=True, slots=True)
class Window:
    """A part of every day. If it begins no earlier than it ends, it ends on the next day."""

    start: timedelta
    end: timedelta

    def open(self, now: datetime) -> bool:
        """Whether the local time `now` is in the window."""
        at = now - now.replace(hour=0, minute=0, second=0, microsecond=0)
        if self.start < self.end:
            return self.start <= at < self.end
        return at >= self.start or at < self.end

    def next_edge(self, now: datetime) -> datetime:
        """When the window opens or closes next."""
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        edges = (midnight + edge + day * _DAY for edge in (self.start, self.end) for day in (0, 1))
        return min(edge for edge in edges if edge > now)


def _window(text: str, where: str) -> Window:
    found = _WINDOW.fullmatch(text)
    if found is not None:
        hours, minutes = (int(found[1]), int(found[3])), (int(found[2]), int(found[4]))
        if max(hours) < 24 and max(minutes) < 60:
            start, end = (timedelta(hours=h, minutes=m) for h, m in zip(hours, minutes, strict=True))
            return Window(start, end)
    raise PolicyError(f"{where}: must be two times of the day such as 22:00-06:00, got {text!r}")


def _offset(text: str, where: str) -> timezone:
    found = _UTC_OFFSET.fullmatch(text)
    if found is None or int(found[2]) > 14 or int(found[3]) > 59:
        raise PolicyError(f"{where}: must be a distance from UTC such as +02:00, got {text!r}")
    distance = timedelta(hours=int(found[2]), minutes=int(found[3]))
    return timezone(-distance if found[1] == "-" else distance)


def _check(values: Mapping[str, Any], where: str) -> None:
    _period(values[_PERIOD], f"{where}.{_PERIOD}")
    _offset(values[_OFFSET], f"{where}.{_OFFSET}")
    for name, value in values.items():
        if name.startswith(_ZONE):
            _window(value, f"{where}.{name}")


class Tdm(Plugin):
    """The zone of a node is its label `volcano.sh/revocable-zone`. While the zone's window is open, revocable pods may
    run there and prefer to; when it closes, those that are preemptable are evicted, a few of each gang at a time."""

    JOB_TERM = OrderTerm("it may not be evicted", 0)
    ARGUMENTS = ArgumentSpec(
        named={_PERIOD: Argument(default="1m"), _OFFSET: Argument(default="+00:00")},
        prefixed={_ZONE: Argument(default="")},
        check=_check,
    )
    UNWANTED: ClassVar[str] = "the time in which its node is lent to batch pods is over"

    def open(self, session: Handle) -> None:
        given = self.arguments
        self._session = session
        self._now = session.now
        local = session.now.astimezone(_offset(given[_OFFSET], _OFFSET))
        windows = {name[len(_ZONE) :]: _window(value, name) for name, value in given.items() if name.startswith(_ZONE)}
        self._open = frozenset(name for name, window in windows.items() if window.open(local))
        self._period = _period(given[_PERIOD], _PERIOD)
        zones = [info.labels.get(names.REVOCABLE_ZONE, "") for info in session.nodes.infos]
        self._revocable: Mask = np.array([bool(zone) for zone in zones], dtype=bool)
        self._lent: Mask = np.array([zone in self._open for zone in zones], dtype=bool)
        self._closed = [row for row, zone in enumerate(zones) if zone in windows and zone not in self._open]
        for window in windows.values():
            session.requeue_at(window.next_edge(local).astimezone(session.now.tzinfo))

    def limit_stamp(self, queue: Queue) -> object:
        return self._open

    # Nodes

    def caps(self, cls: TaskClass, rows: Rows) -> Sequence[Cap]:
        refused = self._revocable[rows] & ~self._lent[rows] if _revocable(cls) else self._revocable[rows]
        if not refused.any():
            return ()
        slots = np.where(refused, 0.0, np.inf)
        return (Cap("node(s) were lent to revocable pods at certain times only", slots, WaitReason.REVOCABLE_ZONE),)

    def scores(self, cls: TaskClass, columns: Columns) -> Floats | None:
        if not _revocable(cls) or not self._lent.any():
            return None
        return np.broadcast_to(np.where(self._lent[columns.rows], _POINTS, 0.0), columns.shape)

    # Gangs

    def job_key(self, job: Job) -> float:
        """Gangs that may not be evicted first."""
        return 1 if _preemptable(job) else 0

    def job_pipelined(self, job: Job) -> Vote:
        held = job.waiting_count + job.ready_count + job.pending_best_effort
        return Vote.PERMIT if held >= job.min_member else Vote.REJECT

    def job_starving(self, job: Job) -> bool:
        return not _preemptable(job) and job.counts[TaskStatus.PENDING] > 0

    # Victims

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> Sequence[Task] | None:
        """Running pods on nodes outside of zones, a few of each gang; none if the preemptor is itself preemptable."""
        if preemptor.preemptable or _revocable(preemptor.cls):
            return ()
        row_of = self._session.state.row_of
        return _some_of_each([t for t in candidates if _may_go(t) and not self._revocable[row_of(t)]])

    def unwanted(self, running: Sequence[Task]) -> Sequence[Task] | None:
        """Once per period: pods on nodes whose window is closed, a few of each gang."""
        infos = self._session.nodes.infos
        found = [task for row in self._closed for task in infos[row].tasks.values() if _may_go(task)]
        if not found:
            return None
        memory = self._session.state.memory
        last: datetime | None = memory.get(_MEMORY)
        if last is not None and last <= self._now < last + self._period:
            self._session.requeue_at(last + self._period)
            return None
        memory[_MEMORY] = self._now
        self._session.requeue_at(self._now + self._period)
        return _some_of_each(found)


def _revocable(cls: TaskClass) -> bool:
    return cls.notes.get(names.REVOCABLE_ZONE) == "*" or names.PREEMPTABLE in cls.notes


def _preemptable(job: Job) -> bool:
    """Whether the PodGroup's pods are preemptable (Volcano: false without the annotation)."""
    return job.group is not None and note(job.group.metadata, names.PREEMPTABLE) in TRUE


def _may_go(task: Task) -> bool:
    return task.preemptable and task.status is TaskStatus.RUNNING and task.job is not None


def _some_of_each(tasks: Sequence[Task]) -> list[Task]:
    """As many pods of each gang as it may lose at once, the least important first."""
    by_job: dict[str, list[Task]] = {}
    jobs: dict[str, Job] = {}
    for task in tasks:
        if task.job is not None:
            by_job.setdefault(task.job.key, []).append(task)
            jobs[task.job.key] = task.job
    return [
        task
        for key, found in by_job.items()
        for task in sorted(found, key=lambda task: (task.priority, task.uid))[: most_at_once(jobs[key])]
    ]


def most_at_once(job: Job) -> int:
    """How many running pods of a gang may be evicted at once, by its disruption budget: 1 if it has none."""
    meta = job.group.metadata if job.group is not None else None
    running, total = job.counts[TaskStatus.RUNNING], len(job.tasks)
    unavailable = _share(note(meta, names.JDB_MAX_UNAVAILABLE), total) if meta else None
    if unavailable is not None:
        finished = job.counts[TaskStatus.SUCCEEDED] + job.counts[TaskStatus.FAILED]
        return max(0, unavailable - (total - finished - running))
    available = _share(note(meta, names.JDB_MIN_AVAILABLE), total) if meta else None
    if available is not None:
        return max(0, running - available)
    return 1


def _share(text: str, total: int) -> int | None:
    """A number, or a percentage of the gang's pods, rounded up; None if it is neither."""
    body = text.removesuffix("%")
    if not body.isascii() or not body.isdigit() or len(body) > 9:
        return None
    return int(body) if body == text else math.ceil(total * int(body) / 100)
