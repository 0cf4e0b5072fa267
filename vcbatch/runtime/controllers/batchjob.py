"""The controller of batch/v1 Jobs in local mode, where no other controller reconciles them: maps events to Jobs and
builds the view for a decision."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from vcbatch.api.batch_job import BatchJob
from vcbatch.api.meta import ObjectMeta
from vcbatch.api.model import MalformedObject
from vcbatch.api.pod import Pod
from vcbatch.api.reasons import BatchJobReason
from vcbatch.api.resources import BATCH_JOBS, PODS
from vcbatch.core.batchjob import BatchJobView, decide, stray
from vcbatch.core.batchjob.decide import owner_of
from vcbatch.core.batchjob.pods import ended_at, is_tracked
from vcbatch.core.batchjob.tries import is_setback
from vcbatch.core.machine import Decision
from vcbatch.core.workload.ownership import Owner, controller_uid
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Api, Json, get_or_none
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache, Change, identity
from vcbatch.runtime.controllers.controller import Controller, ControllerConfig
from vcbatch.runtime.controllers.owned import (
    PODS_SECONDS,
    adopters,
    controlled,
    index_owners,
    orphans,
    view_for_adoption,
)
from vcbatch.runtime.controllers.refusals import Refusals, Report
from vcbatch.runtime.controllers.vacated import CHOSEN_NAME_RESTS_SECONDS, VacatedNames
from vcbatch.runtime.events.recorder import Recorder

_TEXTS: Final = {
    f"create {PODS.kind}": Report(BatchJobReason.FAILED_CREATE, "Error creating: "),
    f"delete {PODS.kind}": Report(BatchJobReason.FAILED_DELETE, "Error deleting: "),
}
_MOST_LOST: Final = 8
"""Failed pods that are remembered for each Job: after this many, the back-off is at its limit."""


class BatchJobController:
    """Reconciles a Job when it or one of its pods changes, when a deadline or delay expires, and when an orphaned pod
    matches its selector. Removes the tracking finalizer from pods whose Job was deleted."""

    def __init__(
        self,
        api: Api,
        jobs: Cache[Json],
        pods: Cache[Pod],
        applier: Applier,
        recorder: Recorder,
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        self._api = api
        self._jobs = jobs
        self._pods = pods
        self._vacated = VacatedNames(rests=CHOSEN_NAME_RESTS_SECONDS, clock=clock)
        self._lost: dict[str, dict[str, datetime]] = {}  # Job UID -> pod UID -> time of failure; pods being deleted
        self._refusals = Refusals(BATCH_JOBS, jobs, recorder, _TEXTS)
        self.controller = Controller(
            ControllerConfig(name="batch-job-controller"),
            self.decide,
            applier,
            clock=clock,
            random=random,
            carried_out=self._refusals.carried_out,
        )
        self._refusals.over = self.controller.queue.add
        index_owners(pods)
        jobs.listen(self._on_job)
        pods.listen(self._on_pod)

    def part(self) -> Part:
        return self.controller.part()

    def _on_job(self, change: Change[Json]) -> None:
        self.controller.queue.add(identity(change.current).uid)

    def _on_pod(self, change: Change[Pod]) -> None:
        pod = change.current
        if change.new is None:
            self._vacated.add(identity(pod).key)
        uids = {controller_uid(held.metadata) for held in (change.old, change.new) if held is not None}
        for uid in uids:
            stored = self._jobs.get(uid)
            if stored is not None:
                self._remember_loss(stored, pod)
                self.controller.queue.add_after(uid, PODS_SECONDS)
            elif uid and is_tracked(pod):
                self.controller.queue.add_after(uid, PODS_SECONDS)
        if change.new is not None and not controller_uid(pod.metadata) and is_tracked(pod):
            self.controller.queue.add(pod.metadata.uid)
        for uid in adopters(self._jobs, change):
            self.controller.queue.add(uid)

    def _remember_loss(self, stored: Json, pod: Pod) -> None:
        """Remember when a failed pod that is being deleted failed: the back-off before the next pod depends on it."""
        if pod.metadata.deletion_timestamp is None or not is_tracked(pod):
            return
        try:
            job = BatchJob.parse(stored)
        except MalformedObject:
            return
        if is_setback(pod, job):
            lost = self._lost.setdefault(job.uid, {})
            lost[pod.metadata.uid] = ended_at(pod)
            while len(lost) > _MOST_LOST:
                del lost[min(lost, key=lambda uid: lost[uid])]

    async def decide(self, uid: str, now: datetime) -> Decision | None:
        stored = self._jobs.get(uid)
        if stored is None:
            self._lost.pop(uid, None)
            self._refusals.forget(uid)
            return await self._strays(uid)
        view = await view_for_adoption(self._api, self._jobs, stored, self._view, _claims)
        return decide(view, now=now) if view is not None else None

    def _view(self, stored: Json) -> BatchJobView:
        job = BatchJob.parse(stored)
        return BatchJobView(
            job=job,
            pods=[*controlled(self._pods, job.uid), *orphans(self._pods, job.namespace)],
            taken=lambda name: self._taken(f"{job.namespace}/{name}"),
            lost=self._lost.get(job.uid, {}),
        )

    def _taken(self, key: str) -> bool:
        return self._pods.by_key(key) is not None or key in self._vacated

    async def _strays(self, uid: str) -> Decision | None:
        """The decision about `uid`, which is the UID of an unknown Job or of a pod without a controller."""
        orphan = self._pods.get(uid)
        if orphan is not None:
            return stray([] if controller_uid(orphan.metadata) else [orphan])
        left = [pod for pod in controlled(self._pods, uid) if is_tracked(pod)]
        if not left or await self._exists(uid, left[0]):
            return None
        return stray(left)

    async def _exists(self, uid: str, pod: Pod) -> bool:
        """Whether that Job exists on the server: the events of its pods may arrive before its own. True also for pods
        of other kinds, whose finalizers this controller must not remove."""
        owner = pod.metadata.controller_owner()
        if owner is None or (owner.api_version, owner.kind) != (BATCH_JOBS.api_version, BATCH_JOBS.kind):
            return True
        found = await get_or_none(self._api, BATCH_JOBS, owner.name, namespace=pod.metadata.namespace)
        return found is not None and found["metadata"]["uid"] == uid


def _claims(view: BatchJobView) -> tuple[Owner, Iterable[ObjectMeta]]:
    return owner_of(view.job), (pod.metadata for pod in view.pods)
