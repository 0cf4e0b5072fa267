"""The scheduler's loop: fed by watches, cycling when something changed and only then, its results carried out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from tests.fakes.api import FakeApi
from tests.fakes.faults import Fault, FaultyApi
from tests.support.metrics import Scrape
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.names import QUEUE_ALLOCATION_GATE
from vcbatch.api.pod import Pod
from vcbatch.api.resources import EVENTS, NODES, PODGROUPS, PODS, QUEUES, Resource
from vcbatch.hosting.supervise import Supervisor
from vcbatch.interfaces.api import ApiError
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.scheduling.loop import SchedulerLoop
from vcbatch.scheduler import default_policy
from vcbatch.scheduler.model.result import (
    Bind,
    CycleResult,
    EventRecord,
    Eviction,
    GateRemoval,
    PodConditionUpdate,
    PodGroupUpdate,
    QueueStatusUpdate,
)


class Scripted:
    """In the scheduler's place: remembers what it is told, and answers cycles from a list."""

    def __init__(self, *results: CycleResult) -> None:
        self.reported: list[tuple[str, str, str]] = []
        self.results: list[CycleResult | Exception] = list(results)
        self.failed: list[tuple[str, str]] = []
        self.unwritten: list[str] = []
        self.spared: list[tuple[str, str]] = []
        self.closed: list[str] = []
        self.cycles: list[datetime] = []
        self.dirty = False
        self.policy = default_policy()
        self.scheduler_names = frozenset({"volcano"})

    def apply(self, resource: Resource, event: str, obj: Any) -> None:
        self.reported.append((resource.plural, event, obj.metadata.name))
        self.dirty = True

    def cycle(self, now: datetime) -> CycleResult:
        self.cycles.append(now)
        self.dirty = False
        result = self.results.pop(0) if self.results else CycleResult()
        if isinstance(result, Exception):
            raise result
        return result

    def waiting(self) -> dict[Any, int]:
        return {}

    def bind_failed(self, uid: str, error: str) -> None:
        self.failed.append((uid, error))
        self.dirty = True

    def eviction_failed(self, uid: str, error: str) -> None:
        self.spared.append((uid, error))
        self.dirty = True

    def gate_removal_failed(self, uid: str) -> None:
        self.closed.append(uid)
        self.dirty = True

    def reaches_its_claims(self, uid: str) -> str:
        return ""

    def places(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self.scheduler_names

    def podgroup_write_failed(self, uid: str) -> None:
        self.unwritten.append(uid)
        self.dirty = True

    def shard_write_failed(self, uid: str) -> None:
        self.dirty = True


@asynccontextmanager
async def looping(
    server: FakeApi, scheduler: Scripted, api: Any = None, meter: PrometheusMeter | None = None
) -> AsyncIterator[SchedulerLoop]:
    clock, random = VirtualClock(), SeededRandom(1)
    api = api or server
    informers = Informers(api, clock=clock, random=random)
    recorder = Recorder(server, clock=clock, random=random, component="volcano")
    loop = SchedulerLoop(api, scheduler, informers, recorder, clock=clock, random=random, meter=meter)  # type: ignore[arg-type]
    parts = [*informers.parts(), *loop.parts()]
    task = asyncio.ensure_future(Supervisor(clock=clock, random=random).run(*parts))
    sending = asyncio.ensure_future(recorder.run())
    try:
        await asyncio.sleep(5)
        yield loop
    finally:
        for one in (task, sending):
            one.cancel()
        await asyncio.gather(task, sending, return_exceptions=True)


def world() -> FakeApi:
    server = FakeApi()
    server.seed(NODES, {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4"}}})
    server.seed(
        QUEUES, {"metadata": {"name": "q"}, "status": {"state": "Open", "allocated": {"cpu": "1", "gone": "1"}}}
    )
    server.seed(
        PODGROUPS, {"metadata": {"name": "pg", "namespace": "ns"}, "status": {"phase": "Pending", "running": 3}}
    )
    conditions = [{"type": "PodScheduled", "status": "False", "lastTransitionTime": "then"}]
    server.seed(PODS, {"metadata": {"name": "p", "namespace": "ns"}, "spec": {}, "status": {"conditions": conditions}})
    return server


def uid(server: FakeApi, resource: Resource, name: str, namespace: str = "ns") -> str:
    return server.objects[(resource, namespace, name)]["metadata"]["uid"]


def bind(server: FakeApi) -> CycleResult:
    return CycleResult(binds=[Bind("ns", "p", uid(server, PODS, "p"), "n1")])


def after(script: Callable[[FakeApi], CycleResult], *, api: Any = None) -> tuple[FakeApi, Scripted]:
    async def main() -> tuple[FakeApi, Scripted]:
        server = world()
        scheduler = Scripted(script(server))
        async with looping(server, scheduler, api(server) if api else None):
            await asyncio.sleep(60)
        return server, scheduler

    return run(main())


def test_nothing_is_decided_before_the_picture_is_complete_and_nothing_without_news():
    async def main() -> None:
        server = world()
        scheduler = Scripted()
        async with looping(server, scheduler):
            assert {plural for plural, _, _ in scheduler.reported} == {"nodes", "queues", "podgroups", "pods"}
            before = len(scheduler.cycles)
            await asyncio.sleep(3600)
            assert len(scheduler.cycles) == before
            server.seed(PODS, {"metadata": {"name": "late", "namespace": "ns"}})
            server.remove(PODS, "p", "ns")
            await asyncio.sleep(1)
            assert scheduler.reported[-2:] == [("pods", "ADDED", "late"), ("pods", "DELETED", "p")]
            assert len(scheduler.cycles) == before + 1, "a burst is one cycle"

    run(main())


def test_since_when_a_cycle_is_due_is_exported_until_it_succeeds():
    async def main() -> None:
        server, scheduler, meter = world(), Scripted(), PrometheusMeter(programs=("scheduler",))
        before = VirtualClock().now().timestamp()
        async with looping(server, scheduler, meter=meter):
            last = Scrape(meter).value("vcbatch_last_cycle_timestamp_seconds")
            assert last is not None and last > before
            assert Scrape(meter).value("vcbatch_cycle_due_timestamp_seconds") == 0
            scheduler.results = [RuntimeError("a fault of ours")]
            server.seed(NODES, {"metadata": {"name": "n2"}})
            changed = VirtualClock().now().timestamp()
            await asyncio.sleep(300)
            due = Scrape(meter).value("vcbatch_cycle_due_timestamp_seconds")
            assert due is not None and changed <= due < changed + 1
            assert Scrape(meter).value("vcbatch_last_cycle_timestamp_seconds") == last

    run(main())


def test_a_moment_that_the_last_cycle_named_is_kept():
    async def main() -> None:
        server = world()
        later = VirtualClock().now() + timedelta(seconds=300)
        scheduler = Scripted(CycleResult(requeue_at=later))
        async with looping(server, scheduler):
            await asyncio.sleep(600)
            assert scheduler.cycles[-1] >= later
            assert scheduler.cycles[-1] - later < timedelta(seconds=2)
            assert len(scheduler.cycles) == 2

    run(main())


def test_what_goes_on_for_long_is_decided_on_in_heaps_and_what_comes_after_a_quiet_time_at_once():
    async def main() -> None:
        server, scheduler = world(), Scripted()
        async with looping(server, scheduler):

            async def change(number: int) -> int:
                """How many cycles follow in a hundredth of a second."""
                cycles = len(scheduler.cycles)
                await server.patch(NODES, "n1", {"metadata": {"labels": {"at": str(number)}}})
                await asyncio.sleep(0.01)
                return len(scheduler.cycles) - cycles

            assert sum([await change(number) for number in range(16)]) == 16
            before = len(scheduler.cycles)
            for number in range(500):
                await change(number)
            assert 48 <= len(scheduler.cycles) - before <= 54, "five seconds"
            await asyncio.sleep(2)
            assert not scheduler.dirty
            assert sum([await change(number) for number in range(16)]) == 16

    run(main())


def test_binds_are_made():
    server, scheduler = after(bind)
    assert server.objects[(PODS, "ns", "p")]["spec"]["nodeName"] == "n1"
    assert scheduler.failed == []


def test_a_bind_whose_answer_was_lost_is_looked_up_and_counts():
    server, scheduler = after(bind, api=lambda server: FaultyApi(server, iter([Fault.LOST]), verbs=("bind",)))
    assert server.objects[(PODS, "ns", "p")]["spec"]["nodeName"] == "n1"
    assert scheduler.failed == []
    assert [write for write in server.writes if write[0] == "bind"] == [("bind", "pods", "p")]


def test_a_busy_server_is_asked_again():
    errors = [Fault.BUSY, Fault.BROKEN, Fault.REFUSED]
    server, scheduler = after(bind, api=lambda server: FaultyApi(server, iter(errors), verbs=("bind",)))
    assert server.objects[(PODS, "ns", "p")]["spec"]["nodeName"] == "n1"
    assert scheduler.failed == []


def test_a_bind_that_is_refused_for_good_is_taken_back():
    def script(server: FakeApi) -> CycleResult:
        return CycleResult(binds=[Bind("ns", "p", "another-uid", "n1")])

    server, scheduler = after(script)
    assert [failed for failed, _ in scheduler.failed] == ["another-uid"]
    assert "nodeName" not in server.objects[(PODS, "ns", "p")]["spec"]


def test_a_podgroup_status_is_replaced_as_a_whole():
    def script(server: FakeApi) -> CycleResult:
        stored = server.objects[(PODGROUPS, "ns", "pg")]["metadata"]
        status = {"phase": "Inqueue", "conditions": []}
        update = PodGroupUpdate(
            namespace="ns", name="pg", uid=stored["uid"], resource_version=stored["resourceVersion"], status=status
        )
        return CycleResult(podgroup_updates=[update])

    server, scheduler = after(script)
    assert server.objects[(PODGROUPS, "ns", "pg")]["status"] == {"phase": "Inqueue", "conditions": []}
    assert scheduler.unwritten == []


def test_a_podgroup_that_changed_meanwhile_is_decided_again():
    def script(server: FakeApi) -> CycleResult:
        update = PodGroupUpdate(
            namespace="ns",
            name="pg",
            uid=uid(server, PODGROUPS, "pg"),
            resource_version="1",
            status={"phase": "Running"},
        )
        return CycleResult(podgroup_updates=[update])

    server, scheduler = after(script)
    assert server.objects[(PODGROUPS, "ns", "pg")]["status"]["phase"] == "Pending"
    assert scheduler.unwritten == [uid(server, PODGROUPS, "pg")]


def gate_removal(server: FakeApi) -> CycleResult:
    return CycleResult(gate_removals=[GateRemoval("ns", "p", uid(server, PODS, "p"))])


PLACED = {"type": "Scheduled", "status": "True"}
WAITS = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources"}


def test_that_a_gang_starts_is_written_with_its_pods_and_trouble_at_once():
    async def main() -> None:
        server, scheduler = world(), Scripted()
        body: dict[str, Any] = {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"minMember": 2}}
        group = server.seed(PODGROUPS, {**body, "status": {"phase": "Inqueue"}})
        steps: list[tuple[dict[str, Any], bool]] = [
            ({"phase": "Inqueue", "conditions": [PLACED]}, False),
            ({"phase": "Running", "conditions": [PLACED]}, False),
            ({"phase": "Running", "conditions": [PLACED], "running": 1}, False),
            ({"phase": "Running", "conditions": [PLACED], "running": 2}, True),
            ({"phase": "Running", "conditions": [PLACED], "running": 1}, False),
            ({"phase": "Running", "conditions": [PLACED, WAITS], "running": 1}, True),
            ({"phase": "Inqueue", "conditions": [PLACED, WAITS]}, True),
        ]
        async with looping(server, scheduler) as loop:
            for status, at_once in steps:
                version = server.objects[(PODGROUPS, "ns", "g")]["metadata"]["resourceVersion"]
                update = PodGroupUpdate("ns", "g", group["metadata"]["uid"], version, status)
                scheduler.results.append(CycleResult(podgroup_updates=[update]))
                loop.cycle()
                await asyncio.sleep(0.1)
                assert (server.objects[(PODGROUPS, "ns", "g")]["status"] == status) is at_once, status

    run(main())


def test_a_gang_whose_pods_are_long_in_starting_has_its_places_soon():
    async def main() -> None:
        server, scheduler = world(), Scripted()
        body: dict[str, Any] = {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"minMember": 2}}
        meta = server.seed(PODGROUPS, {**body, "status": {"phase": "Inqueue"}})["metadata"]
        status = {"phase": "Inqueue", "conditions": [PLACED]}
        update = PodGroupUpdate("ns", "g", meta["uid"], meta["resourceVersion"], status)
        scheduler.results.append(CycleResult(podgroup_updates=[update]))
        async with looping(server, scheduler) as loop:
            loop.cycle()
            await asyncio.sleep(6)
            assert server.objects[(PODGROUPS, "ns", "g")]["status"] == status

    run(main())


def test_that_a_gang_is_let_in_hastens_nothing_that_may_wait_for_its_pods():
    async def main() -> None:
        server, scheduler = world(), Scripted()
        body: dict[str, Any] = {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"minMember": 2}}
        meta = server.seed(PODGROUPS, {**body, "status": {"phase": "Pending"}})["metadata"]
        async with looping(server, scheduler) as loop:
            for status in ({"phase": "Inqueue"}, {"phase": "Inqueue", "conditions": [PLACED]}):
                version = server.objects[(PODGROUPS, "ns", "g")]["metadata"]["resourceVersion"]
                update = PodGroupUpdate("ns", "g", meta["uid"], version, status)
                scheduler.results.append(CycleResult(podgroup_updates=[update]))
                loop.cycle()
                await asyncio.sleep(0.1)
            await asyncio.sleep(4)
            assert server.objects[(PODGROUPS, "ns", "g")]["status"] == {"phase": "Inqueue"}
            await asyncio.sleep(2)
            assert server.objects[(PODGROUPS, "ns", "g")]["status"] == status

    run(main())


