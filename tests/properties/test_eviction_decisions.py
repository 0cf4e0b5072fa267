"""Who goes for whom, as the arrays have it and as one task after the other has it, on random worlds."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings

from tests.oracle.eviction_strategies import policies, shuffles, worlds
from tests.oracle.shuffle import ShuffleOracle
from vcbatch.scheduler import Policy
from vcbatch.scheduler.simulation import Simulation, World

Json = dict[str, Any]
SETTINGS = settings(max_examples=250, suppress_health_check=list(HealthCheck))
FEWER = settings(SETTINGS, max_examples=60)


def _compare(world: Json, document: Json) -> None:
    found = Simulation(World.read(world), Policy.build(document)).run()
    oracle = ShuffleOracle(world, document).run()
    assert found.binds == oracle.binds
    assert sorted(found.evicted) == sorted(oracle.tasks[uid].name for uid in oracle.evicted)
    assert {**found.pipelined, **found.allocated} == oracle.held
    assert dict(found.phases) == oracle.phases


@SETTINGS
@given(worlds(), policies())
def test_evictions_are_those_of_one_task_at_a_time(world: Json, document: Json) -> None:
    _compare(world, document)


@FEWER
@given(worlds(), shuffles())
def test_who_goes_whoever_waits_is_told_apart_from_who_stays(world: Json, document: Json) -> None:
    _compare(world, document)
