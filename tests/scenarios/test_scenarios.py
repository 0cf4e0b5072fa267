"""Every scenario, under virtual time."""

from __future__ import annotations

import time

import pytest

from tests.scenarios.backends import missing
from tests.scenarios.history import Observer
from tests.scenarios.player import Capability, Scenario, ScenarioFailed, play, scenarios
from tests.scenarios.report import PURE, Outcome, Record, report
from tests.scenarios.simulated import simulated
from tests.support import virtual_time
from vcbatch.scheduler import parse_policy

LACKS = {Capability.KUBERNETES: "nothing acts on Kubernetes' own workloads here"}


def _simulate(scenario: Scenario) -> None:
    policy = parse_policy(scenario.policy) if scenario.policy else None

    async def run() -> None:
        async with (
            simulated(scenario.nodes, namespace=scenario.name, policy=policy) as world,
            Observer(world.api) as observer,
        ):
            world.history = observer.history(world.namespace)
            await play(scenario, world)

    virtual_time.run(run())


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.title)
def test_simulated(scenario: Scenario, record_property: Record) -> None:
    if lacks := missing(scenario, LACKS):
        report(record_property, PURE, scenario, Outcome(lacks=lacks))
        pytest.skip(lacks)
    began = time.monotonic()
    try:
        _simulate(scenario)
    except ScenarioFailed as failure:
        report(record_property, PURE, scenario, Outcome(failure=str(failure)))
        raise
    report(record_property, PURE, scenario, Outcome(seconds=time.monotonic() - began))


@pytest.mark.parametrize("condition", [{"get": "nodes"}, {"get": "nodes", "cuont": 1}, {"get": "nodes", "path": "a"}])
def test_an_expectation_that_expects_nothing_is_refused(condition: dict[str, object]) -> None:
    with pytest.raises(ScenarioFailed, match="expects nothing"):
        _simulate(Scenario(name="empty", steps=[{"expect": condition}]))
