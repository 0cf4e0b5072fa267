"""Deployments and StatefulSets with their real controllers on an in-memory API server: stale snapshots, controllers
that crash between two writes, and pods whose states the test sets."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from tests.fakes.api import FakeApi, convert
from tests.fakes.faults import WRITES, Crash
from tests.support.virtual_time import EPOCH, SeededRandom
from vcbatch.api.pod import Pod
from vcbatch.api.resources import (
    CONTROLLERREVISIONS,
    DEPLOYMENTS,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    Resource,
)
from vcbatch.api.storage import Claim
from vcbatch.api.timestamps import format_time
from vcbatch.runtime.apply import Applier, NotAppliedError, StaleError
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.deployment import DeploymentController
from vcbatch.runtime.controllers.replicaset import ReplicaSetController
from vcbatch.runtime.controllers.statefulset import StatefulSetController
from vcbatch.runtime.events.recorder import Recorder

Json = dict[str, Any]
MOVES = st.lists(
    st.tuples(st.sampled_from(["hear", "look", "look", "die", "pods", "pods"]), st.integers(0, 9)),
    min_size=5,
    max_size=40,
)
"""The actions during a rollout, for `proceed`."""
_MODELS: Mapping[Resource, type[Any]] = {PODS: Pod, PERSISTENTVOLUMECLAIMS: Claim}
_FOLLOWED = (DEPLOYMENTS, REPLICASETS, STATEFULSETS, CONTROLLERREVISIONS, PODS, PERSISTENTVOLUMECLAIMS)


class WorkloadApi(FakeApi):
    """Generations as counted by a server, and graceful deletion of pods."""

    def __init__(self, now: Callable[[], str]) -> None:
        super().__init__()
        self._now = now
        self._of_status = False
        self.before_pod: Callable[[str, Json], None] = lambda _verb, _pod: None
        """Called with every pod that is about to be created or deleted through the API."""

    def _store(self, event: str, resource: Resource, body: Json) -> Json:
        metadata = body["metadata"]
        held = self.objects.get((resource, metadata.get("namespace", ""), metadata["name"]))
        metadata.setdefault("creationTimestamp", self._now())
        if event == "ADDED":
            metadata["generation"] = 1
        elif held is not None and (
            held.get("spec") != body.get("spec")
            or (
                resource == DEPLOYMENTS
                and not self._of_status
                and held["metadata"].get("annotations") != metadata.get("annotations")
            )
        ):
            metadata["generation"] = held["metadata"]["generation"] + 1
        return super()._store(event, resource, body)

    async def patch(self, resource: Resource, name: str, patch: Any, **options: Any) -> Json:
        self._of_status = options.get("subresource") == "status"
        try:
            return await super().patch(resource, name, patch, **options)
        finally:
            self._of_status = False

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        if resource == PODS and (resource, namespace or "", body["metadata"]["name"]) not in self.objects:
            self.before_pod("create", body)
        return await super().create(resource, body, namespace=namespace)

    async def delete(self, resource: Resource, name: str, **options: Any) -> None:
        if resource != PODS:
            await super().delete(resource, name, **options)
            return
        stored = self._find(resource, name, options.get("namespace"))
        if "deletionTimestamp" not in stored["metadata"]:
            self.before_pod("delete", stored)
            self.seed_again(PODS, {**stored, "metadata": {**stored["metadata"], "deletionTimestamp": self._now()}})

    def seed_again(self, resource: Resource, body: Json) -> None:
        """Store a new state of the object."""
        self._store("MODIFIED", resource, copy.deepcopy(body))


class _HandClock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody sleeps here")


class _Mortal:
    """Executes the controllers' writes until they crash."""

    def __init__(self, api: WorkloadApi) -> None:
        self._api = api
        self.left: int | None = None

    def __getattr__(self, verb: str) -> Any:
        real = getattr(self._api, verb)
        if verb not in WRITES:
            return real

        async def call(*args: Any, **kwargs: Any) -> Any:
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    raise Crash
            return await real(*args, **kwargs)

        return call


