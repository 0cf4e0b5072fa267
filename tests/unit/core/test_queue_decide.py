"""Queues: states, counts, and those that must exist."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.job_world import START
from vcbatch.api.job import Action
from vcbatch.api.queue import Queue, QueueState
from vcbatch.core.queue import QueueView, bootstrap, decide
from vcbatch.core.queue.states import TABLE, rule_of

Json = dict[str, Any]

NEXT = {
    ("", Action.SYNC_QUEUE): ("Open", "Open"),
    ("", Action.CLOSE_QUEUE): ("Closed", "Closing"),
    ("Open", Action.SYNC_QUEUE): ("Open", "Open"),
    ("Open", Action.OPEN_QUEUE): ("Open", "Open"),
    ("Open", Action.CLOSE_QUEUE): ("Closed", "Closing"),
    ("Closing", Action.SYNC_QUEUE): ("Closed", "Closing"),
    ("Closing", Action.CLOSE_QUEUE): ("Closed", "Closing"),
    ("Closing", Action.OPEN_QUEUE): ("Open", "Open"),
    ("Closed", Action.SYNC_QUEUE): ("Closed", "Closed"),
    ("Closed", Action.CLOSE_QUEUE): ("Closed", "Closed"),
    ("Closed", Action.OPEN_QUEUE): ("Open", "Open"),
    ("Unknown", Action.SYNC_QUEUE): ("Unknown", "Unknown"),
    ("Unknown", Action.CLOSE_QUEUE): ("Closed", "Closing"),
    ("Unknown", Action.OPEN_QUEUE): ("Open", "Open"),
    ("Sideways", Action.SYNC_QUEUE): ("Unknown", "Unknown"),
}
"""(state, action): the next state of an empty queue and of one with jobs."""


@pytest.mark.parametrize(("state", "action"), NEXT)
def test_the_table(state: str, action: Action) -> None:
    rule = rule_of(state, action)
    assert (rule.decide(True), rule.decide(False)) == NEXT[state, action]
    assert {rule.decide(True), rule.decide(False)} <= set(rule.reaches)


def test_the_table_has_every_state() -> None:
    assert TABLE.keys() == set(QueueState)
    assert all(Action.SYNC_QUEUE in row for row in TABLE.values())


def _queue(status: Json | None = None, *, name: str = "q", parent: str = "root") -> Queue:
    body: Json = {"metadata": {"name": name, "uid": "u", "resourceVersion": "7"}, "spec": {"parent": parent}}
    if status is not None:
        body["status"] = status
    return Queue.parse(body)


def _status(queue: Queue, **pod_groups: int) -> Json | None:
    decision = decide(QueueView(queue=queue, pod_groups={"": 0, **pod_groups}), now=START)
    return decision.status.status if decision.status else None


def test_a_new_queue_opens() -> None:
    assert _status(_queue()) == {"state": "Open"}


def test_counts_are_written_when_they_change() -> None:
    counts = {"Pending": 1, "Running": 2, "Inqueue": 3, "Unknown": 4, "Completed": 5}
    written = _status(_queue({"state": "Open"}), **counts)
    assert written == {"state": "Open", "pending": 1, "running": 2, "inqueue": 3, "unknown": 4, "completed": 5}
    assert _status(_queue(written), **counts) is None
    emptied = _status(_queue(written))
    assert emptied is not None
    assert (emptied["state"], emptied["running"]) == ("Open", 0)
    assert _status(_queue(emptied)) is None


def test_what_others_write_is_kept() -> None:
    allocated = {"cpu": "1"}
    written = _status(_queue({"state": "Open", "allocated": allocated, "reservation": {}}), Running=1)
    assert written == {"state": "Open", "allocated": allocated, "reservation": {}, "running": 1}


def test_a_closing_queue_closes_when_only_completed_groups_are_left() -> None:
    assert _status(_queue({"state": "Closing", "running": 1}), Running=1) is None
    closed = _status(_queue({"state": "Closing"}), Completed=1)
    assert closed == {"state": "Closed", "completed": 1}


def test_a_queue_hangs_below_root() -> None:
    (mark,) = decide(QueueView(queue=_queue({"state": "Open"}, parent="")), now=START).marks
    assert mark.patch == {"spec": {"parent": "root"}}
    assert not decide(QueueView(queue=_queue({"state": "Open"}, name="root", parent="")), now=START).marks


def test_root_and_default_are_made_where_missing() -> None:
    made = {create.body["metadata"]["name"]: create.body["spec"] for create in bootstrap(()).creates}
    assert made == {
        "root": {"weight": 1, "reclaimable": False},
        "default": {"weight": 1, "reclaimable": True, "parent": "root"},
    }
    assert [create.body["metadata"]["name"] for create in bootstrap({"default"}).creates] == ["root"]
    assert not bootstrap({"default", "root", "other"}).creates
