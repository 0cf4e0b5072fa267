"""What a cycle made goes when it ends: arrays of megabytes don't wait for the garbage collector, which counts objects.

A process that decides for thousands of nodes twenty times a second held half a gigabyte of cycles that were over.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings

from tests.oracle import eviction_strategies, strategies
from tests.oracle.worlds import run
from tests.support.examples import examples
from vcbatch.scheduler import build_policy
from vcbatch.scheduler.simulation import Simulation, World

Json = dict[str, Any]
SETTINGS = settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))


def _left(cycle: Callable[[], object]) -> set[str]:
    """The types of the scheduler's objects that are in nobody's hands after it, and still there."""
    gc.disable()
    gc.freeze()  # what was there before isn't looked at: with all that the tests hold, that takes a quarter of a second
    try:
        held = cycle()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found = {type(each) for each in gc.garbage}
        assert held is not None
        return {each.__qualname__ for each in found if each.__module__.startswith("vcbatch.scheduler")}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
        gc.enable()


@SETTINGS
@given(strategies.worlds(), strategies.policies())
def test_nothing_of_a_cycle_waits_for_the_garbage_collector(world: Json, document: Json) -> None:
    policy = build_policy(document)
    assert _left(lambda: run(world, policy)) == set()


@SETTINGS
@given(eviction_strategies.worlds(), eviction_strategies.policies())
def test_nothing_of_one_that_evicts_does(world: Json, document: Json) -> None:
    def cycles() -> object:
        simulation = Simulation(World.read(world), build_policy(document))
        return simulation, simulation.run()

    assert _left(cycles) == set()
