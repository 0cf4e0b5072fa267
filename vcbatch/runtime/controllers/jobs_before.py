"""The jobs that other jobs depend on: which jobs a change affects, and the jobs for the view of a decision."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

from vcbatch.api.job import Job, JobPhase
from vcbatch.api.loose import part
from vcbatch.api.names import AFTER
from vcbatch.api.start_conditions import dependencies
from vcbatch.core.job import OtherJobs, awaits, other_jobs, waits_for_others
from vcbatch.core.job.start import read_other
from vcbatch.interfaces.api import Json
from vcbatch.runtime.caches.cache import Cache, Change, identity

_AFTER: Final = "job that it depends on"
_MOST_REMEMBERED: Final = 1024


class JobsBefore:
    """Reads and indexes the cache of jobs. Only jobs with the annotation cost anything."""

    def __init__(self, jobs: Cache[Json]) -> None:
        self._jobs = jobs
        self._ended: OrderedDict[str, JobPhase] = OrderedDict()  # UID -> the last phase of a deleted job
        jobs.add_index(_AFTER, _keys_before)

    def note(self, change: Change[Json]) -> None:
        """Remember the last phase of a deleted job on which others depend: they may have yet to see its end. Only the
        newest are remembered."""
        who = identity(change.current)
        if change.new is None and self._jobs.count(_AFTER, who.key):
            self._ended[who.uid] = read_other(change.current).phase
            while len(self._ended) > _MOST_REMEMBERED:
                self._ended.popitem(last=False)

    def affected(self, change: Change[Json]) -> Iterator[str]:
        """UIDs of the jobs to reconcile: those that depend on the changed one, and finished ones that were kept until
        it recorded their ends."""
        key = identity(change.current).key
        if self._jobs.count(_AFTER, key) and not change.keeps(read_other):
            for dependent in self._jobs.indexed(_AFTER, key):
                yield identity(dependent).uid
        before = {key for job in (change.old, change.new) if job is not None for key in _keys_before(job)}
        if before and not change.keeps(_recorded):
            for key in sorted(before):
                other = self._jobs.by_key(key)
                if other is not None and read_other(other).phase.finished:
                    yield identity(other).uid

    def others(self, job: Job) -> OtherJobs:
        """The jobs on which this one depends."""
        if not waits_for_others(job):
            return OtherJobs()
        return OtherJobs(other_jobs(job, lambda name: self._jobs.by_key(f"{job.namespace}/{name}")), self._ended)

    def awaited(self, job: Job) -> bool:
        """Whether another job waits for the end of this finished one, and has yet to record it."""
        if not job.phase.finished:
            return False
        return any(awaits(other, name=job.name, uid=job.uid) for other in self._jobs.indexed(_AFTER, job.key))


def _keys_before(job: Json) -> Iterable[str]:
    """`namespace/name` of each job that this one depends on."""
    metadata = job["metadata"]
    text = part(metadata, "annotations").get(AFTER)
    if isinstance(text, str):
        namespace = metadata.get("namespace", "")
        yield from (f"{namespace}/{one.name}" for one in dependencies({AFTER: text}))


def _recorded(job: Json) -> object:
    """What of a job decides whether it still awaits others."""
    status = part(job, "status")
    ledger = part(status, "ledger")
    state = part(status, "state").get("phase")
    return part(job["metadata"], "annotations").get(AFTER), ledger.get("dependencies"), ledger.get("released"), state
