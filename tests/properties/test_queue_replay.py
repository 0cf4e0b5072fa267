"""Queues, whenever the controllers die and however late they hear of things: state, counts and place in the tree."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from tests.support.examples import examples
from tests.support.job_lives import ask
from tests.support.lives import Stage, assert_alike, assert_deaths_change_nothing, misfortunes, report
from vcbatch.api.names import CLOSED_BY_PARENT
from vcbatch.api.resources import COMMANDS, PODGROUPS, QUEUES


def _queue(stage: Stage, name: str, parent: str = "") -> None:
    stage.put(QUEUES, name, spec={"weight": 1, **({"parent": parent} if parent else {})})


def _gang(stage: Stage, name: str, queue: str, phase: str) -> None:
    stage.put(PODGROUPS, name, spec={"queue": queue, "minMember": 1}, status={"phase": phase})


def _states(stage: Stage) -> dict[str, str]:
    return {name: stage.get(QUEUES, name)["status"]["state"] for name in ("a", "b", "c")}


async def _close_and_open(stage: Stage) -> None:
    """`a` without a parent, `b` and `c` below it; `c` closes on its own."""
    _queue(stage, "a")
    _queue(stage, "b", "a")
    _queue(stage, "c", "a")
    await stage.rest()
    assert stage.get(QUEUES, "a")["spec"]["parent"] == "root"
    assert _states(stage) == {"a": "Open", "b": "Open", "c": "Open"}
    for name, phase in (("g", "Running"), ("h", "Pending"), ("i", "Completed")):
        _gang(stage, name, "b", phase)
    ask(stage, QUEUES, "c", "CloseQueue")
    await stage.rest()
    assert {key: stage.get(QUEUES, "b")["status"][key] for key in ("running", "pending", "completed")} == {
        "running": 1,
        "pending": 1,
        "completed": 1,
    }
    ask(stage, QUEUES, "a", "CloseQueue")
    await stage.rest()
    assert _states(stage) == {"a": "Closed", "b": "Closing", "c": "Closed"}
    for name in ("g", "h"):
        stage.remove(PODGROUPS, name)
    await stage.rest()
    assert _states(stage)["b"] == "Closed"
    ask(stage, QUEUES, "b", "OpenQueue")  # refused: the queue above is closed
    ask(stage, QUEUES, "root", "CloseQueue")  # refused
    await stage.rest()
    ask(stage, QUEUES, "a", "OpenQueue")
    await stage.rest()
    assert _states(stage) == {"a": "Open", "b": "Open", "c": "Closed"}
    assert stage.get(QUEUES, "b")["metadata"]["annotations"] == {CLOSED_BY_PARENT: "false"}
    assert stage.names(COMMANDS) == []


def test_dying_at_any_write_changes_nothing() -> None:
    assert_deaths_change_nothing(_close_and_open, least=18)


def test_neither_does_late_news_and_dying_often() -> None:
    whole = report(_close_and_open)

    @settings(max_examples=examples(20))
    @given(misfortunes(QUEUES, COMMANDS, PODGROUPS))
    def check(misfortune: Any) -> None:
        assert_alike(report(_close_and_open, **misfortune), whole, str(misfortune))

    check()
