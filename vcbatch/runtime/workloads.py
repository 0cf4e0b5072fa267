"""The part of Kubernetes' controller manager that handles workloads, for local mode, which has no controller
manager."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from vcbatch.api.node import Node
from vcbatch.api.pod import Pod
from vcbatch.api.resources import (
    BATCH_CRONJOBS,
    BATCH_JOBS,
    CONTROLLERREVISIONS,
    DEPLOYMENTS,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    Resource,
)
from vcbatch.api.storage import Claim
from vcbatch.core.cronjob.kinds import KUBERNETES
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Api, Json
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.controllers.batchjob import BatchJobController
from vcbatch.runtime.controllers.cronjob import CronJobController
from vcbatch.runtime.controllers.deployment import DeploymentController
from vcbatch.runtime.controllers.replicaset import ReplicaSetController
from vcbatch.runtime.controllers.statefulset import StatefulSetController
from vcbatch.runtime.controllers.stranded import StrandedPodController
from vcbatch.runtime.events.recorder import Recorder

_FOLLOWED: Final = (BATCH_CRONJOBS, BATCH_JOBS, DEPLOYMENTS, REPLICASETS, STATEFULSETS, CONTROLLERREVISIONS)


class Workloads:
    """The controllers of Deployments, ReplicaSets, StatefulSets, Jobs and CronJobs, and of pods whose node was deleted.
    Never run on a cluster, where they would conflict with the controller manager."""

    def __init__(self, api: Api, informers: Informers, *, clock: Clock, random: Random, host: str = "") -> None:
        self._informers = informers
        self._recorders: list[Recorder] = []
        pods = informers.follow(PODS, Pod)
        claims = informers.follow(PERSISTENTVOLUMECLAIMS, Claim)
        caches: dict[Resource, Cache[Json]] = {resource: informers.follow(resource) for resource in _FOLLOWED}

        def hands(component: str) -> tuple[Applier, Recorder]:
            """The applier and the recorder of a controller, under the component name that its events have in
            Kubernetes."""
            recorder = Recorder(api, clock=clock, random=random, component=component, host=host)
            self._recorders.append(recorder)
            known = {PODS: pods, PERSISTENTVOLUMECLAIMS: claims, **caches}
            return Applier(api, known, recorder, clock=clock, random=random), recorder

        self._controllers = (
            DeploymentController(
                api,
                caches[DEPLOYMENTS],
                caches[REPLICASETS],
                pods,
                *hands("deployment-controller"),
                clock=clock,
                random=random,
            ),
            StatefulSetController(
                api,
                caches[STATEFULSETS],
                caches[CONTROLLERREVISIONS],
                pods,
                claims,
                *hands("statefulset-controller"),
                clock=clock,
                random=random,
            ),
            ReplicaSetController(
                api, caches[REPLICASETS], pods, *hands("replicaset-controller"), clock=clock, random=random
            ),
            BatchJobController(api, caches[BATCH_JOBS], pods, *hands("job-controller"), clock=clock, random=random),
            CronJobController(
                caches[BATCH_CRONJOBS],
                caches[BATCH_JOBS],
                *hands("cronjob-controller"),
                clock=clock,
                random=random,
                kinds=KUBERNETES,
            ),
            StrandedPodController(
                api, informers.follow(NODES, Node), pods, hands("pod-garbage-collector")[0], clock=clock, random=random
            ),
        )

    def parts(self) -> list[Part]:
        """The background tasks of the controllers. Each waits until all caches are complete."""
        parts = [controller.part() for controller in self._controllers]
        return [
            *(Part(name=part.name, run=self._after_sync(part)) for part in parts),
            *(
                Part(name=f"sending events of the {recorder.component}", run=recorder.run)
                for recorder in self._recorders
            ),
        ]

    def _after_sync(self, part: Part) -> Callable[[], Awaitable[None]]:
        async def run() -> None:
            await self._informers.synced()
            await part.run()

        return run
