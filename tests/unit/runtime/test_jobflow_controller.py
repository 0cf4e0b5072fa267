"""What concerns a JobFlow, what is remembered of jobs that went, and what is said when the server refuses one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from tests.fakes.api import FakeApi
from tests.support.flow_world import entry
from tests.support.virtual_time import EPOCH, SeededRandom, VirtualClock, run
from vcbatch.api.pod import Pod
from vcbatch.api.resources import COMMANDS, EVENTS, JOBFLOWS, JOBS, JOBTEMPLATES
from vcbatch.api.timestamps import format_time
from vcbatch.core.jobflow import Probe
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.jobflow import JobFlowController, JobFlowSources
from vcbatch.runtime.controllers.jobtemplate import JobTemplateController
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.probes import Prober

Json = dict[str, Any]


class _Api(FakeApi):
    """Takes no job of a name that is in `refused`."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: dict[str, ApiError] = {}

    async def create(self, resource: Any, body: Json, *, namespace: str | None = None) -> Json:
        if body["metadata"].get("name") in self.refused and resource == JOBS:
            raise self.refused[body["metadata"]["name"]]
        return await super().create(resource, body, namespace=namespace)


class _Asks:
    def __init__(self) -> None:
        self.asked: list[Probe] = []

    async def ask(self, probe: Probe) -> bool:
        self.asked.append(probe)
        return True

    async def close(self) -> None:
        return None


class _World:
    def __init__(self) -> None:
        self.api, self.clock, random = _Api(), VirtualClock(), SeededRandom(1)
        self.caches: dict[Any, Cache[Json]] = {each: Cache() for each in (JOBFLOWS, JOBTEMPLATES, JOBS, COMMANDS)}
        self.pods: Cache[Pod] = Cache(model=Pod)
        self.asks = _Asks()
        self.recorder = Recorder(self.api, clock=self.clock, random=random, component="test")
        applier = Applier(self.api, self.caches, self.recorder, clock=self.clock, random=random)
        self.prober = Prober(self.asks, clock=self.clock)
        sources = JobFlowSources(
            flows=self.caches[JOBFLOWS],
            templates=self.caches[JOBTEMPLATES],
            jobs=self.caches[JOBS],
            pods=self.pods,
            commands=self.caches[COMMANDS],
        )
        options = {"clock": self.clock, "random": random}
        self.flows = JobFlowController(sources, self.prober, applier, self.recorder, **options)
        self.templates = JobTemplateController(self.caches[JOBTEMPLATES], self.caches[JOBS], applier, **options)

    async def add(self, resource: Any, name: str, **body: Any) -> Json:
        metadata = {"name": name, "namespace": "ns", "creationTimestamp": format_time(EPOCH)}
        stored = await self.api.create(resource, {"metadata": metadata, **body}, namespace="ns")
        self.caches[resource].put(stored)
        return stored

    async def flow(self, *flows: Json, templates: tuple[str, ...] | None = None, name: str = "f") -> Json:
        for each in templates if templates is not None else [each["name"] for each in flows]:
            await self.add(JOBTEMPLATES, each, spec={"tasks": [{"name": "w", "replicas": 1}]})
        return await self.add(JOBFLOWS, name, spec={"flows": list(flows)})

    async def job_is(self, name: str, phase: str) -> None:
        patch = {"status": {"state": {"phase": phase}}}
        self.caches[JOBS].put(await self.api.patch(JOBS, name, patch, namespace="ns", subresource="status"))

    def gone(self, name: str) -> None:
        stored = self.caches[JOBS].by_key(f"ns/{name}")
        assert stored is not None
        self.caches[JOBS].observe("DELETED", stored)

    async def run_for(self, seconds: float) -> None:
        parts = [self.flows.part(), self.templates.part(), self.prober.part()]
        tasks = [asyncio.ensure_future(part.run()) for part in parts]
        tasks.append(asyncio.ensure_future(self.recorder.run()))
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def jobs(self) -> list[str]:
        return sorted(job["metadata"]["name"] for job in self.caches[JOBS])

    def status(self, resource: Any, name: str) -> Mapping[str, Any]:
        return (self.caches[resource].by_key(f"ns/{name}") or {}).get("status", {})

    async def reported(self, reason: str) -> list[str]:
        events = (await self.api.list(EVENTS, namespace="ns")).items
        return [event["message"] for event in events if event["reason"] == reason]


def _play(scene: Any) -> None:
    async def go() -> None:
        await scene(_World())

    run(go())


def test_jobs_follow_what_becomes_of_others() -> None:
    async def scene(world: _World) -> None:
        await world.flow(entry("a"), entry("b", "a"))
        await world.run_for(1)
        assert world.jobs == ["f-a"]
        await world.job_is("f-a", "Completed")
        await world.run_for(1)
        assert world.jobs == ["f-a", "f-b"]
        assert world.status(JOBTEMPLATES, "a")["jobDependsOnList"] == ["f-a"]

    _play(scene)


