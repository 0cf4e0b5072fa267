"""A controller that dies between any two writes of a flow's life, or carries a decision out twice, leaves behind what
one leaves that didn't: the same jobs, made as often, and the same status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.flow_world import Crash, FlowWorld, entry

Json = dict[str, Any]


class _Mortal(FlowWorld):
    """Dies once, after so many writes in all, and is started again."""

    def __init__(self, *flows: Json, dies_after: int | None, **spec: Any) -> None:
        super().__init__(*flows, **spec)
        self.left = dies_after
        self.written = self._carried_out = 0

    def reconcile(self, *, writes: int | None = None) -> Any:
        del writes
        before = self._carried_out
        try:
            decision = super().reconcile(writes=self.left)
        except Crash:
            self.left = None
            decision = super().reconcile()
        done = self._carried_out - before
        self.written += done
        if self.left is not None:
            self.left -= done
        return decision

    def _writes(self, decision: Any) -> Any:
        for act in super()._writes(decision):

            def counted(act: Callable[[], None] = act) -> None:
                self._carried_out += 1
                act()

            yield counted


def _failure_and_another_try(world: FlowWorld) -> None:
    world.settle()
    world.finish("f-a")
    world.finish("f-b", phase="Failed")
    world.command("RestartJob")
    world.settle()
    for name in ("f-c", "f-b", "f-d"):
        world.finish(name)


def _suspension(world: FlowWorld) -> None:
    world.settle()
    world.finish("f-a", phase="Running")
    world.command("AbortJob")
    world.settle()
    world.template("b", maxRetry=7)
    world.command("ResumeJob")
    world.settle()
    for name in ("f-a", "f-b", "f-c", "f-d"):
        world.finish(name)


def _termination(world: FlowWorld) -> None:
    world.settle()
    world.finish("f-a")
    world.command("TerminateJob")
    world.settle()


def _play(story: Callable[[FlowWorld], None], policy: str, dies_after: int | None) -> _Mortal:
    flows = [entry("a"), entry("b", "a"), entry("c", "a"), entry("d", "b", "c")]
    world = _Mortal(*flows, dies_after=dies_after, jobRetainPolicy=policy)
    story(world)
    return world


def _left_behind(world: FlowWorld) -> Json:
    """Without UIDs, which count everything that was ever made."""
    ledger = {**world.status["ledger"], "jobs": sorted(world.status["ledger"].get("jobs", ()))}
    return {
        "made": world.made,
        "jobs": {name: world.phase_of(name) for name in sorted(world.jobs)},
        "commands": world.commands,
        "status": {**world.status, "ledger": ledger},
    }


@pytest.mark.parametrize("policy", ["retain", "delete"])
@pytest.mark.parametrize("story", [_failure_and_another_try, _suspension, _termination])
def test_dying_anywhere_changes_nothing(story: Callable[[FlowWorld], None], policy: str) -> None:
    whole = _play(story, policy, None)
    wanted = _left_behind(whole)
    assert whole.written > 10
    for dies_after in range(whole.written + 1):
        assert _left_behind(_play(story, policy, dies_after)) == wanted, f"died after {dies_after} writes"


@pytest.mark.parametrize("story", [_failure_and_another_try, _suspension, _termination])
def test_carrying_a_decision_out_twice_changes_nothing(story: Callable[[FlowWorld], None]) -> None:
    class Twice(FlowWorld):
        def _writes(self, decision: Any) -> Any:
            acts = list(super()._writes(decision))
            yield from acts
            yield from acts[decision.status is not None :]  # a status that was written is refused by its version

    flows = [entry("a"), entry("b", "a"), entry("c", "a"), entry("d", "b", "c")]
    twice, once = Twice(*flows), FlowWorld(*flows)
    story(twice)
    story(once)
    assert _left_behind(twice) == _left_behind(once)
