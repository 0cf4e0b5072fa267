"""What Kubernetes' controller manager does for workloads elsewhere, for a machine that has none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from vcbatch.api.pod import Pod
from vcbatch.api.resources import (
    BATCH_JOBS,
    CONTROLLERREVISIONS,
    DEPLOYMENTS,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    Resource,
)
from vcbatch.api.storage import Claim
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.cache import Cache
from vcbatch.runtime.controllers.batchjob import BatchJobController
from vcbatch.runtime.controllers.deployment import DeploymentController
from vcbatch.runtime.controllers.replicaset import ReplicaSetController
from vcbatch.runtime.controllers.statefulset import StatefulSetController
from vcbatch.runtime.informers import Informers
from vcbatch.runtime.recorder import Recorder
from vcbatch.runtime.supervise import Part
from vcbatch.seams.api import Api, Json
from vcbatch.seams.clock import Clock
from vcbatch.seams.random import Random

_FOLLOWED: Final = (BATCH_JOBS, DEPLOYMENTS, REPLICASETS, STATEFULSETS, CONTROLLERREVISIONS)
_COMPONENT: Final = "kube-controller-manager"


class Workloads:
    """The controllers of Deployments, ReplicaSets, StatefulSets and Jobs. Two of a kind would fight over pods: never
    on a cluster."""

    def __init__(self, api: Api, informers: Informers, *, clock: Clock, random: Random, host: str = "") -> None:
        self._informers = informers
        self._recorder = Recorder(api, clock=clock, random=random, component=_COMPONENT, host=host)
        pods = informers.follow(PODS, Pod)
        claims = informers.follow(PERSISTENTVOLUMECLAIMS, Claim)
        caches: dict[Resource, Cache[Json]] = {resource: informers.follow(resource) for resource in _FOLLOWED}
        applier = Applier(
            api, {PODS: pods, PERSISTENTVOLUMECLAIMS: claims, **caches}, self._recorder, clock=clock, random=random
        )
        self._controllers = (
            DeploymentController(
                api,
                caches[DEPLOYMENTS],
                caches[REPLICASETS],
                pods,
                applier,
                self._recorder,
                clock=clock,
                random=random,
            ),
            StatefulSetController(
                api,
                caches[STATEFULSETS],
                caches[CONTROLLERREVISIONS],
                pods,
                claims,
                applier,
                self._recorder,
                clock=clock,
                random=random,
            ),
            ReplicaSetController(api, caches[REPLICASETS], pods, applier, self._recorder, clock=clock, random=random),
            BatchJobController(api, caches[BATCH_JOBS], pods, applier, self._recorder, clock=clock, random=random),
        )

    def parts(self) -> list[Part]:
        """The controllers. Each waits until the picture is complete."""
        parts = [controller.part() for controller in self._controllers]
        return [
            *(Part(name=part.name, run=self._after_sync(part)) for part in parts),
            Part(name="sending the workloads' events", run=self._recorder.run),
        ]

    def _after_sync(self, part: Part) -> Callable[[], Awaitable[None]]:
        async def run() -> None:
            await self._informers.synced()
            await part.run()

        return run
