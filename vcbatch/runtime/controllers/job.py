"""The job controller: maps events to jobs and builds the view for a decision."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from vcbatch.api.command import Command
from vcbatch.api.job import Job, JobPhase
from vcbatch.api.loose import part
from vcbatch.api.model import MalformedObject
from vcbatch.api.names import ALLOWED_NAMESPACES
from vcbatch.api.pod import Pod, PodPhase
from vcbatch.api.podgroup import PodGroup
from vcbatch.api.queue import Queue
from vcbatch.api.quota import Quota, has_more_room
from vcbatch.api.reasons import JobReason
from vcbatch.api.resources import JOBS, PERSISTENTVOLUMECLAIMS, PODGROUPS, PODS
from vcbatch.api.scheduling import PriorityClassView
from vcbatch.api.storage import Claim
from vcbatch.core.job import (
    JobView,
    PluginFailedError,
    decide,
    plugin_failed,
    read_job,
    read_of_group,
    read_of_pod,
    unreadable,
    wanted_children,
    wanted_claims,
    wanted_references,
)
from vcbatch.core.machine import Decision
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Json
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.apply import Applier, NotAppliedError
from vcbatch.runtime.caches.cache import Cache, Change, identity, metadata_of
from vcbatch.runtime.caches.parsed import Parsed
from vcbatch.runtime.controllers.children import CHILD_RESOURCES, Children, ChildrenCheck
from vcbatch.runtime.controllers.claims import Claims, claims_of_job
from vcbatch.runtime.controllers.command import target_of
from vcbatch.runtime.controllers.controller import Controller, ControllerConfig
from vcbatch.runtime.controllers.departed import Departed
from vcbatch.runtime.controllers.job_pace import JobPace
from vcbatch.runtime.controllers.jobs_before import JobsBefore
from vcbatch.runtime.controllers.references import References
from vcbatch.runtime.controllers.refusals import Refusals, Report
from vcbatch.runtime.controllers.vacated import GIVEN_NAME_RESTS_SECONDS, VacatedNames
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.metrics.meter import Meter

log = logging.getLogger(__name__)

PODS_OF_A_JOB = "job that controls it"
"""The index of pods by the UID of their job (`job_of_pod`)."""
_TARGET = "job that it is for"
_QUEUE = "queue"
_PRIORITY_CLASS = "priority class"
_CLAIM = "claim that it mounts"
_DEFAULT_QUEUE = "default"
_USING = frozenset({JobPhase.PENDING, JobPhase.RUNNING})
"""Phases in which pods use the objects of plugins, or are about to."""
_PHASE = "job that controls it, and phase"
_REPORTED = {
    f"create {PODS.kind}": Report(JobReason.FAILED_CREATE),
    f"delete {PODS.kind}": Report(JobReason.FAILED_DELETE),
    f"ensure {PERSISTENTVOLUMECLAIMS.kind}": Report(JobReason.PVC_ERROR),
    f"mark {JOBS.kind}": Report(JobReason.PVC_ERROR),
    f"ensure {PODGROUPS.kind}": Report(JobReason.POD_GROUP_ERROR),
    **{f"ensure {resource.kind}": Report(JobReason.PLUGIN_ERROR) for resource in CHILD_RESOURCES},
    f"write status of {JOBS.kind}": Report(JobReason.JOB_STATUS_ERROR),
}
_target_of = target_of(JOBS)
_LONGEST_SETTLED = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSources:
    """The caches that a job's view is built from."""

    jobs: Cache[Json]
    pods: Cache[Pod]
    podgroups: Cache[Json]
    queues: Cache[Json]
    commands: Cache[Json]
    priority_classes: Cache[PriorityClassView]
    children: Children
    claims: Claims
    references: References
    quotas: Cache[Quota]


Ending = Callable[[Json, Json, Sequence[Pod]], Awaitable[None]]
"""Gets a job, its next status, and its pods."""


@dataclass(frozen=True, slots=True)
class _Settled:
    """A reconcile that found nothing to do, and the interval in which time alone doesn't change that."""

    decision: Decision
    since: datetime
    until: datetime


