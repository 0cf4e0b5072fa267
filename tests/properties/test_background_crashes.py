"""Whichever background task crashes: it is logged by name, the server isn't ready, and soon all work goes on."""

from __future__ import annotations

import logging

import pytest

from tests.scenarios.simulated import SimulatedWorld, simulated
from tests.support.crashes import crash
from tests.support.virtual_time import run
from vcbatch.api.resources import JOBS, NAMESPACES
from vcbatch.hosting.health import STEADY_SECONDS
from vcbatch.local.apiserver.access import ADMINISTRATORS, User
from vcbatch.local.apiserver.handler import Request

ADMINISTRATOR = User(name="admin", groups=(ADMINISTRATORS,))
FATAL = frozenset({"scheduling"})
"""Ends the program, which is started again: what a scheduler has assumed can't be trusted after a defect of its own."""
_FEWEST = 20
"""Tasks that there are at least: a test that finds none proves nothing."""


async def ready(world: SimulatedWorld) -> tuple[int, str]:
    request = Request(method="GET", path="/readyz", query={}, headers={}, body=b"", user=ADMINISTRATOR)
    answer = await world.kernel.handler.handle(request)
    assert answer is not None and isinstance(answer.body, bytes)
    return answer.code, answer.body.decode()


async def work(world: SimulatedWorld, name: str) -> None:
    """A job and a namespace run through all that there is for them."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i", "command": ["true"]}]}}
    spec = {"minAvailable": 2, "tasks": [{"name": "worker", "replicas": 2, "template": template}]}
    body = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": {"name": name}, "spec": spec}
    await world.api.create(JOBS, body, namespace=world.namespace)
    await world.api.create(NAMESPACES, {"metadata": {"name": name}})
    await world.api.delete(NAMESPACES, name)
    left = 120
    while not await done(world, name):
        assert left, "after the crash of a task nothing goes on"
        left -= 1
        await world.pass_time(1)
    await world.api.delete(JOBS, name, namespace=world.namespace)


async def done(world: SimulatedWorld, name: str) -> bool:
    """Whether the job has completed and the namespace is gone."""
    job = await world.api.get(JOBS, name, namespace=world.namespace)
    names = {each["metadata"]["name"] for each in (await world.api.list(NAMESPACES)).items}
    return (job.get("status") or {}).get("state", {}).get("phase") == "Completed" and name not in names


def test_a_crash_of_any_background_task_is_seen_and_repaired(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with simulated() as world:
            await world.pass_time(30)
            names = world.health.tasks()
            assert len(names) >= _FEWEST
            for index, name in enumerate(names):
                caplog.clear()
                while not crash(name):
                    await world.pass_time(0.01)
                if name in FATAL:
                    with pytest.raises(AssertionError, match=f"{name} failed for good: InjectedError"):
                        await world.pass_time(0.01)
                    await world.restart("scheduler")
                else:
                    await world.pass_time(0.01)
                    code, text = await ready(world)
                    assert code == 500, name
                    assert f"[-]{name} failed: InjectedError: injected" in text
                    assert [record for record in caplog.records if name in record.getMessage()], name
                await world.pass_time(STEADY_SECONDS + 15)
                assert await ready(world) == (200, "ok"), name
                await work(world, f"after-{index}")

    with caplog.at_level(logging.ERROR):
        run(main())
