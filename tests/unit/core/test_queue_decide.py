"""Queues: states, counts, and those that must exist."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.job_world import START
from vcbatch.api.command import Command
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


def test_a_queue_opens_though_its_parent_is_missing() -> None:
    view = QueueView(queue=_queue(parent="nobody"), parent=None)
    decision = decide(view, now=START)
    assert decision.status is not None
    assert (decision.status.status, list(decision.marks)) == ({"state": "Open"}, [])


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


@pytest.mark.parametrize("unfinished", [{"jobs": 1}, {"workloads": 1}], ids=["a job", "a workload"])
@pytest.mark.parametrize(("state", "action"), [("Open", "CloseQueue"), ("Closing", "")])
def test_unfinished_work_without_a_pod_group_keeps_a_queue_closing(unfinished: Json, state: str, action: str) -> None:
    target = {"kind": "Queue", "name": "q", "uid": "u"}
    commands = [Command.parse({"metadata": {"name": "c"}, "action": action, "target": target})] if action else []
    view = QueueView(queue=_queue({"state": state}), pod_groups={"Completed": 1}, commands=commands, **unfinished)
    decision = decide(view, now=START)
    assert decision.status is not None
    assert decision.status.status == {"state": "Closing", "completed": 1}
    over = decide(QueueView(queue=_queue({"state": "Closing"}), pod_groups={}), now=START)
    assert over.status is not None
    assert over.status.status == {"state": "Closed"}


def test_a_queue_hangs_below_root() -> None:
    (mark,) = decide(QueueView(queue=_queue({"state": "Open"}, parent="")), now=START).marks
    assert mark.patch == {"spec": {"parent": "root"}}
    assert not decide(QueueView(queue=_queue({"state": "Open"}, name="root", parent="")), now=START).marks


# Commands and the tree -----------------------------------------------------------------------------------------------


class _Tree:
    """Queues that are looked at until they come to rest, one write at a time if `mortal`."""

    def __init__(self, parents: dict[str, str], *, mortal: bool = False) -> None:
        self.queues: dict[str, Json] = {}
        for name, parent in {"root": "", **parents}.items():
            self.queues[name] = {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": {"parent": parent}}
        self.pod_groups: dict[str, dict[str, int]] = {}
        self.commands: list[Json] = []
        self.events: list[str] = []
        self._mortal = mortal
        self.settle()

    def command(self, action: str, name: str, *, uid: str | None = None) -> None:
        target = {"kind": "Queue", "name": name, "uid": f"uid-{name}" if uid is None else uid}
        self.commands.append({"metadata": {"name": f"c{len(self.events)}"}, "action": action, "target": target})
        self.settle()

    def settle(self) -> None:
        for _ in range(30):
            if sum(self._reconcile(name) for name in self.queues) == 0:
                assert not self.commands
                return
        raise AssertionError("doesn't come to rest")

    def states(self) -> dict[str, str]:
        return {name: queue["status"]["state"] for name, queue in self.queues.items()}

    def _reconcile(self, name: str) -> int:
        stored = self.queues[name]
        parent = self.queues.get(stored["spec"]["parent"])
        view = QueueView(
            queue=Queue.parse(stored),
            parent=Queue.parse(parent) if parent else None,
            pod_groups=self.pod_groups.get(name, {}),
            commands=[Command.parse(command) for command in self.commands if command["target"]["name"] == name],
        )
        decision = decide(view, now=START)
        writes = 0
        if decision.status:
            stored["status"] = decision.status.status
            writes += 1
        for mark in decision.marks:
            if not (self._mortal and writes):
                stored["metadata"].setdefault("annotations", {}).update(mark.patch["metadata"]["annotations"])
                writes += 1
        for delete in decision.deletes:
            if not (self._mortal and writes):
                self.commands = [item for item in self.commands if item["metadata"]["name"] != delete.ref.name]
                writes += 1
        self.events.extend(f"{event.reason} {event.message}" for event in decision.events)
        return writes


TREE = {"p": "root", "c1": "p", "c2": "p", "g": "c1"}


@pytest.mark.parametrize("mortal", [False, True], ids=["", "dying after every write"])
def test_queues_close_and_open_with_their_parent(mortal: bool) -> None:
    tree = _Tree(TREE, mortal=mortal)
    assert set(tree.states().values()) == {"Open"}
    tree.command("CloseQueue", "c2")
    tree.command("CloseQueue", "p")
    assert tree.states() == {"root": "Open", "p": "Closed", "c1": "Closed", "c2": "Closed", "g": "Closed"}
    tree.command("OpenQueue", "p")
    assert tree.states() == {"root": "Open", "p": "Open", "c1": "Open", "c2": "Closed", "g": "Open"}
    assert tree.events == [
        "CloseQueue queue c2 is Closed, as a Command asked for",
        "CloseQueue queue p is Closed, as a Command asked for",
        "CloseQueue queue c1 is Closed, since its parent p is Closed",
        "CloseQueue queue g is Closed, since its parent c1 is Closed",
        "OpenQueue queue p is Open, as a Command asked for",
        "OpenQueue queue c1 is Open, since its parent p is Open",
        "OpenQueue queue g is Open, since its parent c1 is Open",
    ]
    tree.command("OpenQueue", "c2")
    assert set(tree.states().values()) == {"Open"}


@pytest.mark.parametrize("mortal", [False, True], ids=["", "dying after every write"])
def test_what_a_person_closed_after_its_parent_went_stays_closed_when_that_is_back(mortal: bool) -> None:
    tree = _Tree({"p": "root", "c": "p"}, mortal=mortal)
    tree.command("CloseQueue", "p")
    gone = tree.queues.pop("p")
    tree.command("OpenQueue", "c")
    tree.command("CloseQueue", "c")
    tree.queues["p"] = {**gone, "status": {}}
    tree.settle()
    assert tree.states() == {"root": "Open", "p": "Open", "c": "Closed"}


def test_a_command_to_close_a_queue_that_has_just_opened_with_its_parent_is_a_persons() -> None:
    tree = _Tree({"p": "root", "c": "p"})
    tree.queues["c"]["metadata"]["annotations"] = {"volcano.sh/closed-by-parent": "true"}
    tree.command("CloseQueue", "c")
    assert tree.states()["c"] == "Closed"
    assert tree.queues["c"]["metadata"]["annotations"] == {"volcano.sh/closed-by-parent": "false"}


def test_a_queue_with_jobs_is_closing_until_they_are_gone() -> None:
    tree = _Tree({"q": "root"})
    tree.pod_groups["q"] = {"Running": 1}
    tree.command("CloseQueue", "q")
    assert tree.states()["q"] == "Closing"
    tree.pod_groups["q"] = {}
    tree.settle()
    assert tree.states()["q"] == "Closed"
    assert [event.partition(" ")[0] for event in tree.events] == ["CloseQueue"]


def test_what_a_queue_is_already_is_no_news() -> None:
    tree = _Tree({"q": "root"})
    tree.command("CloseQueue", "q")
    tree.command("CloseQueue", "q")
    tree.command("OpenQueue", "q")
    tree.command("OpenQueue", "q")
    assert [event.partition(" ")[0] for event in tree.events] == ["CloseQueue", "OpenQueue"]


@pytest.mark.parametrize(
    ("action", "name", "uid"),
    [
        ("CloseQueue", "root", None),
        ("OpenQueue", "c1", None),
        ("AbortJob", "c1", None),
        ("OpenQueue", "p", "older"),
        ("OpenQueue", "p", ""),
    ],
)
def test_commands_to_queues_that_are_refused(action: str, name: str, uid: str | None) -> None:
    tree = _Tree(TREE)
    tree.command("CloseQueue", "p")
    before = tree.states()
    tree.command(action, name, uid=uid)
    assert tree.states() == before
    assert tree.events[-1].startswith("CommandRejected ")


def test_root_and_default_are_made_where_missing() -> None:
    made = {create.body["metadata"]["name"]: create.body["spec"] for create in bootstrap(()).creates}
    assert made == {
        "root": {"weight": 1, "reclaimable": False},
        "default": {"weight": 1, "reclaimable": True, "parent": "root"},
    }
    assert [create.body["metadata"]["name"] for create in bootstrap({"default"}).creates] == ["root"]
    assert not bootstrap({"default", "root", "other"}).creates
