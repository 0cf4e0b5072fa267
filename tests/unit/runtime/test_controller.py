"""What a controller does around a decision: again after a refusal, again when time changes it, not when it is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta

import pytest

from tests.fakes.api import FakeApi
from tests.support.metrics import Scrape
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.model import MalformedObject
from vcbatch.api.resources import JOBS, PODS
from vcbatch.core.machine import Create, Decision, ObjectRef, WriteStatus
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.apply import Applier, NotAppliedError
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.controller import Controller, ControllerConfig
from vcbatch.runtime.events.recorder import Recorder

Decide = Callable[[str, datetime], Awaitable[Decision | None]]


def make(
    decide: Decide,
    api: Api,
    clock: VirtualClock,
    jobs: Cache | None = None,
    refused: list[str] | None = None,
    meter: PrometheusMeter | None = None,
) -> Controller:
    recorder = Recorder(api, clock=clock, random=SeededRandom(1), component="test")
    applier = Applier(api, {JOBS: jobs or Cache()}, recorder, clock=clock, random=SeededRandom(1))

    def note(uid: str, error: NotAppliedError | None) -> None:
        if refused is not None and error is not None:
            refused.append(f"{uid}: {error}")

    return Controller(
        ControllerConfig(name="test", workers=2),
        decide,
        applier,
        clock=clock,
        random=SeededRandom(1),
        carried_out=note,
        meter=meter,
    )


async def for_a_while(controller: Controller, seconds: float) -> None:
    task = asyncio.ensure_future(controller.part().run())
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_a_refusal_is_told_and_tried_again_less_and_less_often():
    reconciles: list[float] = []
    refused: list[str] = []

    class Full(FakeApi):
        async def create(self, *_: object, **__: object) -> dict:
            raise ApiError(403, "Forbidden", "exceeded quota")

    async def main() -> None:
        clock = VirtualClock()

        async def decide(uid: str, now: datetime) -> Decision:
            reconciles.append(clock.monotonic())
            return Decision(creates=[Create(resource=PODS, body={"metadata": {"name": "p", "namespace": "ns"}})])

        controller = make(decide, Full(), clock, refused=refused)
        controller.queue.add("u")
        await for_a_while(controller, 600)

    run(main())
    assert 15 < len(reconciles) < 40
    assert reconciles[-1] - reconciles[-2] > 20
    assert all(text == "u: create Pod: exceeded quota" for text in refused)


def test_what_failed_is_counted_with_its_result_and_as_a_retry():
    meter = PrometheusMeter(programs=("controllers",))

    class Refusing(FakeApi):
        async def create(self, *_: object, **__: object) -> dict:
            raise ApiError(403, "Forbidden", "exceeded quota")

    async def main() -> None:
        async def decide(uid: str, now: datetime) -> Decision | None:
            if uid == "broken":
                raise RuntimeError("a fault of ours")
            if uid == "refused":
                return Decision(creates=[Create(resource=PODS, body={"metadata": {"name": "p", "namespace": "ns"}})])
            return Decision() if uid == "good" else None

        controller = make(decide, Refusing(), VirtualClock(), meter=meter)
        for uid in ("good", "gone", "refused", "broken"):
            with suppress(RuntimeError):
                await controller.reconcile(uid)

    run(main())
    scrape = Scrape(meter)
    for result in ("done", "gone", "refused", "error"):
        assert scrape.value("vcbatch_reconcile_total", controller="test", result=result) == 1
    assert scrape.value("vcbatch_workqueue_retries_total", controller="test") == 2
    assert scrape.value("vcbatch_reconcile_duration_seconds_count", controller="test") == 4


def test_a_stale_picture_is_looked_at_again_at_once():
    async def main() -> None:
        clock, server, jobs = VirtualClock(), FakeApi(), Cache()
        stored = server.seed(JOBS, {"metadata": {"name": "j", "namespace": "ns", "uid": "u"}})
        jobs.put(stored)
        reconciles = 0

        async def decide(uid: str, now: datetime) -> Decision:
            nonlocal reconciles
            reconciles += 1
            held = jobs.get(uid)
            if reconciles == 1:
                await server.patch(JOBS, "j", {"spec": {"x": 1}}, namespace="ns")  # somebody is faster
            ref = ObjectRef(resource=JOBS, namespace="ns", name="j", uid="u")
            version = held["metadata"]["resourceVersion"]
            return Decision(status=WriteStatus(ref=ref, resource_version=version, status={"running": 1}))

        controller = make(decide, server, clock, jobs)
        controller.queue.add("u")
        await for_a_while(controller, 1)
        assert server.objects[(JOBS, "ns", "j")]["status"] == {"running": 1}
        assert reconciles == 2

    run(main())


def test_an_object_that_is_gone_is_forgotten():
    reconciles: list[str] = []

    async def main() -> None:
        async def decide(uid: str, now: datetime) -> None:
            reconciles.append(uid)

        controller = make(decide, FakeApi(), VirtualClock())
        controller.queue.add("u")
        await for_a_while(controller, 3600)

    run(main())
    assert reconciles == ["u"]


def test_what_cant_be_read_is_left_alone_until_it_changes(caplog: pytest.LogCaptureFixture):
    reconciles: list[str] = []

    async def main() -> None:
        async def decide(uid: str, now: datetime) -> Decision:
            reconciles.append(uid)
            raise MalformedObject("Job: spec.tasks: Input should be a valid list")

        controller = make(decide, FakeApi(), VirtualClock())
        controller.queue.add("u")
        await for_a_while(controller, 3600)
        assert reconciles == ["u"]
        controller.queue.add("u")
        await for_a_while(controller, 3600)

    run(main())
    assert reconciles == ["u", "u"]
    reported = "the objects of a decision can't be read: Job: spec.tasks: Input should be a valid list"
    assert caplog.messages == [reported, reported]


def test_a_wish_to_look_again_survives_a_jump_of_the_wall_clock():
    async def main() -> None:
        clock = VirtualClock()
        due = clock.now() + timedelta(hours=6)
        done: list[float] = []

        async def decide(uid: str, now: datetime) -> Decision:
            if now >= due:
                done.append(clock.monotonic())
                return Decision()
            return Decision(requeue_at=due)

        controller = make(decide, FakeApi(), clock)
        controller.queue.add("u")
        task = asyncio.ensure_future(controller.part().run())
        await asyncio.sleep(60)
        clock.shift(6 * 3600)  # the machine was asleep, or somebody set its clock
        await asyncio.sleep(400)
        assert len(done) == 1
        clock.shift(-12 * 3600)
        controller.queue.add("u")
        await asyncio.sleep(60)
        assert len(done) == 1, "the clock was set back: it isn't due any more"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())