def test_the_gate_of_a_pod_with_room_in_its_queue_is_taken_off():
    def script(server: FakeApi) -> CycleResult:
        server.objects[(PODS, "ns", "p")]["spec"]["schedulingGates"] = [{"name": QUEUE_ALLOCATION_GATE}]
        return gate_removal(server)

    server, scheduler = after(script)
    assert "schedulingGates" not in server.objects[(PODS, "ns", "p")]["spec"]
    assert scheduler.closed == []


def test_a_gate_that_may_not_be_taken_off_is_decided_again():
    class Denied:
        def __init__(self, server: FakeApi) -> None:
            self._server = server

        def __getattr__(self, verb: str) -> Any:
            return getattr(self._server, verb)

        async def patch(self, *args: Any, **kwargs: Any) -> Any:
            raise ApiError(403, "Denied", "not this pod")

    server, scheduler = after(gate_removal, api=Denied)
    assert scheduler.closed == [uid(server, PODS, "p")]


def test_queue_statuses_lose_what_isnt_allocated_any_more_and_keep_the_rest():
    def script(server: FakeApi) -> CycleResult:
        stored = server.objects[(QUEUES, "", "q")]["metadata"]
        update = QueueStatusUpdate(
            name="q", uid=stored["uid"], resource_version=stored["resourceVersion"], allocated={"cpu": "3"}
        )
        return CycleResult(queue_statuses=[update])

    server, _ = after(script)
    assert server.objects[(QUEUES, "", "q")]["status"] == {"state": "Open", "allocated": {"cpu": "3"}}


