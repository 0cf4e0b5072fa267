"""The CronJob controller: creates jobs on a schedule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from vcbatch.api.batch_job import BatchJob
from vcbatch.api.cronjob import AnyCronJob, BatchCronJob, CronJob
from vcbatch.api.job import Job
from vcbatch.api.loose import part
from vcbatch.api.messages import shorten
from vcbatch.api.reasons import CronJobReason
from vcbatch.api.resources import BATCH_CRONJOBS, BATCH_JOBS, CRONJOBS, JOBS, Resource
from vcbatch.core.cronjob import CronJobView, decide
from vcbatch.core.cronjob.kinds import VOLCANO, AnyJob, Kinds
from vcbatch.core.machine import Decision, Emit, EventType, ref_of
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Json
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.apply import Applier, NotAppliedError
from vcbatch.runtime.caches.cache import Cache, Change, identity, metadata_of
from vcbatch.runtime.controllers.controller import Controller, ControllerConfig
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.metrics.meter import Meter
from vcbatch.runtime.time_zones import time_zone

_OWNER = "CronJob that controls it"
_STEM = "name without the number at its end"
_NUMBERED = re.compile(r"(.+)-[0-9]+", re.ASCII)
_WORKERS = 48
"""Many schedules have the same times: at the full hour, all CronJobs with `@hourly` create their jobs at once."""

_Reported = frozenset[tuple[str, str]]


class CronJobController:
    """Reconciles a CronJob of one of the two kinds when it or one of its jobs changes, and at its next schedule
    time."""

    def __init__(
        self,
        cron_jobs: Cache[Json],
        jobs: Cache[Json],
        applier: Applier,
        recorder: Recorder,
        *,
        clock: Clock,
        random: Random,
        meter: Meter | None = None,
        kinds: Kinds = VOLCANO,
    ) -> None:
        self._kinds = kinds
        self._cron_jobs = cron_jobs
        self._jobs = jobs
        self._recorder = recorder
        self._clock = clock
        self._rescheduled: dict[str, datetime] = {}  # CronJob UID -> time of the last change of its schedule
        # Events of the last reconcile, by UID: one that the next reconcile repeats isn't emitted again.
        self._reported: dict[str, _Reported] = {}
        self._reporting: dict[str, _Reported] = {}
        self.controller = Controller(
            ControllerConfig(name=_NAMES[kinds.cron_job], workers=_WORKERS),
            self.decide,
            applier,
            clock=clock,
            random=random,
            meter=meter,
            carried_out=self._carried_out,
        )
        jobs.add_index(_OWNER, _owner_of)
        jobs.add_index(_STEM, _stem_of)
        cron_jobs.listen(self._on_cron_job)
        jobs.listen(self._on_job)

    def part(self) -> Part:
        return self.controller.part()

    def _on_cron_job(self, change: Change[Json]) -> None:
        uid = identity(change.current).uid
        if change.old is not None and change.new is not None and not change.keeps(_schedule):
            self._rescheduled[uid] = self._clock.now()
        self.controller.queue.add(uid)

    def _on_job(self, change: Change[Json]) -> None:
        if change.keeps(_standing):
            return  # only its counts changed, and no decision depends on them
        concerned = {uid for held in (change.old, change.new) if held is not None for uid in _owner_of(held)}
        if change.new is None:  # another CronJob may have waited for the name
            for stem in _stem_of(change.current):
                namesake = self._cron_jobs.by_key(stem)
                if namesake is not None:
                    concerned.add(identity(namesake).uid)
        for uid in concerned:
            self.controller.queue.add(uid)

    async def decide(self, uid: str, now: datetime) -> Decision | None:
        stored = self._cron_jobs.get(uid)
        if stored is None:
            for memory in (self._rescheduled, self._reported, self._reporting):
                memory.pop(uid, None)
            return None
        return self._only_news(uid, decide(self._view(uid, stored), now=now))

    def _view(self, uid: str, stored: Json) -> CronJobView:
        jobs = {identity(job).uid: job for job in self._jobs.indexed(_OWNER, uid)}
        jobs |= {identity(job).uid: job for job in self._jobs.indexed(_STEM, identity(stored).key)}
        return CronJobView(
            cron_job=_CRON_JOBS[self._kinds.cron_job].parse(stored),
            jobs=[_JOBS[self._kinds.job].parse(job) for job in jobs.values()],
            zones=time_zone,
            rescheduled_at=self._rescheduled.get(uid),
        )

    def _only_news(self, uid: str, decision: Decision) -> Decision:
        reported = self._reported.get(uid, frozenset())
        self._reporting[uid] = frozenset((event.reason, event.message) for event in decision.events)
        return replace(
            decision, events=[event for event in decision.events if (event.reason, event.message) not in reported]
        )

    def _carried_out(self, uid: str, refused: NotAppliedError | None) -> None:
        """Emit an event for what the server refuses; transient errors are not reported."""
        if refused is None:
            self._reported[uid] = self._reporting.pop(uid, frozenset())
            return
        stored, reason, error = self._cron_jobs.get(uid), _REASONS.get(refused.part), refused.error
        taken = error.already_exists  # the next reconcile knows the existing object, and reports it
        if stored is None or reason is None or taken or refused.passing:
            return
        if reason is CronJobReason.FAILED_CREATE and error.namespace_terminating:
            reason = CronJobReason.NAMESPACE_TERMINATING
        ref = ref_of(self._kinds.cron_job, metadata_of(stored))
        self._recorder.emit(Emit(ref=ref, type=EventType.WARNING, reason=reason, message=shorten(str(refused))))


_CRON_JOBS: Mapping[Resource, type[AnyCronJob]] = {CRONJOBS: CronJob, BATCH_CRONJOBS: BatchCronJob}
_JOBS: Mapping[Resource, type[AnyJob]] = {JOBS: Job, BATCH_JOBS: BatchJob}
_NAMES = {CRONJOBS: "cronjob-controller", BATCH_CRONJOBS: "batch-cronjob-controller"}
_REASONS = {
    f"create {JOBS.kind}": CronJobReason.FAILED_CREATE,
    f"delete {JOBS.kind}": CronJobReason.FAILED_DELETE,
}


def _schedule(cron_job: Json) -> tuple[object, object]:
    spec = cron_job.get("spec") or {}
    return spec.get("schedule"), spec.get("timeZone")


def _standing(job: Json) -> tuple[object, ...]:
    """The fields of a job that a decision about its CronJob depends on."""
    metadata, status = job["metadata"], part(job, "status")
    end = [condition.get("type") for condition in status.get("conditions") or () if condition.get("status") == "True"]
    return (
        part(status, "state").get("phase"),
        end,
        bool(metadata.get("deletionTimestamp")),
        metadata.get("annotations"),
        tuple(_owner_of(job)),
    )


def _owner_of(job: Json) -> Iterable[str]:
    for owner in job["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner.get("kind") == CRONJOBS.kind:
            yield owner.get("uid", "")


def _stem_of(job: Json) -> Iterable[str]:
    """The key of the CronJob that a job of this name may belong to."""
    found = _NUMBERED.fullmatch(job["metadata"]["name"])
    if found is not None:
        yield f"{job['metadata'].get('namespace', '')}/{found[1]}"
