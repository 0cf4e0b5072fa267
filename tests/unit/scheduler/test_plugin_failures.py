"""Plugins of the user's own that raise: nothing half done, nobody else held up, and it is said where."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import parse_policy
from vcbatch.scheduler.actions.allocate import Allocate
from vcbatch.scheduler.framework.arguments import NO_ARGUMENTS
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.framework.policy import Extensions

TEXT = "actions: enqueue, allocate{more}\ntiers: [{{plugins: [{{name: gang}}, {{name: mine}}, {{name: predicates}}]}}]"


def cluster(plugin: type[Plugin], *, actions: dict[str, Any] | None = None) -> Cluster:
    extensions = Extensions(plugins={"mine": plugin}, actions=actions or {})
    more = "".join(f", {name}" for name in actions or {})
    made = Cluster(parse_policy(TEXT.format(more=more), extensions=extensions))
    made.node("n1", cpu="8")
    return made


def picture(made: Cluster) -> dict[str, Any]:
    """Every amount that a decision changes."""
    state = made.scheduler._state
    nodes, jobs = state.nodes, state.jobs_table
    return {
        "nodes": [np.copy(getattr(nodes, name)) for name in ("used", "releasing", "pipelined", "nonzero")],
        "jobs": [np.copy(getattr(jobs, name)) for name in ("allocated", "pending", "phase")],
        "tasks": {uid: (task.status, task.node, task.evicting) for uid, task in state.tasks.items()},
        "counts": {key: list(job.counts) for key, job in state.jobs.items()},
        "roles": {key: copy.deepcopy(job.roles) for key, job in state.jobs.items()},
        "ports": {info.name: dict(info.ports) for info in state.nodes.infos},
    }


def same(before: dict[str, Any], after: dict[str, Any]) -> bool:
    arrays = zip(before["nodes"] + before["jobs"], after["nodes"] + after["jobs"], strict=True)
    rest = ("tasks", "counts", "roles", "ports")
    return all(np.array_equal(a, b) for a, b in arrays) and all(before[key] == after[key] for key in rest)


class KeyOfBad(Plugin):
    """Can't order gangs whose name begins with `bad`."""

    def job_key(self, job: Any) -> float:
        if job.key.startswith("ns/bad"):
            raise KeyError("no label")
        return 0.0


def test_a_gang_about_which_a_plugin_raises_is_set_aside_and_the_others_start():
    made = cluster(KeyOfBad)
    made.gang("bad-1", 1)
    made.gang("good", 2)
    result = made.cycle()
    assert {bind.name for bind in result.binds} == {"good-worker-0", "good-worker-1"}
    [failure] = result.failures
    assert (failure.name, failure.hook, failure.gang) == ("mine", "job_key", "ns/bad-1")
    assert failure.error == "KeyError: 'no label'"
    assert failure.place.endswith(f"test_plugin_failures.py:{KeyOfBad.job_key.__code__.co_firstlineno + 2}")
    reported = made.scheduler.explain("ns", "bad-1")
    assert reported is not None
    assert reported.reason == "PluginFailed"
    assert "mine.job_key (" in reported.message
    assert made.cycle().failures == (), "it isn't asked again"


def test_it_is_tried_again_when_its_podgroup_or_the_policy_changes():
    made = cluster(KeyOfBad)
    made.gang("bad", 1)
    assert made.cycle().failures
    made.groups["bad"]["spec"]["minMember"] = 0
    made.report_group("bad")
    assert made.cycle().failures
    made.scheduler.set_policy(parse_policy("actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}]}]"))
    assert [bind.name for bind in made.cycle().binds] == ["bad-worker-0"]
    assert made.scheduler.explain("ns", "bad") is None


class Fails(Plugin):
    """Fails in the hook that the test names."""

    hook = ""
    after = 0

    def open(self, session: Any) -> None:
        self._fail("open")

    def close(self, session: Any) -> None:
        self._fail("close")

    def scores(self, cls: Any, columns: Any) -> Any:
        self._fail("scores")
        return None

    def rejections(self, profile: Any) -> Any:
        self._fail("rejections")
        return ()

    def limit_stamp(self, queue: Any) -> object:
        self._fail("limit_stamp")
        return None

    def placed(self, job: Any, cls: Any, count: int) -> None:
        self._fail("placed")

    def _fail(self, hook: str) -> None:
        if hook == Fails.hook:
            if Fails.after == 0:
                raise ZeroDivisionError("oh")
            Fails.after -= 1


