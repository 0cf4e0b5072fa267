"""When a finished JobFlow goes: so many seconds after its end, as its annotation says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.flow_world import FlowWorld, entry
from vcbatch.api.names import TTL_AFTER_FINISHED
from vcbatch.api.resources import JOBFLOWS
from vcbatch.core.jobflow import decide
from vcbatch.core.machine import Delete


def _flow(kept: str | None = "60") -> FlowWorld:
    world = FlowWorld(entry("a"))
    world.flow["metadata"]["annotations"] = {} if kept is None else {TTL_AFTER_FINISHED: kept}
    world.settle()
    return world


def _deleted(world: FlowWorld) -> list[Delete]:
    return [each for each in decide(world.view(), now=world.now).deletes if each.ref.resource == JOBFLOWS]


@pytest.mark.parametrize("phase", ["Completed", "Failed"])
def test_a_flow_goes_with_its_jobs_when_its_time_is_over(phase: str) -> None:
    world = _flow()
    world.finish("f-a", phase=phase)
    due = world.now + timedelta(seconds=60)
    assert (_deleted(world), decide(world.view(), now=world.now).requeue_at) == ([], due)
    world.now = due - timedelta(seconds=1)
    assert (_deleted(world), decide(world.view(), now=world.now).requeue_at) == ([], due)
    world.now = due
    (delete,) = _deleted(world)
    assert (delete.ref.name, delete.ref.uid, delete.propagation) == ("f", "f-uid", "Foreground")


def test_one_that_goes_on_stays() -> None:
    world = _flow("0")
    world.finish("f-a", phase="Running")
    world.now += timedelta(days=1)
    assert _deleted(world) == []
    assert decide(world.view(), now=world.now).requeue_at is None


def test_the_time_counts_from_the_end_of_the_last_try() -> None:
    world = _flow()
    world.finish("f-a", phase="Failed")
    world.now += timedelta(seconds=50)
    world.command("RestartJob")
    world.settle()
    world.now += timedelta(seconds=500)
    assert (world.phase, _deleted(world)) == ("Pending", [])
    world.finish("f-a")
    assert decide(world.view(), now=world.now).requeue_at == world.now + timedelta(seconds=60)


def test_another_time_counts_from_the_same_end() -> None:
    world = _flow("600")
    world.finish("f-a")
    ended = world.now
    world.now += timedelta(seconds=30)
    world.flow["metadata"]["annotations"][TTL_AFTER_FINISHED] = "40"
    assert decide(world.view(), now=world.now).requeue_at == ended + timedelta(seconds=40)
    world.flow["metadata"]["annotations"][TTL_AFTER_FINISHED] = "30"
    assert len(_deleted(world)) == 1


@pytest.mark.parametrize("kept", [None, "soon", "-1"])
def test_without_a_time_it_stays(kept: str | None) -> None:
    world = _flow(kept)
    world.finish("f-a")
    world.now += timedelta(days=10000)
    assert _deleted(world) == []


def test_one_that_ended_before_its_end_was_noted_is_kept_from_now_on() -> None:
    world = _flow()
    world.finish("f-a")
    del world.flow["status"]["ledger"]["finished"]
    world.now += timedelta(days=1)
    assert _deleted(world) == []
    world.settle()
    assert decide(world.view(), now=world.now).requeue_at == world.now + timedelta(seconds=60)
