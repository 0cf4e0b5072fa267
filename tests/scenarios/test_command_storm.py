"""A thousand Commands at once, with controllers that are killed on the way: each is carried out once at most, in the
order in which they came, and none stays."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.scenarios.simulated import SimulatedWorld, simulated
from tests.support import virtual_time
from vcbatch.api.reasons import JobReason
from vcbatch.api.resources import COMMANDS, EVENTS, JOBFLOWS, JOBS, JOBTEMPLATES, QUEUES, Resource

Json = dict[str, Any]

_JOBS, _EACH = 8, 100
_QUEUE_COMMANDS, _LOST, _UNKNOWN = 101, 50, 50


def _spec() -> Json:
    container = {"name": "main", "image": "busybox", "command": ["sleep", "inf"]}
    task = {"name": "w", "replicas": 1, "template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    return {"minAvailable": 1, "schedulerName": "volcano", "tasks": [task]}


async def _make(world: SimulatedWorld, resource: Resource, name: str, **fields: Any) -> Json:
    """Create it; its metadata."""
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    namespace = world.namespace if resource.namespaced else None
    made = await world.api.create(resource, {**kind, "metadata": {"name": name}, **fields}, namespace=namespace)
    return made["metadata"]


async def _command(world: SimulatedWorld, number: int, target: Json, resource: Resource, action: str) -> None:
    of = {"apiVersion": resource.api_version, "kind": resource.kind, "name": target["name"], "uid": target["uid"]}
    await _make(world, COMMANDS, f"c{number:04}", action=action, target=of)


async def _settle(world: SimulatedWorld) -> None:
    for _ in range(3000):
        if not (await world.api.list(COMMANDS)).items:
            break
        await world.pass_time(0.5)
    assert (await world.api.list(COMMANDS)).items == []
    await world.pass_time(30)


def _issued(events: list[Json]) -> Counter[str]:
    """How often each job was told that a Command was carried out."""
    reported: Counter[str] = Counter()
    for event in events:
        if event["reason"] == JobReason.COMMAND_ISSUED and event["involvedObject"]["kind"] == JOBS.kind:
            reported[event["involvedObject"]["name"]] += event.get("count") or 1
    return reported


async def _storm() -> None:
    async with simulated() as world:
        jobs = [await _make(world, JOBS, f"j{index}", spec=_spec()) for index in range(_JOBS)]
        await _make(world, JOBTEMPLATES, "t", spec=_spec())
        flow = await _make(world, JOBFLOWS, "f", spec={"flows": [{"name": "t"}]})
        queue = await _make(world, QUEUES, "q", spec={"weight": 1})
        await world.pass_time(20)
        number = 0
        for turn in range(_EACH):
            for job in jobs:
                number += 1
                await _command(world, number, job, JOBS, "AbortJob" if turn % 2 else "ResumeJob")
            if turn in (30, 60):
                await world.restart("controllers")
        for turn in range(_QUEUE_COMMANDS):
            number += 1
            await _command(world, number, queue, QUEUES, "OpenQueue" if turn % 2 else "CloseQueue")
        await _command(world, number + 1, flow, JOBFLOWS, "AbortJob")
        for turn in range(_LOST):
            await _command(world, number + 2 + turn, {"name": "nobody", "uid": f"u{turn}"}, JOBS, "AbortJob")
        for turn in range(_UNKNOWN):
            await _command(world, number + 2 + _LOST + turn, jobs[turn % _JOBS], JOBS, "DoTheDishes")
        await world.restart("controllers")
        await _settle(world)
        issued = _issued(list((await world.api.list(EVENTS, namespace=world.namespace)).items))
        for job in jobs:
            stored = await world.api.get(JOBS, job["name"], namespace=world.namespace)
            assert stored["status"]["state"]["phase"] == "Aborted", "the last one counts"
            assert 0 < issued[job["name"]] <= _EACH, "none is carried out twice"
        assert (await world.api.get(QUEUES, "q"))["status"]["state"] == "Closed"
        held = await world.api.get(JOBS, "f-t", namespace=world.namespace)
        assert held["status"]["state"]["phase"] == "Aborted"


def test_a_thousand_commands_are_each_carried_out_once_at_most() -> None:
    virtual_time.run(_storm())