def test_a_condition_keeps_its_transition_time_while_its_status_stays():
    def script(server: FakeApi) -> CycleResult:
        update = PodConditionUpdate(
            namespace="ns", name="p", uid=uid(server, PODS, "p"), reason="Unschedulable", message="no room"
        )
        return CycleResult(pod_conditions=[update])

    server, _ = after(script)
    (condition,) = server.objects[(PODS, "ns", "p")]["status"]["conditions"]
    assert condition["message"] == "no room"
    assert "lastTransitionTime" not in condition, "a strategic merge keeps the one that is there"


def test_a_pod_names_the_node_that_is_kept_for_it_until_it_is_kept_no_more():
    def script(nominated: str | None) -> Callable[[FakeApi], CycleResult]:
        def made(server: FakeApi) -> CycleResult:
            server.objects[(PODS, "ns", "p")]["status"]["nominatedNodeName"] = "before"
            who = uid(server, PODS, "p")
            update = PodConditionUpdate("ns", "p", who, "Unschedulable", "room is made for it", nominated)
            return CycleResult(pod_conditions=[update])

        return made

    for nominated, stored in (("n1", "n1"), ("", None), (None, "before")):
        server, _ = after(script(nominated))
        status = server.objects[(PODS, "ns", "p")]["status"]
        assert status.get("nominatedNodeName") == stored
        assert [c["message"] for c in status["conditions"] if c["type"] == "PodScheduled"] == ["room is made for it"]


