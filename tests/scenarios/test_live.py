"""Scenarios on `vcbatch up` as users have it: HTTPS, kopf, real processes and real time.

All that don't need nodes of their own run at once, each in its namespace. What passes under virtual time and not here
is a fault of the simulation, or of what it leaves out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.player import Scenario, ScenarioFailed, play
from tests.support.up import RunningVcbatch
from vcbatch.api.resources import NAMESPACES
from vcbatch.runtime.client import HttpApi
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.kubeconfig import load
from vcbatch.runtime.random import SystemRandom

CASES = Path(__file__).parent / "cases"
LIVE = (
    "abort-and-resume",
    "closed-queue",
    "complete",
    "fails-without-policy",
    "restarts-then-fails",
    "same-name-again",
)


class LiveWorld:
    """Implements `player.World` on a running program."""

    def __init__(self, api: HttpApi, namespace: str) -> None:
        self.api = api
        self.namespace = namespace

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def restart(self, part: str) -> None:
        raise ScenarioFailed(f"the {part} can't be killed alone here")

    def jump(self, seconds: float) -> None:
        raise ScenarioFailed("the clock of a real machine stays as it is")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVcbatch]:
    program = RunningVcbatch(tmp_path_factory.mktemp("live"))
    program.up()
    try:
        yield program
    finally:
        program.down()


async def test_live(running: RunningVcbatch) -> None:
    async with HttpApi(load(running.kubeconfig), clock=SystemClock(), random=SystemRandom()) as api:

        async def one(name: str) -> None:
            await api.create(NAMESPACES, {"metadata": {"name": name}})
            await play(Scenario.load(CASES / f"{name}.yaml"), LiveWorld(api, name))

        async with asyncio.TaskGroup() as group:
            for name in LIVE:
                group.create_task(one(name))
