"""Every scenario, under virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.player import Scenario, ScenarioFailed, play
from tests.scenarios.simulated import simulated
from tests.support import virtual_time

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_simulated(path: Path) -> None:
    scenario = Scenario.load(path)

    async def run() -> None:
        async with simulated(scenario.nodes) as world:
            await play(scenario, world)

    virtual_time.run(run())


@pytest.mark.parametrize("condition", [{"get": "nodes"}, {"get": "nodes", "cuont": 1}, {"get": "nodes", "path": "a"}])
def test_an_expectation_that_expects_nothing_is_refused(condition: dict[str, object]) -> None:
    async def run() -> None:
        async with simulated() as world:
            await play(Scenario(name="empty", steps=[{"expect": condition}]), world)

    with pytest.raises(ScenarioFailed, match="expects nothing"):
        virtual_time.run(run())