def test_what_a_busy_server_refuses_is_written_again():
    def script(server: FakeApi) -> CycleResult:
        update = PodConditionUpdate(
            namespace="ns", name="p", uid=uid(server, PODS, "p"), reason="Unschedulable", message="no room"
        )
        stored = server.objects[(QUEUES, "", "q")]["metadata"]
        queue = QueueStatusUpdate(
            name="q", uid=stored["uid"], resource_version=stored["resourceVersion"], allocated={"cpu": "3"}
        )
        return CycleResult(pod_conditions=[update], queue_statuses=[queue])

    errors = [Fault.BUSY, Fault.CONFLICT, Fault.BROKEN, Fault.REFUSED, Fault.LOST]
    server, _ = after(script, api=lambda server: FaultyApi(server, iter(errors), verbs=("patch",)))
    (condition,) = server.objects[(PODS, "ns", "p")]["status"]["conditions"]
    assert condition["message"] == "no room"
    assert server.objects[(QUEUES, "", "q")]["status"]["allocated"] == {"cpu": "3"}


def test_what_is_about_an_object_that_was_replaced_is_given_up():
    def script(server: FakeApi) -> CycleResult:
        update = PodConditionUpdate(
            namespace="ns", name="p", uid="of-an-earlier-pod", reason="Unschedulable", message="no room"
        )
        return CycleResult(pod_conditions=[update])

    server, _ = after(script)
    assert not [write for write in server.writes if write[1] == "pods/status"]