class JobController:
    """Reconciles a job when it, one of its pods, its PodGroup, its queue, or a Command for it changes, and when
    something that prevented the creation of its pods may have been resolved."""

    def __init__(
        self,
        sources: JobSources,
        applier: Applier,
        recorder: Recorder,
        *,
        clock: Clock,
        random: Random,
        meter: Meter | None = None,
        ending: Ending | None = None,
    ) -> None:
        """`ending` is awaited before a decision that writes a status is applied."""
        self._ending = ending
        self._sources = sources
        self._clock = clock
        self._settled: dict[str, _Settled] = {}  # job UID -> its last reconcile, if that found nothing to do
        self._pace = JobPace(clock=clock, queued=lambda: len(self.controller.queue))
        self._vacated = VacatedNames(rests=GIVEN_NAME_RESTS_SECONDS, clock=clock)
        self._departed: Departed[Pod] = Departed()
        self._before = JobsBefore(sources.jobs)
        self._jobs = Parsed(read_job)
        self._groups = Parsed(PodGroup.parse)
        self._queues = Parsed(Queue.parse)
        self._refusals = Refusals(JOBS, sources.jobs, recorder, _REPORTED)
        self._refusals.over = self._ask  # the status has to drop the refusal
        self.controller = Controller(
            ControllerConfig(name="job-controller"),
            self.decide,
            applier,
            clock=clock,
            random=random,
            meter=meter,
            carried_out=self._carried_out,
            # Finish jobs that were started before starting others: then fewer of their steps are written one by one,
            # and running jobs are reconciled promptly however many are submitted.
            yields=lambda uid: not self._pace.begun(uid),
        )
        self._listen()

    def part(self) -> Part:
        return self.controller.part()

    def check_part(self) -> Part:
        """The background task that detects deleted plugin objects of running jobs."""
        check = ChildrenCheck(
            self._sources.children, running=self._with_objects_in_use, changed=self._ask, clock=self._clock
        )
        return Part(name="checking the objects of job plugins", run=check.run)

    # Events and the jobs they affect

    def _listen(self) -> None:
        sources = self._sources
        sources.jobs.add_index(_QUEUE, _queue_of)
        sources.jobs.add_index(_CLAIM, claims_of_job)
        sources.jobs.add_index(_PRIORITY_CLASS, _priority_classes_of)
        sources.pods.add_index(PODS_OF_A_JOB, job_of_pod)
        sources.pods.add_index(_PHASE, _job_and_phase)
        sources.commands.add_index(_TARGET, _target_of)
        sources.jobs.listen(self._on_job)
        sources.pods.listen(self._on_pod)
        sources.podgroups.listen(self._on_podgroup)
        sources.queues.listen(self._on_queue)
        sources.commands.listen(self._on_command)
        sources.claims.cache.listen(self._on_claim)
        sources.quotas.listen(self._on_quota)
        sources.priority_classes.listen(self._on_priority_class)

    def _ask(self, uid: str, seconds: float = 0.0) -> None:
        """Something that the job's decision depends on has changed: reconcile it after that many seconds."""
        self._settled.pop(uid, None)
        self.controller.queue.add_after(uid, seconds)

    def _on_job(self, change: Change[Json]) -> None:
        who = identity(change.current)
        self._before.note(change)
        for uid in self._before.affected(change):
            self._ask(uid)
        if change.new is None:
            self._sources.children.forget(who.uid, change.current["metadata"].get("namespace", ""))
        if change.keeps(_beside_status):
            # Nearly always the event of our own write, which must not cause the next one.
            self._ask(who.uid, self._rest(who.uid, progress=change.keeps(_phase)))
        else:
            self._ask(who.uid)

    def _on_pod(self, change: Change[Pod]) -> None:
        if change.new is None:
            self._vacated.add(identity(change.current).key)
            for uid in job_of_pod(change.current):
                self._departed.add(uid, change.current.metadata.name, change.current)
        if change.keeps(read_of_pod):
            return
        for uid in job_of_pod(change.current):
            self._ask(uid, self._rest(uid, progress=self._only_progress(uid, change)))

    def _rest(self, uid: str, *, progress: bool = False) -> float:
        """Seconds until the next reconcile that only events of its pods or its status cause."""
        return self._pace.rest(uid, pods=self._sources.pods.count(PODS_OF_A_JOB, uid), progress=progress)

    def _only_progress(self, uid: str, change: Change[Pod]) -> bool:
        """Whether the change is that a pod started or succeeded, while others have yet to."""
        pod, count = change.new, self._sources.pods.count
        if pod is None or pod.metadata.deletion_timestamp or pod.status.phase == PodPhase.FAILED:
            return False
        if count(_PHASE, f"{uid} {PodPhase.PENDING}"):
            return True
        return pod.status.phase == PodPhase.SUCCEEDED and bool(count(_PHASE, f"{uid} {PodPhase.RUNNING}"))

    def _on_podgroup(self, change: Change[Json]) -> None:
        if change.keeps(self._read_of_group):
            return  # its counts changed, or its gang starts, which the pods' events report
        made = change.old is None and not part(change.current, "status")
        for owner in change.current["metadata"].get("ownerReferences") or ():
            if owner.get("kind") == JOBS.kind and owner.get("apiVersion") == JOBS.api_version:
                uid: str = owner.get("uid", "")
                # A PodGroup that was just created, usually by this controller, is soon admitted.
                self._ask(uid, self._rest(uid, progress=True) if made else 0.0)

    def _read_of_group(self, stored: Json) -> object:
        """The fields of a PodGroup that its job's decision depends on; of one that can't be parsed, the whole
        object."""
        try:
            return read_of_group(self._groups.of(stored))
        except MalformedObject:
            return stored

    def _on_queue(self, change: Change[Json]) -> None:
        if change.keeps(_takes):
            return  # only its counts changed, and no decision depends on them
        for job in self._sources.jobs.indexed(_QUEUE, change.current["metadata"]["name"]):
            self._ask(identity(job).uid)

    def _on_command(self, change: Change[Json]) -> None:
        for key in _target_of(change.current):
            job = self._sources.jobs.by_key(key)
            if job is not None:
                self._ask(identity(job).uid)

    def _on_claim(self, change: Change[Claim]) -> None:
        if change.keeps(_state_of_claim):
            return
        for job in self._sources.jobs.indexed(_CLAIM, change.current.metadata.key):
            self._ask(identity(job).uid)

    def _on_quota(self, change: Change[Quota]) -> None:
        """Retry creations that a quota refused as soon as it has more free capacity."""
        if change.old is None or (change.new is not None and not has_more_room(change.new, change.old)):
            return
        for uid in self._refusals.with_reason(JobReason.FAILED_CREATE):
            job = self._sources.jobs.get(uid)
            if job is not None and job["metadata"].get("namespace") == change.current.metadata.namespace:
                self._ask(uid)

    def _on_priority_class(self, change: Change[PriorityClassView]) -> None:
        """Pods can't be created while their PriorityClass is missing, and its value orders the tasks of a job."""
        for job in self._sources.jobs.indexed(_PRIORITY_CLASS, change.current.metadata.name):
            self._ask(identity(job).uid)

    # Decisions

    async def decide(self, uid: str, now: datetime) -> Decision | None:
        stored = self._sources.jobs.get(uid)
        if stored is None:
            self._pace.forget(uid)
            self._settled.pop(uid, None)
            self._refusals.forget(uid)
            self._departed.forget(uid)
            return None
        self._pace.reconcile(uid)
        settled = self._settled.get(uid)
        if settled is not None and settled.since <= now < settled.until:
            return settled.decision
        try:
            view, decision = await self._decided(stored, now)
            self._note_settled(uid, view, decision, now)
        except PluginFailedError as error:
            log.warning("%s", error, extra={"uid": uid}, exc_info=error.__cause__)
            return plugin_failed(self._jobs.of(stored), error, now=now)
        except MalformedObject as error:
            log.warning("the objects of a decision can't be read: %s", error, extra={"uid": uid})
            return unreadable(stored, metadata_of(stored), str(error))
        new, held_up = not stored.get("status"), self._refusals.last(uid) is not None
        paced = self._pace.paced(uid, decision, new=new, held_up=held_up, now=now)
        await self._announce(uid, paced)
        return self._vacated.hold(paced, now=now)

    async def _announce(self, uid: str, decision: Decision) -> None:
        """Report the next status, unless the job has changed since: then it won't be written."""
        stored, status = self._sources.jobs.get(uid), decision.status
        if self._ending is None or status is None or stored is None:
            return
        if stored["metadata"].get("resourceVersion") == status.resource_version:
            await self._ending(stored, status.status, self._sources.pods.indexed(PODS_OF_A_JOB, uid))

    def _note_settled(self, uid: str, view: JobView, decision: Decision, now: datetime) -> None:
        """Remember that there is nothing to do: the same state gives the same decision. Until an event changes it or
        its interval ends, another reconcile costs nothing, however many pods the job has."""
        refused = view.refusal or view.claim_refusal or view.child_refusal or view.group_refusal
        if decision.nothing_to_do and not view.departed and not refused:
            until = min(now + _LONGEST_SETTLED, decision.requeue_at or datetime.max.replace(tzinfo=UTC))
            self._settled[uid] = _Settled(decision, since=now, until=until)

    async def _decided(self, stored: Json, now: datetime) -> tuple[JobView, Decision]:
        """The view and the decision made from it. Before pods are created, the plugin objects that they need are
        checked to exist."""
        view, again = await self._view(stored)
        decision = decide(view, now=now)
        uid, status = view.job.uid, view.job.status
        attempt = (status.version, status.retry_count)
        if decision.creates and not self._sources.children.is_fresh(uid, attempt=attempt):
            self._sources.children.read_again(uid)
            view, again = await self._view(stored)
            decision = decide(view, now=now)
        if again is not None:
            due = now + timedelta(seconds=again)
            decision = replace(decision, requeue_at=min(due, decision.requeue_at or due))
        return view, decision

    def _with_objects_in_use(self) -> list[tuple[str, str]]:
        """UID and namespace of each job with pods that use the objects of its plugins."""
        found: list[tuple[str, str]] = []
        for job in self._sources.jobs:
            metadata = job["metadata"]
            if _phase(job) not in _USING or not part(job, "spec").get("plugins") or metadata.get("deletionTimestamp"):
                continue
            if self._sources.pods.count(PODS_OF_A_JOB, metadata["uid"]):
                found.append((metadata["uid"], metadata.get("namespace", "")))
        return found

    async def _view(self, stored: Json) -> tuple[JobView, float | None]:
        """The view for a decision, and the seconds after which to reconcile again for objects that are missing; None
        where none is."""
        sources = self._sources
        job = self._jobs.of(stored)
        # Await these reads first: nothing is awaited after them, so that the view is consistent.
        made = wanted_children(job)
        children = await sources.children.of(job.uid, job.namespace, made)
        await sources.claims.verify(job)
        absent, again = await sources.references.absent(job.uid, job.namespace, wanted_references(job, made))
        current = sources.jobs.get(job.uid)
        if current is not None and current is not stored:
            job = self._jobs.of(current)
        view = JobView(
            job=job,
            pods=sources.pods.indexed(PODS_OF_A_JOB, job.uid),
            departed=self._departed.see(job.uid),
            pod_group=self._pod_group(job),
            children=children,
            claims=sources.claims.of(job.namespace, wanted_claims(job)),
            absent=absent,
            queue=self._queue(job),
            others=self._before.others(job),
            awaited=self._before.awaited(job),
            priority_classes={item.metadata.name: item.value for item in sources.priority_classes},
            commands=[Command.parse(item) for item in sources.commands.indexed(_TARGET, job.key)],
            refusal=self._refusals.of(job.uid, JobReason.FAILED_CREATE),
            claim_refusal=self._refusals.of(job.uid, JobReason.PVC_ERROR),
            child_refusal=self._refusals.of(job.uid, JobReason.PLUGIN_ERROR),
            group_refusal=self._refusals.of(job.uid, JobReason.POD_GROUP_ERROR),
        )
        return view, again

    def _pod_group(self, job: Job) -> PodGroup | None:
        stored = self._sources.podgroups.by_key(f"{job.namespace}/{job.name}-{job.uid}")
        return self._groups.of(stored) if stored is not None else None

    def _queue(self, job: Job) -> Queue | None:
        stored = self._sources.queues.by_key(job.spec.queue or _DEFAULT_QUEUE)
        return self._queues.of(stored) if stored is not None else None

    def _carried_out(self, uid: str, refused: NotAppliedError | None) -> None:
        self._refusals.carried_out(uid, refused)
        if refused is None:
            self._departed.written_down(uid)


