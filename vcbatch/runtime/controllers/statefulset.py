"""The StatefulSet controller: maps events to StatefulSets and builds the view for a decision."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial

from vcbatch.api.apps import ControllerRevision, StatefulSet
from vcbatch.api.loose import part
from vcbatch.api.meta import ObjectMeta
from vcbatch.api.pod import Pod
from vcbatch.api.reasons import WorkloadReason
from vcbatch.api.resources import CONTROLLERREVISIONS, PERSISTENTVOLUMECLAIMS, PODS, STATEFULSETS
from vcbatch.api.storage import Claim
from vcbatch.core.machine import Decision
from vcbatch.core.workload.ownership import Owner
from vcbatch.core.workload.statefulset import StatefulSetView, decide, stateful_set_owner
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Api, Json
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
    owners_of,
    read,
    view_for_adoption,
)
from vcbatch.runtime.controllers.refusals import Refusals, Report
from vcbatch.runtime.controllers.vacated import GIVEN_NAME_RESTS_SECONDS, VacatedNames
from vcbatch.runtime.events.recorder import Recorder

_TEXTS = {
    f"create {PODS.kind}": Report(WorkloadReason.FAILED_CREATE, "Create Pod failed error: "),
    f"create {PERSISTENTVOLUMECLAIMS.kind}": Report(WorkloadReason.FAILED_CREATE, "Create Claim failed error: "),
    f"create {CONTROLLERREVISIONS.kind}": Report(
        WorkloadReason.FAILED_CREATE, "Create ControllerRevision failed error: "
    ),
    f"delete {PODS.kind}": Report(WorkloadReason.FAILED_DELETE, "Delete Pod failed error: "),
}


class StatefulSetController:
    """Reconciles a StatefulSet when it, one of its pods or revisions, or a claim of its pods changes, and when an
    orphan appears that matches its selector."""

    def __init__(
        self,
        api: Api,
        stateful_sets: Cache[Json],
        revisions: Cache[Json],
        pods: Cache[Pod],
        claims: Cache[Claim],
        applier: Applier,
        recorder: Recorder,
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        self._api = api
        self._stateful_sets = stateful_sets
        self._revisions = revisions
        self._pods = pods
        self._claims = claims
        self._vacated = VacatedNames(rests=GIVEN_NAME_RESTS_SECONDS, clock=clock)
        self._refusals = Refusals(STATEFULSETS, stateful_sets, recorder, _TEXTS)
        self.controller = Controller(
            ControllerConfig(name="statefulset-controller"),
            self.decide,
            applier,
            clock=clock,
            random=random,
            carried_out=self._refusals.carried_out,
        )
        index_owners(pods)
        index_owners(revisions)
        stateful_sets.listen(self._on_stateful_set)
        pods.listen(self._on_pod)
        revisions.listen(self._requeue_owners)
        claims.listen(self._on_claim)

    def part(self) -> Part:
        return self.controller.part()

    def _on_stateful_set(self, change: Change[Json]) -> None:
        self.controller.queue.add(identity(change.current).uid)

    def _on_pod(self, change: Change[Pod]) -> None:
        if change.new is None:
            self._vacated.add(identity(change.current).key)
        self._requeue_owners(change)
        for uid in adopters(self._stateful_sets, change):
            self.controller.queue.add(uid)

    def _on_claim(self, change: Change[Claim]) -> None:
        """A deleted claim may have prevented the creation of a pod."""
        if change.new is not None:
            return
        metadata = change.current.metadata
        for stateful_set in self._stateful_sets:
            owner = stateful_set["metadata"]
            if owner.get("namespace") == metadata.namespace and f"-{owner['name']}-" in metadata.name:
                self.controller.queue.add(owner["uid"])

    def _requeue_owners(self, change: Change[Pod] | Change[Json]) -> None:
        for uid in owners_of(self._stateful_sets, change):
            self.controller.queue.add_after(uid, PODS_SECONDS)

    async def decide(self, uid: str, now: datetime) -> Decision | None:
        stored = self._stateful_sets.get(uid)
        if stored is None:
            self._refusals.forget(uid)
            return None
        view = await view_for_adoption(self._api, self._stateful_sets, stored, partial(self._view, now=now), _claims)
        return decide(view, now=now) if view is not None else None

    def _view(self, stored: Json, now: datetime) -> StatefulSetView:
        stateful_set = read(stored, StatefulSet)
        uid, namespace = stateful_set.metadata.uid, stateful_set.metadata.namespace
        revisions = [*controlled(self._revisions, uid), *orphans(self._revisions, namespace)]
        return StatefulSetView(
            stateful_set=stateful_set,
            status=part(stored, "status"),
            pods=[*controlled(self._pods, uid), *orphans(self._pods, namespace)],
            revisions=[read(each, ControllerRevision) for each in revisions],
            claim=lambda name: self._claims.by_key(f"{namespace}/{name}"),
            taken=lambda name: self._revisions.by_key(f"{namespace}/{name}") is not None,
            free_at=lambda name: self._vacated.free_at(f"{namespace}/{name}", now=now),
        )


def _claims(view: StatefulSetView) -> tuple[Owner, Iterable[ObjectMeta]]:
    return stateful_set_owner(view.stateful_set), (each.metadata for each in (*view.pods, *view.revisions))