@pytest.mark.parametrize("hook", ["open", "close", "limit_stamp"])
def test_a_cycle_that_a_plugin_spoils_decides_nothing_and_is_tried_again_later(hook: str):
    made = cluster(Fails)
    made.gang("a", 3)
    made.gang("large", 20)
    Fails.hook, Fails.after = hook, 0
    made.scheduler._state.settle()
    before = picture(made)
    result = made.cycle()
    assert (list(result.binds), list(result.evictions), list(result.podgroup_updates)) == ([], [], [])
    assert [(f.name, f.gang) for f in result.failures] == [("mine", "")]
    assert same(before, picture(made))
    assert not made.scheduler.dirty
    assert result.requeue_at == made.now + timedelta(seconds=1)
    assert made.cycle().requeue_at == made.now + timedelta(seconds=2), "twice as long the second time"
    Fails.hook = ""
    assert {bind.name for bind in made.cycle().binds} == {"a-worker-0", "a-worker-1", "a-worker-2"}


@pytest.mark.parametrize("after", range(4))
@pytest.mark.parametrize("hook", ["scores", "rejections", "placed"])
def test_what_was_placed_before_it_failed_is_taken_back_exactly(hook: str, after: int):
    made = cluster(Fails)
    for name in ("a", "b", "c", "d", "e"):
        made.gang(name, 1, cpu="1" if name < "c" else "2", pod={"nodeSelector": {}} if name < "b" else {})
    made.scheduler._state.settle()
    Fails.hook, Fails.after = hook, after
    result = made.cycle()
    Fails.hook = ""
    held = {f"{bind.namespace}/{bind.name}" for bind in result.binds}
    tasks = made.scheduler._state.tasks.values()
    assert {f"{task.namespace}/{task.name}" for task in tasks if task.node} == held
    state = made.scheduler._state
    column = state.dims.column("cpu")
    assert state.nodes.used[column, 0] == sum(t.cls.request[column] for t in tasks if t.node)


class Walk:
    """An action that raises after allocate has decided."""

    arguments = NO_ARGUMENTS

    def execute(self, cycle: Any) -> None:
        raise RuntimeError("lost")


def test_an_action_that_raises_takes_back_what_others_decided():
    made = cluster(Plugin, actions={"walk": Walk()})
    made.gang("a", 3)
    made.scheduler._state.settle()
    before = picture(made)
    result = made.cycle()
    assert list(result.binds) == []
    assert [(f.name, f.hook, f.error) for f in result.failures] == [("walk", "execute", "RuntimeError: lost")]
    assert same(before, picture(made))
    assert made.scheduler.phase("ns", "a") == "Inqueue"


def test_our_own_errors_are_not_blamed_on_anybody(monkeypatch: pytest.MonkeyPatch):
    made = cluster(Plugin)
    monkeypatch.setattr("vcbatch.scheduler.actions.allocate.Allocate.execute", Walk.execute)
    with pytest.raises(RuntimeError, match="lost"):
        made.cycle()


class Twice:
    """An action of the user's own that has allocate's work done."""

    arguments = NO_ARGUMENTS

    def execute(self, cycle: Any) -> None:
        Allocate().execute(cycle)


def test_of_an_action_and_a_plugin_that_it_has_asked_the_plugin_is_blamed():
    made = cluster(KeyOfBad, actions={"twice": Twice()})
    made.scheduler.set_policy(
        parse_policy(
            "actions: twice\ntiers: [{plugins: [{name: gang}, {name: mine}, {name: predicates}]}]",
            extensions=Extensions(plugins={"mine": KeyOfBad}, actions={"twice": Twice()}),
        )
    )
    made.gang("bad", 1)
    made.gang("good", 1)
    result = made.cycle()
    assert [(f.name, f.hook, f.gang) for f in result.failures] == [("mine", "job_key", "ns/bad")]
    assert [bind.name for bind in result.binds] == ["good-worker-0"]
