"""What the controller of ReplicaSets adds to the decisions: names for its pods."""

from __future__ import annotations

from typing import Any

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.pod import Pod
from vcbatch.api.resources import PODS, REPLICASETS
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.replicaset import ReplicaSetController
from vcbatch.runtime.events.recorder import Recorder

Json = dict[str, Any]
_LABELS = {"app": "rs"}
_SPEC: Json = {
    "replicas": 2,
    "selector": {"matchLabels": _LABELS},
    "template": {"metadata": {"labels": _LABELS}, "spec": {"containers": [{"name": "c"}]}},
}


def test_a_pod_never_has_the_name_of_one_that_is_gone() -> None:
    """However often somebody deletes one: it would seem to be back."""

    async def scenario() -> None:
        api, clock, random = FakeApi(), VirtualClock(), SeededRandom(1)
        sets: Cache[Json] = Cache()
        pods: Cache[Pod] = Cache(model=Pod)
        recorder = Recorder(api, clock=clock, random=random, component="test")
        applier = Applier(api, {REPLICASETS: sets, PODS: pods}, recorder, clock=clock, random=random)
        controller = ReplicaSetController(api, sets, pods, applier, recorder, clock=clock, random=random)
        body: Json = {"metadata": {"name": "rs", "namespace": "ns"}, "spec": _SPEC}
        uid = (await api.create(REPLICASETS, body, namespace="ns"))["metadata"]["uid"]

        async def reconcile() -> set[str]:
            sets.replace(await api.list(REPLICASETS))
            pods.replace(await api.list(PODS, model=Pod))
            decision = await controller.decide(uid, clock.now())
            assert decision is not None
            await applier.carry_out(decision)
            return {pod["metadata"]["name"] for pod in api.all(PODS)}

        used = there = await reconcile()
        for _ in range(4):
            gone = max(there)
            api.remove(PODS, gone, "ns")
            await clock.sleep(10)
            made = await reconcile() - there
            assert len(made) == 1
            assert not made & used
            there = (there | made) - {gone}
            used = used | made

    run(scenario())
