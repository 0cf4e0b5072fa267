"""What the controller of StatefulSets adds to the decisions: when the name of a pod that is gone is free again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.pod import Pod
from vcbatch.api.resources import CONTROLLERREVISIONS, PODS, STATEFULSETS
from vcbatch.api.storage import Claim
from vcbatch.core.machine import Decision
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.statefulset import StatefulSetController
from vcbatch.runtime.events.recorder import Recorder

Json = dict[str, Any]
_LABELS = {"app": "db"}
_SPEC: Json = {
    "replicas": 1,
    "selector": {"matchLabels": _LABELS},
    "template": {"metadata": {"labels": _LABELS}, "spec": {"containers": [{"name": "c"}]}},
}


def test_a_pod_is_told_of_when_it_is_made_and_not_while_its_name_rests() -> None:
    async def scenario() -> None:
        api, clock, random = FakeApi(), VirtualClock(), SeededRandom(1)
        sets: Cache[Json] = Cache()
        revisions: Cache[Json] = Cache()
        pods: Cache[Pod] = Cache(model=Pod)
        claims: Cache[Claim] = Cache(model=Claim)
        recorder = Recorder(api, clock=clock, random=random, component="test")
        known: dict[Any, Any] = {STATEFULSETS: sets, CONTROLLERREVISIONS: revisions, PODS: pods}
        applier = Applier(api, known, recorder, clock=clock, random=random)
        controller = StatefulSetController(
            api, sets, revisions, pods, claims, applier, recorder, clock=clock, random=random
        )
        body: Json = {"metadata": {"name": "db", "namespace": "ns"}, "spec": _SPEC}
        uid = (await api.create(STATEFULSETS, body, namespace="ns"))["metadata"]["uid"]

        async def reconcile() -> Decision:
            sets.replace(await api.list(STATEFULSETS))
            revisions.replace(await api.list(CONTROLLERREVISIONS))
            pods.replace(await api.list(PODS, model=Pod))
            decision = await controller.decide(uid, clock.now())
            assert decision is not None
            await applier.carry_out(decision)
            return decision

        assert [event.reason for event in (await reconcile()).events] == ["SuccessfulCreate"]
        api.remove(PODS, "db-0", "ns")
        early = await reconcile()
        assert not early.events
        assert not api.all(PODS)
        assert early.requeue_at is not None
        assert timedelta(0) < early.requeue_at - clock.now() < timedelta(seconds=1)
        await clock.sleep((early.requeue_at - clock.now()).total_seconds())
        assert [event.reason for event in (await reconcile()).events] == ["SuccessfulCreate"]
        assert len(api.all(PODS)) == 1

    run(scenario())