def test_a_job_that_completed_and_went_at_once_is_done() -> None:
    async def scene(world: _World) -> None:
        await world.flow(entry("a"), entry("b", "a"))
        await world.run_for(1)
        await world.job_is("f-a", "Completed")
        world.gone("f-a")
        await world.run_for(1)
        assert world.jobs == ["f-b"]
        assert world.status(JOBFLOWS, "f")["completedJobs"] == ["f-a"]
        assert "jobDependsOnList" not in world.status(JOBTEMPLATES, "a")

    _play(scene)


def test_a_template_that_comes_is_what_its_flows_waited_for() -> None:
    async def scene(world: _World) -> None:
        await world.flow(entry("a"), templates=())
        await world.run_for(1)
        assert world.jobs == []
        await world.add(JOBTEMPLATES, "a", spec={"tasks": []})
        await world.run_for(1)
        assert world.jobs == ["f-a"]

    _play(scene)


def test_a_job_that_isnt_taken_keeps_no_other_from_being_made() -> None:
    async def scene(world: _World) -> None:
        world.api.refused["f-a"] = ApiError(422, "Invalid", "its queue is closed")
        await world.flow(entry("a"), entry("b"), entry("c"))
        await world.run_for(30)
        assert world.jobs == ["f-b", "f-c"]
        assert world.status(JOBFLOWS, "f")["state"]["message"] == "a job isn't taken: its queue is closed"
        assert await world.reported("FailedCreate") == ["create Job: its queue is closed"]
        world.api.refused.clear()
        await world.run_for(70)
        assert world.jobs == ["f-a", "f-b", "f-c"]
        assert "message" not in world.status(JOBFLOWS, "f")["state"]

    _play(scene)


def test_a_name_that_is_free_again_is_taken() -> None:
    async def scene(world: _World) -> None:
        await world.add(JOBS, "f-a", spec={})
        await world.flow(entry("a"))
        await world.run_for(1)
        stranger = world.caches[JOBS].by_key("ns/f-a")
        assert stranger is not None
        await world.api.delete(JOBS, "f-a", namespace="ns")
        world.gone("f-a")
        await world.run_for(1)
        made = world.caches[JOBS].by_key("ns/f-a")
        assert made is not None
        assert made["metadata"]["uid"] != stranger["metadata"]["uid"]

    _play(scene)


def test_pods_are_asked_at_their_own_address_only() -> None:
    async def scene(world: _World) -> None:
        probe = {"tcpSocketList": [{"taskName": "w", "port": 80}]}
        await world.flow(entry("a"), entry("b", "a", probe=probe))
        await world.run_for(1)
        await world.job_is("f-a", "Running")
        job = world.caches[JOBS].by_key("ns/f-a")
        assert job is not None
        mine = job["metadata"]["uid"]
        world.pods.put(_pod("p0", mine, "10.0.0.1"))
        world.pods.put(_pod("p1", "another", "10.0.0.2"))
        world.pods.put(_pod("p2", mine, "10.0.0.3", host_network=True))
        await world.run_for(3)
        assert {probe.address for probe in world.asks.asked} == {"10.0.0.1"}
        assert world.jobs == ["f-a", "f-b"]
        before = len(world.asks.asked)
        await world.run_for(30)
        assert len(world.asks.asked) == before, "nobody waits for it any more"

    _play(scene)


def test_numbers_of_pods_are_written_once_a_second_at_most() -> None:
    async def scene(world: _World) -> None:
        await world.flow(entry("a"))
        await world.run_for(2)
        await world.job_is("f-a", "Running")
        running = asyncio.ensure_future(world.run_for(10))
        await asyncio.sleep(1)
        before = len(world.api.writes)
        for number in range(50):
            patch = {"status": {"taskStatusCount": {"w": {"phase": {"Running": number}}}}}
            stored = await world.api.patch(JOBS, "f-a", patch, namespace="ns", subresource="status")
            world.caches[JOBS].put(stored)
            await asyncio.sleep(0.05)
        await running
        writes = [each for each in world.api.writes[before:] if each[1].startswith(JOBFLOWS.plural)]
        assert 1 <= len(writes) <= 4
        assert world.status(JOBFLOWS, "f")["conditions"]["f-a"]["taskStatusCount"] == {"w": {"phase": {"Running": 49}}}

    _play(scene)


def _pod(name: str, owner: str, address: str, *, host_network: bool = False) -> Pod:
    reference = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": "f-a", "uid": owner, "controller": True}
    metadata = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1", "ownerReferences": [reference]}
    body = {
        "metadata": {**metadata, "labels": {"volcano.sh/task-spec": "w"}},
        "spec": {"hostNetwork": host_network},
        "status": {"phase": "Running", "podIP": address},
    }
    return msgspec.convert(body, Pod)
