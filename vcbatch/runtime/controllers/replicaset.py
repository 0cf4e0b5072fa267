"""The ReplicaSet controller: maps events to ReplicaSets and builds the view for a decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from vcbatch.api.apps import ReplicaSet
from vcbatch.api.loose import part
from vcbatch.api.meta import ObjectMeta
from vcbatch.api.pod import Pod
from vcbatch.api.reasons import WorkloadReason
from vcbatch.api.resources import PODS, REPLICASETS
from vcbatch.core.machine import Decision
from vcbatch.core.workload.ownership import Owner, controller_uid
from vcbatch.core.workload.pods import is_active
from vcbatch.core.workload.replicaset import Refusal, ReplicaSetView, decide, replica_set_owner
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
from vcbatch.runtime.controllers.vacated import CHOSEN_NAME_RESTS_SECONDS, VacatedNames
from vcbatch.runtime.events.recorder import Recorder

_TEXTS = {
    f"create {PODS.kind}": Report(WorkloadReason.FAILED_CREATE, "Error creating: "),
    f"delete {PODS.kind}": Report(WorkloadReason.FAILED_DELETE, "Error deleting: "),
}


class ReplicaSetController:
    """Reconciles a ReplicaSet when it or one of its pods changes, and when an orphaned pod matches its selector."""

    def __init__(
        self,
        api: Api,
        replica_sets: Cache[Json],
        pods: Cache[Pod],
        applier: Applier,
        recorder: Recorder,
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        self._api = api
        self._replica_sets = replica_sets
        self._pods = pods
        self._vacated = VacatedNames(rests=CHOSEN_NAME_RESTS_SECONDS, clock=clock)
        self._refusals = Refusals(REPLICASETS, replica_sets, recorder, _TEXTS)
        self.controller = Controller(
            ControllerConfig(name="replicaset-controller"),
            self.decide,
            applier,
            clock=clock,
            random=random,
            carried_out=self._refusals.carried_out,
        )
        self._refusals.over = self.controller.queue.add
        index_owners(pods)
        index_owners(replica_sets)
        replica_sets.listen(self._on_replica_set)
        pods.listen(self._on_pod)

    def part(self) -> Part:
        return self.controller.part()

    def _on_replica_set(self, change: Change[Json]) -> None:
        if not change.keeps(_standing):
            self.controller.queue.add(identity(change.current).uid)

    def _on_pod(self, change: Change[Pod]) -> None:
        if change.new is None:
            self._vacated.add(identity(change.current).key)
        for uid in owners_of(self._replica_sets, change):
            self.controller.queue.add_after(uid, PODS_SECONDS)
        for uid in adopters(self._replica_sets, change):
            self.controller.queue.add(uid)

    async def decide(self, uid: str, now: datetime) -> Decision | None:
        stored = self._replica_sets.get(uid)
        if stored is None:
            self._refusals.forget(uid)
            return None
        view = await view_for_adoption(self._api, self._replica_sets, stored, self._view, _claims)
        return decide(view, now=now) if view is not None else None

    def _view(self, stored: Json) -> ReplicaSetView:
        replica_set = read(stored, ReplicaSet)
        metadata = replica_set.metadata
        refusal = self._refusals.last(metadata.uid)
        return ReplicaSetView(
            replica_set=replica_set,
            status=part(stored, "status"),
            pods=[*controlled(self._pods, metadata.uid), *orphans(self._pods, metadata.namespace)],
            taken=lambda name: self._taken(f"{metadata.namespace}/{name}"),
            neighbours=self._neighbours(replica_set),
            refusal=Refusal(reason=WorkloadReason(refusal[0]), message=refusal[1]) if refusal else None,
        )

    def _taken(self, key: str) -> bool:
        return self._pods.by_key(key) is not None or key in self._vacated

    def _neighbours(self, replica_set: ReplicaSet) -> Counter[str]:
        parent = controller_uid(replica_set.metadata)
        kin = [identity(each).uid for each in controlled(self._replica_sets, parent)] if parent else []
        return Counter(
            pod.spec.node_name
            for uid in kin or [replica_set.metadata.uid]
            for pod in controlled(self._pods, uid)
            if pod.spec.node_name and is_active(pod)
        )


def _claims(view: ReplicaSetView) -> tuple[Owner, Iterable[ObjectMeta]]:
    return replica_set_owner(view.replica_set), (pod.metadata for pod in view.pods)


def _standing(replica_set: Json) -> tuple[object, ...]:
    """The fields that a decision depends on; the status is written by this controller."""
    metadata = replica_set["metadata"]
    return metadata.get("generation"), metadata.get("deletionTimestamp"), metadata.get("labels")
