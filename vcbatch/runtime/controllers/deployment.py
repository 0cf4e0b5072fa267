"""The Deployment controller: maps events to Deployments and builds the view for a decision."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from vcbatch.api.apps import Deployment, ReplicaSet, StrategyType
from vcbatch.api.loose import part
from vcbatch.api.meta import ObjectMeta
from vcbatch.api.pod import Pod
from vcbatch.api.reasons import DeploymentConditionReason
from vcbatch.api.resources import DEPLOYMENTS, REPLICASETS
from vcbatch.core.machine import Decision
from vcbatch.core.workload.deployment import DeploymentView, decide, deployment_owner
from vcbatch.core.workload.ownership import Owner, controller_uid
from vcbatch.core.workload.pods import is_over
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Api, Json
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache, Change, identity, metadata_of
from vcbatch.runtime.controllers.controller import Controller, ControllerConfig
from vcbatch.runtime.controllers.owned import (
    adopters,
    controlled,
    index_owners,
    orphans,
    owners_of,
    read,
    view_for_adoption,
)
from vcbatch.runtime.controllers.refusals import Refusals, Report
from vcbatch.runtime.events.recorder import Recorder

_TEXTS = {
    f"create {REPLICASETS.kind}": Report(DeploymentConditionReason.CREATE_ERROR, "Failed to create new replica set: "),
}


class DeploymentController:
    """Reconciles a Deployment when it or one of its ReplicaSets changes, and when one of their pods ends."""

    def __init__(
        self,
        api: Api,
        deployments: Cache[Json],
        replica_sets: Cache[Json],
        pods: Cache[Pod],
        applier: Applier,
        recorder: Recorder,
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        self._api = api
        self._deployments = deployments
        self._replica_sets = replica_sets
        self._pods = pods
        self._refusals = Refusals(DEPLOYMENTS, deployments, recorder, _TEXTS)
        self.controller = Controller(
            ControllerConfig(name="deployment-controller"),
            self.decide,
            applier,
            clock=clock,
            random=random,
            carried_out=self._refusals.carried_out,
        )
        self._refusals.over = self.controller.queue.add
        index_owners(replica_sets)
        index_owners(pods)
        deployments.listen(self._on_deployment)
        replica_sets.listen(self._on_replica_set)
        pods.listen(self._on_pod)

    def part(self) -> Part:
        return self.controller.part()

    def _on_deployment(self, change: Change[Json]) -> None:
        self.controller.queue.add(identity(change.current).uid)

    def _on_replica_set(self, change: Change[Json]) -> None:
        for uid in (*owners_of(self._deployments, change), *adopters(self._deployments, change)):
            self.controller.queue.add(uid)

    def _on_pod(self, change: Change[Pod]) -> None:
        """With the strategy Recreate, new pods wait until the last old pod has ended."""
        if change.new is not None and not is_over(change.new):
            return
        replica_set = self._replica_sets.get(controller_uid(change.current.metadata))
        uid = controller_uid(metadata_of(replica_set)) if replica_set is not None else ""
        if uid and self._deployments.get(uid) is not None:
            self.controller.queue.add(uid)

    async def decide(self, uid: str, now: datetime) -> Decision | None:
        stored = self._deployments.get(uid)
        if stored is None:
            self._refusals.forget(uid)
            return None
        view = await view_for_adoption(self._api, self._deployments, stored, self._view, _claims)
        return decide(view, now=now) if view is not None else None

    def _view(self, stored: Json) -> DeploymentView:
        deployment = read(stored, Deployment)
        uid, namespace = deployment.metadata.uid, deployment.metadata.namespace
        found = [*controlled(self._replica_sets, uid), *orphans(self._replica_sets, namespace)]
        replica_sets = [read(each, ReplicaSet) for each in found]
        recreates = deployment.spec.strategy.type == StrategyType.RECREATE
        refusal = self._refusals.last(uid)
        return DeploymentView(
            deployment=deployment,
            status=part(stored, "status"),
            replica_sets=replica_sets,
            pods={each.metadata.uid: self._left(each) for each in replica_sets} if recreates else {},
            taken=lambda name: self._replica_sets.by_key(f"{namespace}/{name}") is not None,
            refusal=refusal[1] if refusal else "",
        )

    def _left(self, replica_set: ReplicaSet) -> int:
        return sum(not is_over(pod) for pod in controlled(self._pods, replica_set.metadata.uid))


def _claims(view: DeploymentView) -> tuple[Owner, Iterable[ObjectMeta]]:
    return deployment_owner(view.deployment), (each.metadata for each in view.replica_sets)
