"""Pods of small gangs say one by one that they have a node; of large ones a few do, and the PodGroup for the rest."""

from __future__ import annotations

import asyncio

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api import names
from vcbatch.api.meta import ObjectMeta, OwnerReference
from vcbatch.api.pod import Pod
from vcbatch.api.resources import EVENTS, PODGROUPS
from vcbatch.api.scheduling import PodGroupView
from vcbatch.core.machine import Emit, EventType, ObjectRef
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.scheduling.announcer import Announcer
from vcbatch.scheduler.model.result import Bind


class _Stage:
    def __init__(self) -> None:
        self.server, clock = FakeApi(), VirtualClock()
        self.pods, self.groups = Cache(model=Pod), Cache(model=PodGroupView)
        self.recorder = Recorder(self.server, clock=clock, random=SeededRandom(1), component="volcano")
        self.announcer = Announcer(self.recorder, clock=clock, pods=self.pods, podgroups=self.groups)
        self.made = 0

    def gang(self, name: str, size: int) -> list[Bind]:
        if self.groups.by_key(f"ns/{name}") is None:
            self.groups.put(PodGroupView(metadata=ObjectMeta(name=name, namespace="ns", uid=name)))
        binds = []
        for _ in range(size):
            self.made += 1
            pod = f"{name}-{self.made}"
            annotations = {names.GROUP_NAME: name}
            self.pods.put(Pod(metadata=ObjectMeta(name=pod, namespace="ns", uid=pod, annotations=annotations)))
            binds.append(Bind("ns", pod, pod, "n1"))
        return binds

    def place(self, binds: list[Bind]) -> None:
        self.announcer.trying(binds)
        for bind in binds:
            self.announcer.bound(bind)

    async def events(self) -> list[tuple[str, str, str]]:
        await self.recorder.flush()
        return [
            (event["involvedObject"]["kind"], event["reason"], event["message"]) for event in self.server.all(EVENTS)
        ]


def test_each_pod_of_a_small_gang_says_where_it_is() -> None:
    async def main() -> None:
        stage = _Stage()
        stage.place(stage.gang("g", 4))
        assert await stage.events() == [
            ("Pod", "Scheduled", f"Successfully assigned ns/g-{number} to n1") for number in range(1, 5)
        ]

    run(main())


def test_pods_that_wait_for_devices_are_told_of_on_their_gang() -> None:
    async def main() -> None:
        stage = _Stage()
        binds = stage.gang("g", 2)
        stage.announcer.trying(binds)
        stage.announcer.waits(binds, "resourceclaim c: device gpu-0 lacks attached")
        lonely = Bind("ns", "lonely", "uid-lonely", "n1")
        stage.announcer.waits([lonely], "resourceclaim d: device gpu-1 lacks attached")
        message = "2 pods have their nodes and wait for devices: resourceclaim c: device gpu-0 lacks attached"
        alone = "1 pod has its node and waits for devices: resourceclaim d: device gpu-1 lacks attached"
        assert await stage.events() == [
            ("PodGroup", "WaitingForDevices", message),
            ("Pod", "WaitingForDevices", alone),
        ]

    run(main())


def test_events_of_a_large_gang_are_few_and_leave_nobody_out() -> None:
    async def main() -> None:
        stage = _Stage()
        stage.place(stage.gang("g", 1000))
        events = await stage.events()
        assert len(events) == 17
        assert events[-1][0] == "PodGroup"
        assert "984 more pods" in events[-1][2]
        stage.place(stage.gang("h", 3))
        assert len(await stage.events()) == 20, "another gang has its own allowance"

    run(main())


def test_a_gang_whose_pods_come_one_by_one_is_bounded_too_and_gets_more_with_time() -> None:
    async def main() -> None:
        stage = _Stage()
        for _ in range(500):
            stage.place(stage.gang("g", 1))
        assert len(await stage.events()) < 60
        await asyncio.sleep(3600)
        before = sum(kind == "Pod" for kind, _, _ in await stage.events())
        stage.place(stage.gang("g", 4))
        assert sum(kind == "Pod" for kind, _, _ in await stage.events()) == before + 4

    run(main())


def test_of_hundreds_of_gangs_that_start_together_their_podgroups_speak_first() -> None:
    async def main() -> None:
        stage = _Stage()
        for number in range(300):
            name = f"g{number}"
            binds = stage.gang(name, 20)
            ref = ObjectRef(resource=PODGROUPS, namespace="ns", name=name, uid=name)
            stage.announcer.report(Emit(ref=ref, type=EventType.NORMAL, reason="Scheduled", message="is ready"))
            stage.place(binds)
        reported = await stage.events()
        ready = sum(message == "is ready" for _, _, message in reported)
        assert len(reported) == 128
        assert ready >= 64, "half of it is theirs"
        ref = ObjectRef(resource=PODGROUPS, namespace="ns", name="g0", uid="g0")
        waits = Emit(ref=ref, type=EventType.WARNING, reason="Unschedulable", message="waits")
        stage.announcer.report(waits)
        assert (await stage.events())[-1] == ("PodGroup", "Unschedulable", "waits"), "trouble is always told"
        await asyncio.sleep(60)
        stage.place(stage.gang("later", 2))
        assert [kind for kind, _, _ in await stage.events()][-2:] == ["Pod", "Pod"]

    run(main())


def test_pods_of_their_own_are_told_of_beside_gangs_that_start_all_the_time() -> None:
    async def main() -> None:
        stage = _Stage()
        for number in range(120):
            for gang in range(2):
                stage.place(stage.gang(f"g{number}-{gang}", 8))
            stage.place(stage.gang(f"alone{number}", 1))
            await asyncio.sleep(1)
        reported = [message for kind, _, message in await stage.events() if kind == "Pod"]
        assert sum("ns/alone" in message for message in reported) == 120
        assert len(reported) < 120 * 17 / 3, "most of the others aren't"

    run(main())


def test_a_pod_that_nobody_else_made_is_told_of_like_a_gang() -> None:
    async def main() -> None:
        stage = _Stage()
        for number in range(200):
            stage.place(stage.gang(f"g{number}", 8))
        owner = OwnerReference(api_version="v1", kind="Pod", name="lonely", uid="p", controller=True)
        meta = ObjectMeta(name="podgroup-p", namespace="ns", uid="podgroup-p", owner_references=[owner])
        stage.groups.put(PodGroupView(metadata=meta))
        [bind] = stage.gang("podgroup-p", 1)
        stage.place([bind])
        assert (await stage.events())[-1] == ("Pod", "Scheduled", f"Successfully assigned ns/{bind.name} to n1")

    run(main())


def test_a_bind_that_failed_keeps_no_gang_waiting() -> None:
    async def main() -> None:
        stage = _Stage()
        binds = stage.gang("g", 20)
        stage.announcer.trying(binds)
        for bind in binds[:-1]:
            stage.announcer.bound(bind)
        assert all(kind == "Pod" for kind, _, _ in await stage.events())
        stage.announcer.failed(binds[-1].uid)
        assert (await stage.events())[-1][0] == "PodGroup"

    run(main())
