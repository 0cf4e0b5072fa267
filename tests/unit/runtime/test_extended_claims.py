"""The claims for extended resources of pods: what is written before a pod is bound, and mended after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
import pytest

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.dra import ResourceClaim
from vcbatch.api.names import extended_claim_name
from vcbatch.api.pod import Pod
from vcbatch.api.resources import PODS, RESOURCECLAIMS, Resource
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.scheduling.claim_binder import ClaimBinder
from vcbatch.runtime.scheduling.extended_claims import ExtendedClaims
from vcbatch.scheduler.model.result import Bind, DeviceBinding, ExtendedClaim

Json = dict[str, Any]
REQUEST = {
    "name": "container-0-request-0",
    "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
}
MAPPING = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}
ALLOCATION = {
    "devices": {"results": [{"request": REQUEST["name"], "driver": "d", "pool": "p", "device": "gpu-0"}]},
}
ANNOTATION = "resource.kubernetes.io/extended-resource-claim"


class MortalApi(FakeApi):
    """After `lives` writes none comes to an end any more; `refused` are refused, by verb and kind."""

    def __init__(self) -> None:
        super().__init__()
        self.lives = 1_000
        self.refused: dict[tuple[str, str], ApiError] = {}

    async def _spend(self, verb: str, what: str) -> None:
        if (verb, what) in self.refused:
            raise self.refused[verb, what]
        if not self.lives:
            await asyncio.Event().wait()
        self.lives -= 1

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        await self._spend("create", resource.plural)
        return await super().create(resource, body, namespace=namespace)

    async def patch(self, resource: Resource, name: str, patch: Any, **given: Any) -> Json:
        await self._spend("patch", "/".join(filter(None, (resource.plural, given.get("subresource", "")))))
        return await super().patch(resource, name, patch, **given)

    async def delete(self, resource: Resource, name: str, **given: Any) -> None:
        await self._spend("delete", resource.plural)
        stored = self._find(resource, name, given.get("namespace"))
        assert not stored["metadata"].get("finalizers"), "it would stay"
        await super().delete(resource, name, **given)

    async def bind(self, **given: Any) -> None:
        await self._spend("bind", "pods")
        await super().bind(**given)


class World:
    """One pod. What is ready is bound; what is stored is seen at once."""

    def __init__(self, api: MortalApi) -> None:
        self.api, self.clock = api, VirtualClock()
        self.failed: dict[str, str] = {}
        self.claims: Cache[ResourceClaim] = Cache(model=ResourceClaim)
        self.pods: Cache[Pod] = Cache(model=Pod)
        self.extended = ExtendedClaims(
            api,
            self.claims,
            self.pods,
            clock=self.clock,
            random=SeededRandom(1),
            places=lambda pod: pod.spec.scheduler_name == "volcano",
        )
        self.binder = ClaimBinder(
            api,
            self.claims,
            self.extended,
            clock=self.clock,
            random=SeededRandom(2),
            ready=self._ready,
            failed=self._fail,
            waits=lambda binds, lacks: None,
        )
        self._binding: set[asyncio.Task[None]] = set()

    def _ready(self, binds: Iterable[Bind]) -> None:
        for bind in binds:
            self._binding.add(asyncio.ensure_future(self._bind(bind)))

    async def _bind(self, bind: Bind) -> None:
        try:
            await self.api.bind(namespace=bind.namespace, name=bind.name, uid=bind.uid, node=bind.node)
        except ApiError as refused:
            self._fail(bind.uid, refused.message)
        else:
            self.binder.bound(bind.uid)

    def _fail(self, uid: str, error: str) -> None:
        self.failed[uid] = error
        self.binder.refused(uid)

    def see(self) -> None:
        """What is stored comes to the caches."""
        stored = self.api.all(RESOURCECLAIMS)
        for claim in stored:
            self.claims.put(msgspec.convert(claim, ResourceClaim))
        for known in list(self.claims):
            if known.metadata.uid not in [claim["metadata"]["uid"] for claim in stored]:
                self.claims.discard(known.metadata.uid)
        for pod in self.api.all(PODS):
            self.pods.put(msgspec.convert(pod, Pod))

    def pod(self) -> Json:
        return self.api.objects[PODS, "ns", "p"]

    def seed_pod(self, **spec: Any) -> None:
        meta = {"name": "p", "namespace": "ns", "uid": "uid-p"}
        self.api.seed(PODS, {"metadata": meta, "spec": {"schedulerName": "volcano", **spec}, "status": {}})

    def bind(self) -> None:
        name = extended_claim_name("p", "uid-p")
        claim = DeviceBinding("ns", name, "", ALLOCATION, 600.0, ExtendedClaim([REQUEST], [MAPPING]))
        self.binder.submit([Bind("ns", "p", "uid-p", "a", gang="ns/g", devices=(claim,))])

    async def live(self, act: Callable[[World], Awaitable[None]]) -> None:
        tasks = [asyncio.ensure_future(part()) for part in (self.binder.run, self.extended.run)]
        await act(self)
        for task in (*tasks, *self._binding):
            task.cancel()
        await asyncio.gather(*tasks, *self._binding, return_exceptions=True)


def _play(act: Callable[[World], Awaitable[None]]) -> None:
    run(World(MortalApi()).live(act))


async def _settle(world: World) -> None:
    for _ in range(20):
        world.see()
        await world.clock.sleep(10)


def test_the_claim_is_made_written_and_told_of_before_the_pod_is_bound() -> None:
    async def act(world: World) -> None:
        world.seed_pod()
        world.bind()
        await _settle(world)
        name = extended_claim_name("p", "uid-p")
        assert world.api.writes == [
            ("create", "resourceclaims", name),
            ("patch", "resourceclaims", name),
            ("patch", "resourceclaims/status", name),
            ("patch", "pods/status", "p"),
            ("bind", "pods", "p"),
        ]
        (claim,) = world.api.all(RESOURCECLAIMS)
        meta = claim["metadata"]
        assert (meta["generateName"], meta["annotations"]) == ("p-extended-resources-", {ANNOTATION: "true"})
        assert meta["ownerReferences"] == [
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
        ]
        assert claim["spec"] == {"devices": {"requests": [REQUEST]}}
        assert claim["status"] == {
            "allocation": ALLOCATION,
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "uid-p"}],
        }
        said = {"requestMappings": [MAPPING], "resourceClaimName": name}
        assert world.pod()["status"]["extendedResourceClaimStatus"] == said
        assert world.pod()["spec"]["nodeName"] == "a"

    _play(act)


@pytest.mark.parametrize(
    "refused",
    [("patch", "resourceclaims"), ("patch", "resourceclaims/status"), ("patch", "pods/status"), ("bind", "pods")],
)
def test_nothing_is_left_where_something_is_refused(refused: tuple[str, str]) -> None:
    async def act(world: World) -> None:
        world.seed_pod()
        world.api.refused[refused] = ApiError(403, "Forbidden", "not you")
        world.bind()
        await world.clock.sleep(30)
        assert "not you" in world.failed["uid-p"]
        world.api.refused.clear()
        await _settle(world)
        assert world.api.all(RESOURCECLAIMS) == []
        assert not world.pod()["status"].get("extendedResourceClaimStatus")

    _play(act)


def test_a_server_that_keeps_no_such_status_is_told_of() -> None:
    async def act(world: World) -> None:
        world.seed_pod()
        patch = world.api.patch

        async def forgetful(resource: Resource, name: str, body: Any, **given: Any) -> Json:
            return await patch(resource, name, {**body, "status": {}} if resource == PODS else body, **given)

        world.api.patch = forgetful  # type: ignore[method-assign]
        world.bind()
        await _settle(world)
        assert "status.extendedResourceClaimStatus" in world.failed["uid-p"]
        assert world.api.all(RESOURCECLAIMS) == []

    _play(act)


@pytest.mark.parametrize("lives", range(6))
def test_after_a_crash_between_any_two_writes_the_pod_has_its_claim_or_there_is_none(lives: int) -> None:
    async def whole() -> None:
        first = World(MortalApi())
        first.seed_pod()
        first.api.lives = lives

        async def die(world: World) -> None:
            world.bind()
            await _settle(world)

        await first.live(die)
        bound = bool(first.pod()["spec"].get("nodeName"))
        assert (len(first.api.writes), bound) == (min(lives, 5), lives >= 5)
        second = World(first.api)
        first.api.lives = 1_000
        await second.live(_settle)
        assert len(first.api.all(RESOURCECLAIMS)) == (1 if bound else 0)
        assert bool(second.pod()["status"].get("extendedResourceClaimStatus")) is bound

        async def again(world: World) -> None:
            if not bound:
                world.bind()
            await _settle(world)

        third = World(first.api)
        await third.live(again)
        (claim,) = first.api.all(RESOURCECLAIMS)
        assert third.pod()["spec"]["nodeName"] == "a"
        assert claim["status"]["allocation"] == ALLOCATION

    run(whole())


@pytest.mark.parametrize("lives", range(3))
def test_a_crash_while_it_is_deleted_is_mended(lives: int) -> None:
    async def whole() -> None:
        api = MortalApi()
        first = World(api)
        first.seed_pod()

        async def die(world: World) -> None:
            api.refused["bind", "pods"] = ApiError(422, "Invalid", "no")
            api.lives = 4 + lives  # so many writes come before the bind
            world.bind()
            await _settle(world)

        await first.live(die)
        assert "uid-p" in first.failed
        assert len(api.all(RESOURCECLAIMS)) == 1
        api.lives = 1_000
        await World(api).live(_settle)
        assert api.all(RESOURCECLAIMS) == []
        assert not first.pod()["status"].get("extendedResourceClaimStatus")

    run(whole())


def test_a_claim_of_an_earlier_attempt_is_used_where_nothing_was_given_to_it_yet() -> None:
    async def act(world: World) -> None:
        world.seed_pod()
        world.api.lives = 1
        world.bind()
        await world.clock.sleep(1)
        (left,) = world.api.all(RESOURCECLAIMS)
        world.api.lives = 1_000
        other = World(world.api)
        other.bind()

        async def rest(again: World) -> None:
            await again.clock.sleep(60)

        await other.live(rest)
        (claim,) = world.api.all(RESOURCECLAIMS)
        assert claim["metadata"]["uid"] == left["metadata"]["uid"]
        assert other.pod()["spec"]["nodeName"] == "a"

    _play(act)


def test_claims_of_others_and_of_pods_that_have_their_node_are_left_alone() -> None:
    async def act(world: World) -> None:
        world.seed_pod(nodeName="a")
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
        notes = {"annotations": {ANNOTATION: "true"}}
        for name, meta in (("bound", notes), ("plain", {})):
            world.api.seed(
                RESOURCECLAIMS, {"metadata": {"name": name, "namespace": "ns", "ownerReferences": [owner], **meta}}
            )
        meta = {"name": "q", "namespace": "ns", "uid": "uid-q"}
        world.api.seed(PODS, {"metadata": meta, "spec": {"schedulerName": "default-scheduler"}, "status": {}})
        theirs = {**owner, "name": "q", "uid": "uid-q"}
        world.api.seed(
            RESOURCECLAIMS, {"metadata": {"name": "theirs", "namespace": "ns", "ownerReferences": [theirs], **notes}}
        )
        await _settle(world)
        assert [claim["metadata"]["name"] for claim in world.api.all(RESOURCECLAIMS)] == ["bound", "plain", "theirs"]
        assert world.api.writes == []

    _play(act)


def test_a_name_that_somebody_else_has_is_told_of() -> None:
    async def act(world: World) -> None:
        world.seed_pod()
        name = extended_claim_name("p", "uid-p")
        world.api.seed(RESOURCECLAIMS, {"metadata": {"name": name, "namespace": "ns"}, "spec": {}})
        world.bind()
        await _settle(world)
        assert "somebody else has a claim of this name" in world.failed["uid-p"]
        assert len(world.api.all(RESOURCECLAIMS)) == 1

    _play(act)
