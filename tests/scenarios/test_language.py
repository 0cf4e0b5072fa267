"""The scenarios' own language: what it finds, what it refuses, and what its report says."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from tests.scenarios.backends import in_turn, missing
from tests.scenarios.conditions import Condition, ScenarioFailed, dig
from tests.scenarios.deeds import node
from tests.scenarios.history import History, Observer
from tests.scenarios.player import Capability, Scenario, play, scenarios
from tests.scenarios.report import PURE, collect, load, report, save, table
from tests.scenarios.report import Outcome as Result
from tests.scenarios.simulated import simulated
from tests.support import virtual_time
from vcbatch.api.resources import PODS, Resource
from vcbatch.interfaces.api import Listing

OBJECT = {
    "metadata": {"name": "x", "labels": {"volcano.sh/job": "a"}},
    "status": {"conditions": [{"type": "A", "status": "1"}, {"type": "B", "status": "2"}]},
}


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("metadata.name", "x"),
        ("metadata.labels[volcano.sh/job]", "a"),
        (r"metadata.labels.volcano\.sh/job", "a"),
        ("status.conditions[1].type", "B"),
        ("status.conditions[-1].type", "B"),
        ("status.conditions[9].type", None),
        ("status.conditions[type=A].status", "1"),
        ("status.conditions[type=C].status", None),
        ("status.conditions[*].status", ["1", "2"]),
        ("nothing.here", None),
    ],
)
def test_paths(path: str, want: object) -> None:
    assert dig(OBJECT, path) == want


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"count": 2}, True),
        ({"count": 1}, False),
        ({"at_least": 3}, False),
        ({"at_most": 2}, True),
        ({"names": ["b", "a"]}, True),
        ({"names": ["a"]}, False),
        ({"where": {"n": 1}, "names": ["a"]}, True),
        ({"where": {"n": [1, 2]}, "count": 2}, True),
        ({"each": {"n": [1, 2]}}, True),
        ({"each": {"n": 1}}, False),
        ({"where": {"n": 7}, "each": {"n": 7}}, False),
        ({"differ": "n"}, True),
        ({"differ": "same"}, False),
    ],
)
def test_checks_of_lists(condition: dict[str, Any], holds: bool) -> None:
    pods = [{"metadata": {"name": name}, "n": number, "same": 0} for name, number in (("a", 1), ("b", 2))]
    wanted = Condition({"get": "pods", **condition})
    assert (wanted.unmet(wanted.select(pods)) == "") is holds


def _play(*steps: dict[str, Any], never: tuple[dict[str, Any], ...] = ()) -> None:
    async def run() -> None:
        async with simulated(namespace="s") as world, Observer(world.api) as observer:
            world.history = observer.history("s")
            await play(Scenario(name="s", steps=steps, never=never), world)

    virtual_time.run(run())


SHORT = {"job": {"name": "a", "minAvailable": 1, "tasks": {"w": {"run": "sleep 1"}}}}
QUEUE = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}}
DONE = {"until": {"get": "job/a", "path": "status.state.phase", "is": "Completed"}}


def test_what_is_over_was_seen() -> None:
    _play(
        SHORT, DONE, {"saw": {"get": "pods/a-w-0", "path": "status.phase", "is": ["Pending", "Running", "Succeeded"]}}
    )


def test_how_often_something_changed_is_counted() -> None:
    phases = {"get": "pods/a-w-0", "path": "status.phase"}
    _play(SHORT, DONE, {"saw": {**phases, "at_most": 3}})
    with pytest.raises(ScenarioFailed, match="Succeeded"):
        _play(SHORT, DONE, {"saw": {**phases, "at_most": 2}})
    with pytest.raises(ScenarioFailed, match="had the values"):
        _play(SHORT, DONE, {"saw": {"get": "pods/none", "path": "status.phase", "at_most": 2}})


def test_a_policy_is_for_a_cluster_of_its_own() -> None:
    assert Scenario(name="s", steps=[], policy="actions: allocate").alone
    mixed = [Scenario(name=name, steps=[], policy=policy) for name, policy in (("a", "y"), ("b", ""), ("c", "y"))]
    assert [each.name for each in in_turn(mixed)] == ["b", "a", "c"]


def test_what_must_never_be_is_found_when_it_is_over() -> None:
    with pytest.raises(ScenarioFailed, match="what must never be happened"):
        _play(SHORT, DONE, never=({"get": "pods", "where": {"status.phase": "Running"}, "at_least": 1},))


def test_what_happened_while_nobody_watched_is_told_in_its_order() -> None:
    """One pod ended and another took its place: never two at once, though the list has the second one first."""

    def pod(name: str, phase: str, version: int) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "s", "uid": name, "resourceVersion": str(version)}
        return {"metadata": metadata, "status": {"phase": phase}}

    class Interrupted:
        listings = ([pod("b", "Running", 1)], [pod("a", "Running", 9), pod("b", "Succeeded", 8)])

        async def list(self, resource: Resource) -> Listing[Any]:
            found = self.listings[0] if resource == PODS else []
            return Listing(items=found, resource_version="9")

        async def watch(self, resource: Resource, **_: Any) -> AsyncIterator[Any]:
            if resource != PODS or self.listings[1:] == ():
                await asyncio.Event().wait()
            self.listings = self.listings[1:]
            return
            yield

    async def run() -> None:
        async with Observer(Interrupted()) as observer:  # type: ignore[arg-type]
            history = observer.history("s")
            history.forbid([{"get": "pods", "where": {"status.phase": "Running"}, "at_least": 2}])
            await asyncio.sleep(5)
            assert (history.current(PODS) or {}).keys() == {"a", "b"}
            history.check()

    virtual_time.run(run())


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ({"explode": "pods/a"}, "no such step"),
        ({"delete": "ponds/a"}, "no such kind"),
        ({"saw": {"get": "pods/a", "path": "status.phase"}}, "and one of"),
        ({"delete": "pods/a", "twice": True}, "no such step"),
        ({"event": {"on": "Job/a", "resaon": "X"}}, "resaon"),
        (
            {"apply": [{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}}]},
            "s-q",
        ),
        ({"refused": {"job": SHORT["job"], "with": "anything"}}, "should have been refused"),
        ({"until": {"get": "pods/a", "path": "status.phase", "is": "Running"}, "timeout": 1}, "not within 1 s"),
    ],
)
def test_what_makes_no_sense_is_refused(step: dict[str, Any], why: str) -> None:
    with pytest.raises(ScenarioFailed, match=why):
        _play(step)


class _Spoiling:
    """An API that keeps what it is handed and writes into it."""

    async def create(self, _: Resource, body: dict[str, Any], **__: Any) -> None:
        body["metadata"]["name"] = "spoiled"
        body["metadata"].setdefault("labels", {})["spoiled"] = "true"

    async def list(self, _: Resource, **__: Any) -> Listing:
        return Listing(items=[], resource_version="1")


def test_a_scenario_is_the_same_after_it_was_played() -> None:
    steps = [{"apply": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}}]}]
    scenario, before = Scenario(name="s", steps=steps), copy.deepcopy(steps)
    world: Any = SimpleNamespace(api=_Spoiling(), namespace="s", history=History("s"))
    asyncio.run(play(scenario, world))
    short = {"name": "n", "labels": {}, "taints": [{"key": "a", "effect": "NoSchedule"}]}
    node(short, datetime.now(UTC))["spec"]["taints"][0]["key"] = "spoiled"
    assert (scenario.steps, short["taints"]) == (before, [{"key": "a", "effect": "NoSchedule"}])


def test_what_a_backend_lacks_is_said() -> None:
    jumps = Scenario(name="s", steps=[{"clock": 5}])
    assert missing(jumps, {Capability.CLOCK: "no such clock"}) == "no such clock"
    assert missing(Scenario(name="s", steps=[{"sleep": 5}]), {Capability.CLOCK: "no such clock"}) == ""


def test_a_report_is_of_the_scenario_as_it_is(tmp_path: Any) -> None:
    first, second, third = scenarios()[:3]
    reported: list[tuple[str, object]] = []
    for scenario, outcome in ((first, Result()), (second, Result(failure="broke")), (third, Result(lacks="no clock"))):
        report(lambda name, value: reported.append((name, value)), PURE, scenario, outcome)
    entries = collect(reported)
    save([{**entries[0], "digest": "of another text"}, *entries[1:]], tmp_path)
    lines = {line.split()[0]: line.split()[1:] for line in table(load(tmp_path)) if line}
    assert (lines[first.title], lines[second.title], lines[third.title]) == ([], ["FAIL"], ["-"])
    assert "pure: broke" in table(load(tmp_path))


def test_a_report_tells_what_needed_a_second_time(tmp_path: Any) -> None:
    scenario = scenarios()[0]
    reported: list[tuple[str, object]] = []
    report(lambda name, value: reported.append((name, value)), PURE, scenario, Result(first_failure="too late"))
    save(collect(reported), tmp_path)
    lines = table(load(tmp_path))
    assert [line.split()[1] for line in lines if line.startswith(f"{scenario.title} ")] == ["pass"]
    assert "pure, passed the second time: too late" in lines