class WorkloadWorld:
    """The simulation; call `close` at the end."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._clock = _HandClock()
        self.api = self._runner.run(self._make())
        self._mortal = _Mortal(self.api)
        self.restart()

    async def _make(self) -> WorkloadApi:
        return WorkloadApi(lambda: format_time(self._clock.now()))

    def close(self) -> None:
        self._runner.close()

    # Controllers

    def restart(self) -> None:
        """Start new controllers, which list everything."""
        self._runner.run(self._restart())

    async def _restart(self) -> None:
        clock, random, api = self._clock, SeededRandom(1), self._mortal
        self._caches: dict[Resource, Cache[Any]] = {
            resource: Cache(model=_MODELS.get(resource, dict)) for resource in _FOLLOWED
        }
        caches = self._caches
        recorder = Recorder(self.api, clock=clock, random=random, component="test")
        applier = Applier(api, caches, recorder, clock=clock, random=random)  # type: ignore[arg-type]
        rest: Json = {"clock": clock, "random": random}
        sets, pods = caches[REPLICASETS], caches[PODS]
        deployments = DeploymentController(api, caches[DEPLOYMENTS], sets, pods, applier, recorder, **rest)  # type: ignore[arg-type]
        replica_sets = ReplicaSetController(api, sets, pods, applier, recorder, **rest)  # type: ignore[arg-type]
        stateful_sets = StatefulSetController(
            api,  # type: ignore[arg-type]
            caches[STATEFULSETS],
            caches[CONTROLLERREVISIONS],
            pods,
            caches[PERSISTENTVOLUMECLAIMS],
            applier,
            recorder,
            **rest,
        )
        self._controllers = {DEPLOYMENTS: deployments, REPLICASETS: replica_sets, STATEFULSETS: stateful_sets}
        self._applier = applier
        for resource, cache in caches.items():
            cache.replace(await self.api.list(resource, model=cache.model))
        self._heard = len(self.api.history)

    def hear(self, count: int | None = None) -> None:
        """The controllers observe the next `count` changes, or all."""
        until = len(self.api.history) if count is None else min(self._heard + count, len(self.api.history))
        for entry in self.api.history[self._heard : until]:
            cache = self._caches.get(entry.resource)
            if cache is not None:
                cache.observe(entry.type, convert(entry.object, cache.model))
        self._heard = until

    def reconcile(self, resource: Resource, *, writes: int | None = None) -> None:
        """The controller of that kind reconciles all its objects; after `writes` writes it crashes, and is
        restarted."""
        self._mortal.left = writes
        try:
            self._runner.run(self._reconcile(resource))
        except Crash:
            self._mortal.left = None
            self.restart()
        self._mortal.left = None

    async def _reconcile(self, resource: Resource) -> None:
        controller = self._controllers[resource]
        for uid in [each["metadata"]["uid"] for each in self._caches[resource]]:
            decision = await controller.decide(uid, self._clock.now())
            if decision is None:
                continue
            try:
                await self._applier.carry_out(decision)
            except (StaleError, NotAppliedError):
                continue

    def proceed(self, move: tuple[str, int], *resources: Resource) -> None:
        """Do one action drawn from `MOVES`, such as occur during an undisturbed rollout."""
        verb, number = move
        pods = self.pods()
        match verb:
            case "hear":
                self.hear(number)
            case "look":
                self.reconcile(resources[number % len(resources)])
            case "die":
                self.reconcile(resources[number % len(resources)], writes=number // len(resources))
            case _:
                self.pass_time(1.0)
                for pod in pods[number % len(pods) :][:2] if pods else ():
                    if "deletionTimestamp" in pod["metadata"]:
                        self.finish(pod)
                    elif is_active(pod):
                        self.ready(pod)

    def pass_time(self, seconds: float) -> None:
        self._clock.seconds += seconds

    def settle(self, *resources: Resource, rounds: int = 200) -> None:
        """Let controllers observe and reconcile, and pods start or end, until nothing changes any more, also a moment
        later: the name of a deleted pod isn't reused at once."""
        quiet = 0
        for _ in range(rounds):
            before = self.api.version
            self.hear()
            for resource in resources:
                self.reconcile(resource)
            for pod in self.pods():
                self.finish(pod) if "deletionTimestamp" in pod["metadata"] else self.ready(pod)
            self.pass_time(1.0)
            quiet = quiet + 1 if self.api.version == before else 0
            if quiet == 2:
                return
        raise AssertionError("it doesn't come to rest")

    # Cluster

    def add(self, resource: Resource, name: str, spec: Json) -> None:
        self._runner.run(self.api.create(resource, {"metadata": {"name": name}, "spec": spec}, namespace="ns"))

    def edit(self, resource: Resource, name: str, **spec: Any) -> None:
        self._runner.run(self.api.patch(resource, name, {"spec": spec}, namespace="ns"))

    def get(self, resource: Resource, name: str) -> Json:
        return self._runner.run(self.api.get(resource, name, namespace="ns"))

    def all(self, resource: Resource) -> Sequence[Json]:
        return self.api.all(resource)

    def pods(self) -> Sequence[Json]:
        return self.api.all(PODS)

    def ready(self, pod: Json, *, ready: bool = True) -> None:
        """The pod runs, and is ready or not."""
        status = {
            "phase": "Running",
            "conditions": [
                {"type": "Ready", "status": str(ready), "lastTransitionTime": format_time(self._clock.now())}
            ],
        }
        held = pod.get("status") or {}
        if [each["status"] for each in held.get("conditions", [])] != [str(ready)] or held["phase"] != "Running":
            self._now_is(pod, status)

    def fail(self, pod: Json) -> None:
        """All its containers have ended and don't restart."""
        self._now_is(pod, {"phase": "Failed"})

    def finish(self, pod: Json) -> None:
        """Remove the pod."""
        self.api.remove(PODS, pod["metadata"]["name"], "ns")

    def kill(self, pod: Json) -> None:
        """Delete the pod as a user."""
        gone = {**pod["metadata"], "deletionTimestamp": format_time(self._clock.now())}
        self.api.seed_again(PODS, {**pod, "metadata": gone})

    def _now_is(self, pod: Json, status: Json) -> None:
        self.api.seed_again(PODS, {**pod, "status": status})


def is_active(pod: Json) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and (pod.get("status") or {}).get("phase") != "Failed"


def is_ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions", [])
    return is_active(pod) and any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
