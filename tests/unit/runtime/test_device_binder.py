"""Locking nodes while their device plugins hand out cards, and reading single ConfigMaps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import Any

from tests.fakes.api import FakeApi
from tests.support.virtual_time import VirtualClock, run
from vcbatch.api.resources import CONFIGMAPS, NODES
from vcbatch.api.timestamps import format_time
from vcbatch.runtime.scheduling.config_maps import CHECK_SECONDS, ConfigMaps
from vcbatch.runtime.scheduling.device_binder import EXPIRY, DeviceBinder
from vcbatch.scheduler import Scheduler, build_policy
from vcbatch.scheduler.model.result import Bind


class World:
    def __init__(self, *nodes: str) -> None:
        self.api, self.clock = FakeApi(), VirtualClock()
        self.ready: list[str] = []
        self.failed: dict[str, str] = {}
        for node in nodes:
            self.api.seed(NODES, {"metadata": {"name": node}})
        self.binder = DeviceBinder(self.api, clock=self.clock, ready=self._ready, failed=self.failed.__setitem__)

    def _ready(self, binds: Iterable[Bind]) -> None:
        self.ready += [bind.name for bind in binds]

    def lock(self, node: str, name: str = "hamivgpu") -> str | None:
        stored = self.api.objects[NODES, "", node]
        return (stored["metadata"].get("annotations") or {}).get(name)

    async def annotate(self, node: str, value: str | None) -> None:
        await self.api.patch(NODES, node, {"metadata": {"annotations": {"hamivgpu": value}}})


def _bind(name: str, node: str, lock: str = "hamivgpu") -> Bind:
    return Bind("ns", name, f"uid-{name}", node, lock=lock)


def _play(act: Callable[[World], Awaitable[None]], *nodes: str) -> World:
    async def main() -> World:
        world = World(*nodes)
        task = asyncio.ensure_future(world.binder.run())
        await act(world)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return world

    return run(main())


def test_a_pod_is_bound_once_its_node_is_locked_and_others_at_once() -> None:
    async def act(world: World) -> None:
        world.binder.submit([_bind("g", "a"), _bind("plain", "a", lock="")])
        assert world.ready == ["plain"]
        await world.clock.sleep(5)
        assert world.ready == ["plain", "g"]
        assert world.lock("a") is not None

    _play(act, "a")


def test_the_next_pod_of_a_node_waits_until_the_lock_is_taken_off() -> None:
    async def act(world: World) -> None:
        world.binder.submit([_bind("g", "a"), _bind("h", "a"), _bind("other", "b")])
        await world.clock.sleep(30)
        assert sorted(world.ready) == ["g", "other"]
        world.binder.bound("uid-g")
        await world.annotate("a", None)
        await world.clock.sleep(5)
        assert sorted(world.ready) == ["g", "h", "other"]

    _play(act, "a", "b")


def test_a_lock_that_is_too_old_is_nobodys() -> None:
    async def act(world: World) -> None:
        await world.annotate("a", format_time(world.clock.now()))
        world.binder.submit([_bind("g", "a")])
        await world.clock.sleep((EXPIRY - timedelta(seconds=10)).total_seconds())
        assert world.ready == []
        await world.clock.sleep(20)
        assert world.ready == ["g"]

    _play(act, "a")


def test_a_pod_that_was_not_bound_gives_its_lock_back() -> None:
    async def act(world: World) -> None:
        world.binder.submit([_bind("g", "a")])
        await world.clock.sleep(5)
        world.binder.refused("uid-g")
        await world.clock.sleep(5)
        assert world.lock("a") is None

    _play(act, "a")


def test_a_lock_that_no_device_plugin_takes_off_is_taken_off_once_the_pod_is_bound() -> None:
    async def act(world: World) -> None:
        world.binder.submit([_bind("g", "a", lock="Ascend310P")])
        await world.clock.sleep(5)
        assert world.lock("a", "Ascend310P") is not None
        world.binder.bound("uid-g")
        await world.clock.sleep(5)
        assert world.lock("a", "Ascend310P") is None

    _play(act, "a")


def test_a_node_that_stays_locked_or_is_gone_fails_the_pod() -> None:
    async def act(world: World) -> None:
        world.binder.submit([_bind("g", "a"), _bind("lost", "nowhere")])
        while world.clock.monotonic() < 2 * EXPIRY.total_seconds() + 60:
            await world.annotate("a", format_time(world.clock.now()))
            await world.clock.sleep(20)

    world = _play(act, "a")
    assert world.ready == []
    assert set(world.failed) == {"uid-g", "uid-lost"}
    assert "stayed locked by its annotation hamivgpu" in world.failed["uid-g"]


def test_only_the_config_maps_that_the_policy_names_are_read_and_what_is_new_wakes_the_scheduler() -> None:
    plugins: list[dict[str, Any]] = [{"name": "deviceshare", "arguments": {"deviceshare.VGPUEnable": True}}]
    policy = build_policy({"actions": "allocate", "tiers": [{"plugins": plugins}]})

    async def main() -> None:
        api, clock, wake = FakeApi(), VirtualClock(), asyncio.Event()
        scheduler = Scheduler(policy)
        maps = ConfigMaps(api, scheduler, clock=clock, wake=wake)
        await maps.refresh()
        scheduler.cycle(clock.now())
        wake.clear()
        await maps.refresh()
        assert not wake.is_set(), "nothing is there, and nothing is new"
        meta = {"name": "volcano-vgpu-device-config", "namespace": "kube-system"}
        api.seed(CONFIGMAPS, {"metadata": meta, "data": {"device-config.yaml": "nvidia: {}"}})
        api.seed(CONFIGMAPS, {"metadata": {"name": "other", "namespace": "kube-system"}})
        task = asyncio.ensure_future(maps.run())
        await clock.sleep(CHECK_SECONDS + 1)
        assert wake.is_set()
        scheduler.cycle(clock.now())
        wake.clear()
        await clock.sleep(CHECK_SECONDS + 1)
        assert not wake.is_set(), "it is the same"
        api.remove(CONFIGMAPS, meta["name"], meta["namespace"])
        await clock.sleep(CHECK_SECONDS + 1)
        assert wake.is_set(), "it is gone"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())
