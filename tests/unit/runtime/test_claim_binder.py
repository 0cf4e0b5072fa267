"""Writing down who has which devices, before pods are bound."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.dra import ResourceClaim
from vcbatch.api.pod import Pod
from vcbatch.api.resources import RESOURCECLAIMS
from vcbatch.api.timestamps import format_time
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.scheduling.claim_binder import ClaimBinder
from vcbatch.runtime.scheduling.extended_claims import ExtendedClaims
from vcbatch.scheduler.model.result import Bind, DeviceBinding

ALLOCATION = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "gpu-0"}]}}


class World:
    def __init__(self) -> None:
        self.api, self.clock = FakeApi(), VirtualClock()
        self.ready: list[str] = []
        self.failed: dict[str, str] = {}
        self.claims: Cache[ResourceClaim] = Cache(model=ResourceClaim)
        self.pods: Cache[Pod] = Cache(model=Pod)
        self.extended = ExtendedClaims(
            self.api,
            self.claims,
            self.pods,
            clock=self.clock,
            random=SeededRandom(2),
            places=lambda pod: pod.spec.scheduler_name == "volcano",
        )
        self.reported: list[tuple[int, str]] = []
        self.binder = ClaimBinder(
            self.api,
            self.claims,
            self.extended,
            clock=self.clock,
            random=SeededRandom(1),
            ready=self._ready,
            failed=self._fail,
            waits=lambda binds, lacks: self.reported.append((len(binds), lacks)),
        )

    def _ready(self, binds: Iterable[Bind]) -> None:
        self.ready += [bind.name for bind in binds]

    def _fail(self, uid: str, error: str) -> None:
        self.failed[uid] = error
        self.binder.refused(uid)

    def claim(self, name: str, **status: Any) -> str:
        raw = {"metadata": {"name": name, "namespace": "ns"}, "spec": {}, "status": status}
        return self.api.seed(RESOURCECLAIMS, raw)["metadata"]["uid"]

    def see(self) -> None:
        """What is stored comes to the cache."""
        for stored in self.api.all(RESOURCECLAIMS):
            self.claims.put(msgspec.convert(stored, ResourceClaim))

    async def report(self, name: str, **conditions: str) -> None:
        """The driver says of the devices of a claim what is true of them."""
        reported = [
            {"type": kind, "status": status, "reason": "R", "message": "m"} for kind, status in conditions.items()
        ]
        results = self.stored(name)["status"]["allocation"]["devices"]["results"]
        devices = [
            {**{key: result[key] for key in ("driver", "pool", "device")}, "conditions": reported} for result in results
        ]
        await self.api.patch(
            RESOURCECLAIMS, name, {"status": {"devices": devices}}, namespace="ns", subresource="status"
        )
        self.see()

    def stored(self, name: str) -> Any:
        return self.api.objects[RESOURCECLAIMS, "ns", name]

    def users(self, name: str) -> list[str]:
        return [consumer["name"] for consumer in self.stored(name)["status"].get("reservedFor") or ()]


def _bind(name: str, *claims: DeviceBinding, gang: str = "ns/g") -> Bind:
    return Bind("ns", name, f"uid-{name}", "a", gang=gang if claims else "", devices=claims)


def _play(act: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        world = World()
        task = asyncio.ensure_future(world.binder.run())
        await act(world)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


def test_claims_get_their_devices_and_users_before_pods_are_bound() -> None:
    async def act(world: World) -> None:
        uid = world.claim("c")
        world.binder.submit(
            [
                _bind("p", DeviceBinding("ns", "c", uid, ALLOCATION)),
                _bind("q", DeviceBinding("ns", "c", uid, None)),
                _bind("plain"),
            ]
        )
        assert world.ready == ["plain"]
        await world.clock.sleep(5)
        assert world.ready == ["plain", "p", "q"]
        assert world.stored("c")["status"]["allocation"] == ALLOCATION
        assert world.users("c") == ["p", "q"]
        assert world.stored("c")["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]

    _play(act)


def test_where_one_claim_can_not_be_written_the_gang_fails_and_nothing_is_left() -> None:
    async def act(world: World) -> None:
        first = world.claim("first")
        second = world.claim("second", allocation={"devices": {"results": []}})
        world.binder.submit(
            [
                _bind("p", DeviceBinding("ns", "first", first, ALLOCATION)),
                _bind("q", DeviceBinding("ns", "second", second, ALLOCATION)),
            ]
        )
        await world.clock.sleep(30)
        assert world.ready == []
        assert set(world.failed) == {"uid-p", "uid-q"}
        assert "resourceclaim second: it was given other devices meanwhile" in world.failed["uid-p"]
        assert not world.stored("first")["status"].get("allocation")
        assert world.users("first") == []

    _play(act)


def test_a_pod_that_was_not_bound_gives_back_what_was_written_for_it() -> None:
    async def act(world: World) -> None:
        uid = world.claim("c")
        claim = DeviceBinding("ns", "c", uid, ALLOCATION)
        world.binder.submit([_bind("p", claim), _bind("q", claim._replace(allocation=None))])
        await world.clock.sleep(5)
        world.binder.refused("uid-p")
        await world.clock.sleep(5)
        assert world.users("c") == ["q"]
        assert world.stored("c")["status"]["allocation"] == ALLOCATION, "another pod has it"
        world.binder.bound("uid-q")
        world.binder.refused("uid-q")
        await world.clock.sleep(5)
        assert world.users("c") == ["q"], "what is bound is the cluster's"

    _play(act)


def test_the_last_user_that_was_not_bound_takes_the_devices_with_it() -> None:
    async def act(world: World) -> None:
        uid = world.claim("c")
        world.binder.submit([_bind("p", DeviceBinding("ns", "c", uid, ALLOCATION))])
        await world.clock.sleep(5)
        world.binder.refused("uid-p")
        await world.clock.sleep(5)
        assert not world.stored("c")["status"].get("allocation")

    _play(act)


def test_devices_that_were_there_before_stay() -> None:
    async def act(world: World) -> None:
        uid = world.claim("c", allocation=ALLOCATION)
        world.binder.submit([_bind("p", DeviceBinding("ns", "c", uid, None))])
        await world.clock.sleep(5)
        assert world.users("c") == ["p"]
        world.binder.refused("uid-p")
        await world.clock.sleep(5)
        assert world.stored("c")["status"]["allocation"] == ALLOCATION

    _play(act)


def test_a_claim_that_has_its_devices_already_may_be_written_otherwise() -> None:
    async def act(world: World) -> None:
        (result,) = ALLOCATION["devices"]["results"]
        share = {**result, "shareID": "s", "consumedCapacity": {"memory": "1Gi"}}
        stored = {"devices": {"results": [{**share, "consumedCapacity": {"memory": "1024Mi"}}], "config": []}}
        uid = world.claim("c", allocation=stored)
        other = world.claim("d", allocation={"devices": {"results": [{**share, "shareID": "t"}]}})
        ours = {"devices": {"results": [share]}}
        world.binder.submit([_bind("p", DeviceBinding("ns", "c", uid, ours), gang="ns/p")])
        world.binder.submit([_bind("q", DeviceBinding("ns", "d", other, ours), gang="ns/q")])
        await world.clock.sleep(5)
        assert world.ready == ["p"]
        assert world.failed == {"uid-q": "resourceclaim d: it was given other devices meanwhile"}

    _play(act)


def test_a_claim_that_is_another_one_or_has_lost_its_devices_fails_the_pod() -> None:
    async def act(world: World) -> None:
        world.claim("c")
        uid = world.claim("d")
        world.binder.submit([_bind("p", DeviceBinding("ns", "c", "other", ALLOCATION), gang="ns/p")])
        world.binder.submit([_bind("q", DeviceBinding("ns", "d", uid, None), gang="ns/q")])
        await world.clock.sleep(60)
        assert world.failed == {
            "uid-p": "resourceclaim c: it is gone",
            "uid-q": "resourceclaim d: it lost its devices meanwhile",
        }

    _play(act)


WAITS: dict[str, Any] = {
    "devices": {
        "results": [
            {
                "request": "r",
                "driver": "d",
                "pool": "p",
                "device": "gpu-0",
                "bindingConditions": ["attached", "warm"],
                "bindingFailureConditions": ["broken"],
            }
        ]
    }
}


def _two(world: World) -> None:
    """A gang of two pods with a claim each, of which one has to be made ready."""
    waits, plain = world.claim("waits"), world.claim("plain")
    world.see()
    world.binder.submit(
        [
            _bind("p", DeviceBinding("ns", "waits", waits, WAITS)),
            _bind("q", DeviceBinding("ns", "plain", plain, ALLOCATION)),
        ]
    )


def test_a_gang_is_bound_when_all_of_its_devices_are_ready() -> None:
    async def act(world: World) -> None:
        _two(world)
        await world.clock.sleep(60)
        assert world.stored("waits")["status"]["allocation"] == {**WAITS, "allocationTimestamp": "2026-01-01T00:00:00Z"}
        assert world.stored("plain")["status"]["allocation"] == ALLOCATION
        world.see()
        await world.clock.sleep(1)
        assert world.reported == [(2, "resourceclaim waits: device gpu-0 lacks attached, warm")]
        await world.report("waits", attached="True", warm="False")
        await world.clock.sleep(60)
        assert not world.ready
        assert len(world.reported) == 1
        await world.report("waits", attached="True", warm="True", broken="False")
        await world.clock.sleep(0)
        await world.clock.sleep(0.1)
        assert world.ready == ["p", "q"]

    _play(act)


def test_a_device_that_can_not_be_made_ready_takes_the_gang_back() -> None:
    async def act(world: World) -> None:
        _two(world)
        await world.clock.sleep(5)
        await world.report("waits", attached="True", warm="True", broken="True")
        await world.clock.sleep(5)
        assert not world.ready
        assert world.failed["uid-q"] == "resourceclaim waits: device gpu-0 has broken (R: m)"
        assert set(world.failed) == {"uid-p", "uid-q"}
        for name in ("waits", "plain"):
            assert not world.stored(name)["status"].get("allocation")
            assert world.users(name) == []

    _play(act)


@pytest.mark.parametrize(("age", "left"), [(0, 600), (400, 200), (1000, 0)])
def test_devices_that_are_not_ready_in_time_are_given_back_whoever_gave_them(age: int, left: int) -> None:
    async def act(world: World) -> None:
        given = format_time(world.clock.now() - timedelta(seconds=age))
        uid = world.claim("c", allocation={**WAITS, "allocationTimestamp": given})
        world.see()
        world.binder.submit([_bind("p", DeviceBinding("ns", "c", uid, None))])
        if left:
            await world.clock.sleep(left - 1)
            assert not world.failed
        await world.clock.sleep(2)
        text = "its devices weren't ready within 600 s: device gpu-0 lacks attached, warm"
        assert world.failed == {"uid-p": f"resourceclaim c: {text}"}
        assert not world.stored("c")["status"].get("allocation")

    _play(act)


def test_devices_that_somebody_else_uses_are_not_given_back_with_a_failed_gang() -> None:
    async def act(world: World) -> None:
        theirs = {"resource": "pods", "name": "other", "uid": "uid-other"}
        uid = world.claim("c", allocation=WAITS, reservedFor=[theirs])
        world.see()
        await world.report("c", broken="True")
        world.binder.submit([_bind("p", DeviceBinding("ns", "c", uid, None))])
        await world.clock.sleep(5)
        assert set(world.failed) == {"uid-p"}
        assert world.users("c") == ["other"]
        assert world.stored("c")["status"]["allocation"] == WAITS

    _play(act)


def test_a_claim_that_loses_its_devices_or_goes_is_not_waited_for() -> None:
    async def act(world: World) -> None:
        _two(world)
        await world.clock.sleep(5)
        world.see()
        await world.clock.sleep(5)
        await world.api.patch(
            RESOURCECLAIMS, "waits", {"status": {"allocation": None}}, namespace="ns", subresource="status"
        )
        world.see()
        await world.clock.sleep(5)
        assert world.failed["uid-p"] == "resourceclaim waits: it lost its devices meanwhile"
        uid = world.claim("gone")
        world.binder.submit([_bind("r", DeviceBinding("ns", "gone", uid, WAITS), gang="ns/r")])
        await world.clock.sleep(5)
        assert world.failed["uid-r"] == "resourceclaim gone: it is gone"

    _play(act)


def test_a_gang_that_is_tried_again_at_once_keeps_what_it_gets_then() -> None:
    async def act(world: World) -> None:
        first, second = world.claim("first"), world.claim("second")
        patch, slow = world.api.patch, [True]

        async def late(resource: Any, name: str, body: Any, **given: Any) -> Any:
            """The second claim is refused once, and what is taken back then takes a while."""
            if slow and name == "second":
                raise ApiError(403, "Forbidden", "not now")
            if "allocation" in body.get("status", {}) and body["status"]["allocation"] is None:
                await world.clock.sleep(1)
            return await patch(resource, name, body, **given)

        world.api.patch = late  # type: ignore[method-assign]
        gang = [
            _bind("p", DeviceBinding("ns", "first", first, ALLOCATION)),
            _bind("q", DeviceBinding("ns", "second", second, ALLOCATION)),
        ]
        world.binder.submit(gang)
        while not world.failed:
            await world.clock.sleep(0.01)
        slow.clear()
        world.binder.submit(gang)
        await world.clock.sleep(30)
        assert world.ready == ["p", "q"]
        for name, pod in (("first", "p"), ("second", "q")):
            assert world.stored(name)["status"]["allocation"] == ALLOCATION
            assert world.users(name) == [pod]

    _play(act)


def test_a_claim_that_others_write_is_written_again() -> None:
    async def act(world: World) -> None:
        uid = world.claim("c")
        patch, refused = world.api.patch, [2]

        async def busy(*args: Any, **given: Any) -> Any:
            if refused[0]:
                refused[0] -= 1
                raise ApiError(409, "Conflict", "the object has been modified")
            return await patch(*args, **given)

        world.api.patch = busy  # type: ignore[method-assign]
        world.binder.submit([_bind("p", DeviceBinding("ns", "c", uid, ALLOCATION))])
        await world.clock.sleep(30)
        assert world.ready == ["p"]
        assert world.users("c") == ["p"]

    _play(act)