def test_a_bound_pod_gets_no_condition_about_waiting():
    def script(server: FakeApi) -> CycleResult:
        server.objects[(PODS, "ns", "p")]["spec"]["nodeName"] = "n1"
        update = PodConditionUpdate(
            namespace="ns", name="p", uid=uid(server, PODS, "p"), reason="Unschedulable", message="no room"
        )
        return CycleResult(pod_conditions=[update])

    server, _ = after(script)
    assert not [write for write in server.writes if write[1] == "pods/status"]


def test_an_eviction_says_why_on_the_pod_before_it_deletes_it():
    def script(server: FakeApi) -> CycleResult:
        eviction = Eviction(
            namespace="ns", name="p", uid=uid(server, PODS, "p"), reason="preempt", message="preempted by ns/other"
        )
        return CycleResult(evictions=[eviction])

    server, _ = after(script)
    assert (PODS, "ns", "p") not in server.objects
    assert [write[:2] for write in server.writes] == [("patch", "pods/status"), ("delete", "pods")]


def test_an_eviction_that_is_forbidden_is_taken_back_and_one_that_may_still_work_is_not():
    class Denied:
        def __init__(self, server: FakeApi, code: int) -> None:
            self._server, self._code = server, code

        def __getattr__(self, verb: str) -> Any:
            return getattr(self._server, verb)

        async def delete(self, *args: Any, **kwargs: Any) -> Any:
            raise ApiError(self._code, "Denied", "not this pod")

    def script(server: FakeApi) -> CycleResult:
        who = uid(server, PODS, "p")
        return CycleResult(evictions=[Eviction(namespace="ns", name="p", uid=who, reason="preempt", message="for x")])

    for code, spared in ((403, ["not this pod"]), (500, [])):
        server, scheduler = after(script, api=lambda server, code=code: Denied(server, code))
        assert (PODS, "ns", "p") in server.objects
        assert [error for _, error in scheduler.spared] == spared


def test_events_are_sent():
    def script(server: FakeApi) -> CycleResult:
        event = EventRecord(
            resource=PODGROUPS, namespace="ns", name="pg", uid=uid(server, PODGROUPS, "pg"), type="Warning",
            reason="Unschedulable", message="1/1 tasks in gang unschedulable",
        )  # fmt: skip
        return CycleResult(events=[event])

    server, _ = after(script)
    (event,) = server.all(EVENTS)
    assert (event["reason"], event["involvedObject"]["kind"], event["source"]) == (
        "Unschedulable", "PodGroup", {"component": "volcano"},
    )  # fmt: skip
