"""What concerns a CronJob, what is said once, and what is said when the server refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.fakes.api import FakeApi
from tests.support.virtual_time import EPOCH, SeededRandom, VirtualClock, run
from vcbatch.api.resources import CRONJOBS, EVENTS, JOBS
from vcbatch.api.timestamps import format_time
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.cronjob import CronJobController
from vcbatch.runtime.events.recorder import Recorder

Json = dict[str, Any]

_COMPLETED = {"status": {"state": {"phase": "Completed", "lastTransitionTime": format_time(EPOCH)}}}


class _Api(FakeApi):
    """Refuses to make jobs while told to."""

    refusal: ApiError | None = None

    async def create(self, resource: Any, body: Json, *, namespace: str | None = None) -> Json:
        if self.refusal is not None and resource == JOBS:
            raise self.refusal
        return await super().create(resource, body, namespace=namespace)


class _World:
    def __init__(self) -> None:
        self.api = _Api()
        self.cron_jobs: Cache[Json] = Cache()
        self.jobs: Cache[Json] = Cache()
        self.clock, random = VirtualClock(), SeededRandom(1)
        self.recorder = Recorder(self.api, clock=self.clock, random=random, component="test")
        caches = {CRONJOBS: self.cron_jobs, JOBS: self.jobs}
        applier = Applier(self.api, caches, self.recorder, clock=self.clock, random=random)
        self.controller = CronJobController(
            self.cron_jobs, self.jobs, applier, self.recorder, clock=self.clock, random=random
        )

    async def add(self, **spec: Any) -> Json:
        body = {
            "metadata": {"name": "c", "namespace": "ns", "creationTimestamp": format_time(EPOCH)},
            "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"tasks": []}}, **spec},
        }
        stored = await self.api.create(CRONJOBS, body, namespace="ns")
        self.cron_jobs.put(stored)
        return stored

    async def run_for(self, seconds: float) -> None:
        part = self.controller.part()
        tasks = [asyncio.ensure_future(part.run()), asyncio.ensure_future(self.recorder.run())]
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def reported(self) -> Mapping[str, int]:
        return {event["reason"]: event["count"] for event in self.api.all(EVENTS)}


def test_each_slot_is_started_without_being_asked() -> None:
    async def scenario() -> None:
        world = _World()
        await world.add()
        await world.run_for(185)
        first = int(EPOCH.timestamp()) // 60 + 1
        assert [job["metadata"]["name"] for job in world.api.all(JOBS)] == [
            f"c-{first + number}" for number in range(3)
        ]
        made = [write for write in world.api.writes if write[0] == "create" and write[1] == "jobs"]
        assert len(made) == 3

    run(scenario())


def test_what_stays_so_is_told_once() -> None:
    async def scenario() -> None:
        world = _World()
        stored = await world.add(timeZone="Mars/Olympus")
        for _ in range(3):
            world.controller.controller.queue.add(stored["metadata"]["uid"])
            await world.run_for(1)
        assert world.reported() == {"InvalidTimeZone": 1}

    run(scenario())


def test_a_refusal_is_told_and_tried_again() -> None:
    async def scenario() -> None:
        world = _World()
        await world.add()
        world.api.refusal = ApiError(403, "Forbidden", "exceeded quota")
        await world.run_for(62)
        assert not world.api.all(JOBS)
        assert world.reported()["FailedCreate"] >= 1
        world.api.refusal = None
        await world.run_for(61)
        assert world.api.all(JOBS)

    run(scenario())


def test_what_became_of_a_job_is_told_although_the_next_is_refused_in_the_same_look() -> None:
    async def scenario() -> None:
        world = _World()
        await world.add(concurrencyPolicy="Forbid")
        await world.run_for(62)
        (job,) = world.api.all(JOBS)
        await asyncio.sleep(60)
        world.jobs.put(await world.api.patch(JOBS, job["metadata"]["name"], _COMPLETED, namespace="ns"))
        world.api.refusal = ApiError(403, "Forbidden", "the queue is closed")
        await world.run_for(2)
        assert world.reported().keys() == {"SuccessfulCreate", "SawCompletedJob", "FailedCreate"}
        assert world.reported()["SawCompletedJob"] == 1

    run(scenario())


def test_a_namespace_that_goes_has_its_own_word() -> None:
    async def scenario() -> None:
        world = _World()
        await world.add()
        details = {"causes": [{"reason": "NamespaceTerminating", "message": "it is being terminated"}]}
        world.api.refusal = ApiError(403, "Forbidden", "it is being terminated", details)
        await world.run_for(62)
        assert world.reported().keys() == {"NamespaceTerminating"}

    run(scenario())


def test_a_name_that_somebody_takes_behind_our_back_costs_the_slot() -> None:
    async def scenario() -> None:
        world = _World()
        await world.add()
        name = f"c-{int(EPOCH.timestamp()) // 60 + 1}"
        await world.api.create(JOBS, {"metadata": {"name": name, "namespace": "ns"}}, namespace="ns")
        await world.run_for(65)
        assert world.reported() == {"ForeignJob": 1}
        (stored,) = world.api.all(CRONJOBS)
        assert stored["status"]["lastScheduleTime"] == "2026-01-01T00:01:00Z"

    run(scenario())
