"""Limits of evictions: how many, how often and how early pods of gangs are evicted, whichever action evicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from vcbatch.api.duration import human
from vcbatch.api.reasons import DisruptionLimit
from vcbatch.api.timestamps import parse_time
from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import GangEviction, Plugin, Protection
from vcbatch.scheduler.framework.structures import duration
from vcbatch.scheduler.model.objects import Job, Queue, Task, TaskStatus

_MEMORY: Final = "disruption"
_MINIMUM: Final = "minRuntime"
_PER_CYCLE: Final = "maxVictimsPerCycle"
_PER_HOUR: Final = "maxDisruptionsPerGangPerHour"
_HOUR = timedelta(hours=1)
_HELD = frozenset({TaskStatus.BOUND, TaskStatus.RUNNING})


@dataclass(slots=True)
class _Past:
    """The state kept between cycles: by the UID of PodGroups, when they lost pods in the last hour; when the next
    protection of a gang ends, and how many have ended."""

    lost: dict[str, list[datetime]] = field(default_factory=dict[str, list[datetime]])
    lapse: datetime | None = None
    lapses: int = 0


class Disruption(Plugin):
    """Protects pods of gangs that have run for less than `minRuntime` or lost pods `maxDisruptionsPerGangPerHour` times
    in the last hour, and permits at most `maxVictimsPerCycle` evictions in a cycle; 0 is no limit. It applies to the
    victims of the other plugins of its tier."""

    KEEPS_VICTIMS = True
    ARGUMENTS = ArgumentSpec(
        named={_PER_CYCLE: Argument(default=0, minimum=0), _PER_HOUR: Argument(default=0, minimum=0)},
        structured={_MINIMUM: duration("0s", least="0s", example="30m")},
    )

    def open(self, session: Handle) -> None:
        self._session = session
        self._now = session.now
        past = session.state.memory.get(_MEMORY)
        if not isinstance(past, _Past):
            past = session.state.memory[_MEMORY] = _Past()
        self._past = past
        if past.lapse is not None and self._now >= past.lapse:
            past.lapse, past.lapses = None, past.lapses + 1
        elif past.lapse is not None:
            session.requeue_at(past.lapse)
        for uid, times in list(past.lost.items()):
            recent = [at for at in times if at > self._now - _HOUR]
            if recent:
                past.lost[uid] = recent
            else:
                del past.lost[uid]
        self._going = 0
        self._until: dict[str, datetime | None] = {}

    def limit_stamp(self, queue: Queue) -> object:
        return self._past.lapses

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> Sequence[Task]:
        return self._may_go(candidates)

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> Sequence[Task]:
        return self._may_go(candidates)

    def evictable(self, eviction: GangEviction, candidates: Sequence[Task]) -> Sequence[Task]:
        return self._may_go(candidates)

    def movable(self, unwanted: Sequence[Task]) -> Sequence[Task]:
        return self._may_go(unwanted)

    def moved(self, task: Task, row: int, step: int) -> None:
        if step < 0 and task.evicting:
            self._going += 1
        elif step > 0 and task.status in _HELD:
            self._going -= 1  # an eviction that is rolled back

    def close(self, session: Handle) -> None:
        gone = {eviction.uid for eviction in session.evictions}
        if not gone:
            return
        jobs = {task.job.uid for uid in gone if (task := session.state.tasks.get(uid)) is not None and task.job}
        for uid in sorted(jobs):
            self._past.lost.setdefault(uid, []).append(self._now)

    def protection(self, victims: Sequence[Task]) -> Protection | None:
        most: int = self.arguments[_PER_CYCLE]
        if most and len(victims) > most:
            return Protection(DisruptionLimit.PER_CYCLE, str(most), None)
        jobs = {task.job.key: task.job for task in victims if task.job is not None}
        kept = [(until, job) for job in jobs.values() if (until := self._protected(job)) is not None]
        if not kept:
            return None
        until, job = max(kept, key=lambda entry: entry[0])
        if until == self._by_losses(job):
            return Protection(DisruptionLimit.PER_GANG_AND_HOUR, str(self.arguments[_PER_HOUR]), until)
        return Protection(DisruptionLimit.MIN_RUNTIME, human(self.arguments[_MINIMUM]), until)

    def _may_go(self, candidates: Sequence[Task]) -> list[Task]:
        if self._session.lenient:
            return list(candidates)
        found = [task for task in candidates if task.job is None or self._protected(task.job) is None]
        most: int = self.arguments[_PER_CYCLE]
        if most:
            found = found[: max(most - self._going, 0)]
        self._session.withheld += len(candidates) - len(found)
        return found

    def _protected(self, job: Job) -> datetime | None:
        """Until when the gang is protected; None if it isn't."""
        if job.key not in self._until:
            until = max(filter(None, (self._by_runtime(job), self._by_losses(job))), default=None)
            until = until if until is not None and until > self._now else None
            self._until[job.key] = until
            if until is not None:
                self._session.requeue_at(until)
                self._past.lapse = until if self._past.lapse is None else min(self._past.lapse, until)
        return self._until[job.key]

    def _by_runtime(self, job: Job) -> datetime | None:
        """Until when the gang is protected by `minRuntime`. It has run since the first of its present pods started;
        until one has, it counts as just starting."""
        least: timedelta = self.arguments[_MINIMUM]
        if not least:
            return None
        began = [at for task in job.tasks.values() if task.status in _HELD and (at := _began(task)) is not None]
        return min(began, default=self._now) + least

    def _by_losses(self, job: Job) -> datetime | None:
        most: int = self.arguments[_PER_HOUR]
        times = self._past.lost.get(job.uid, [])
        return times[-most] + _HOUR if most and len(times) >= most else None


def _began(task: Task) -> datetime | None:
    try:
        return parse_time(task.pod.status.start_time) if task.pod.status.start_time else None
    except ValueError:
        return None