def _beside_status(job: Json) -> tuple[object, ...]:
    metadata = job["metadata"]
    return metadata.get("generation"), metadata.get("deletionTimestamp")


def _phase(job: Json) -> object:
    return part(part(job, "status"), "state").get("phase")


def job_of_pod(pod: Pod) -> Iterable[str]:
    """The UID of the job that controls the pod, if any."""
    owner = pod.metadata.controller_owner()
    if owner is not None and owner.kind == JOBS.kind and owner.api_version == JOBS.api_version:
        yield owner.uid


def _job_and_phase(pod: Pod) -> Iterable[str]:
    for uid in job_of_pod(pod):
        yield f"{uid} {pod.status.phase}"


def _queue_of(job: Json) -> Iterable[str]:
    yield (job.get("spec") or {}).get("queue") or _DEFAULT_QUEUE


def _priority_classes_of(job: Json) -> Iterable[str]:
    spec = job.get("spec") or {}
    templates = ((task.get("template") or {}).get("spec") or {} for task in spec.get("tasks") or ())
    yield from {part["priorityClassName"] for part in (spec, *templates) if part.get("priorityClassName")}


def _state_of_claim(claim: Claim) -> tuple[object, ...]:
    """The fields of a claim that a job's decision depends on."""
    meta = claim.metadata
    return meta.uid, meta.deletion_timestamp, meta.owner_references, claim.status.phase, claim.spec.volume_name


def _takes(queue: Json) -> tuple[object, ...]:
    """The fields of a queue that decide whether it accepts a job."""
    annotations = part(part(queue, "metadata"), "annotations")
    return part(queue, "status").get("state") or "", annotations.get(ALLOWED_NAMESPACES)
