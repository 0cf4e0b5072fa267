"""Queues in a tree against an adversary: Commands, gangs that come and go, queues that are deleted and made again, and
a controller that dies between any two writes. An oracle knows which queues people closed, and the tree. At rest:

* a queue is shut when somebody closed it, or a queue above it that was there; what was closed with its parent opens
  with it, and what a person closed stays so,
* it is Closed when no unfinished job, no pod on a node and nothing but Completed gangs is in it, else Closing,
* a Command is gone, whether or not it could be done,
* the counts are those of its gangs, and looking again writes nothing.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.examples import examples
from tests.support.job_world import START
from vcbatch.api import names
from vcbatch.api.command import Command
from vcbatch.api.queue import Queue
from vcbatch.core.machine import Mark
from vcbatch.core.queue import QueueView, decide

Json = dict[str, Any]

NAMES = ("a", "b", "c", "d", "e")
PHASES = ("", "Pending", "Inqueue", "Running", "Unknown", "Completed")


class _Oracle:
    """What people asked for: `shut` by hand ("hand"), with the parent ("parent"), or not at all ("")."""

    def __init__(self) -> None:
        self.parents: dict[str, str] = {"root": ""}
        self.shut: dict[str, str] = {"root": ""}

    def make(self, name: str, parent: str) -> None:
        self.parents[name], self.shut[name] = parent, ""
        self._follow(name)
        self._spread(name)

    def remove(self, name: str) -> None:
        del self.parents[name], self.shut[name]

    def close(self, name: str) -> None:
        if name != "root" and not self.shut[name]:
            self.shut[name] = "hand"
            self._spread(name)

    def open(self, name: str) -> None:
        if not self.shut.get(self.parents[name]):
            self.shut[name] = ""
            self._spread(name)

    def _spread(self, above: str) -> None:
        for name in [name for name, parent in self.parents.items() if parent == above]:
            if self._follow(name):
                self._spread(name)

    def _follow(self, name: str) -> bool:
        above = self.shut.get(self.parents[name])
        if above and not self.shut[name]:
            self.shut[name] = "parent"
        elif above == "" and self.shut[name] == "parent":
            self.shut[name] = ""
        else:
            return False
        return True


class QueueMachine(RuleBasedStateMachine):
    @initialize(parents=st.lists(st.integers(0, 10), min_size=len(NAMES), max_size=len(NAMES)))
    def begin(self, parents: list[int]) -> None:
        self.oracle = _Oracle()
        self.queues: dict[str, Json] = {}
        self.gangs: dict[str, dict[str, int]] = {}
        self.jobs: dict[str, int] = {}
        self.pods: dict[str, int] = {}
        self.commands: dict[str, Json] = {}
        self.number = 0
        self._store("root", "")
        for place, name in enumerate(NAMES):
            self._make(name, ("root", *NAMES[:place])[parents[place] % (place + 1)])
        self._settle([])

    # What happens

    @rule(name=st.sampled_from(("root", *NAMES)), action=st.sampled_from(["OpenQueue", "CloseQueue"]),
          deaths=st.lists(st.integers(0, 2), max_size=6))  # fmt: skip
    def somebody_asks(self, name: str, action: str, deaths: list[int]) -> None:
        if name not in self.queues:
            return
        self._command(name, action)
        self.oracle.close(name) if action == "CloseQueue" else self.oracle.open(name)
        self._settle(deaths)

    @rule(name=st.sampled_from(NAMES), actions=st.lists(st.sampled_from(["OpenQueue", "CloseQueue"]), min_size=2,
          max_size=3), deaths=st.lists(st.integers(0, 2), max_size=6))  # fmt: skip
    def somebody_can_t_decide(self, name: str, actions: list[str], deaths: list[int]) -> None:
        """Several at once: each is done, the oldest first, while the queue above stays as it is."""
        if name not in self.queues:
            return
        for action in actions:
            self._command(name, action)
            self.oracle.close(name) if action == "CloseQueue" else self.oracle.open(name)
        self._settle(deaths)

    @rule(name=st.sampled_from(NAMES), phase=st.sampled_from(PHASES), many=st.integers(0, 3))
    def gangs_come_and_go(self, name: str, phase: str, many: int) -> None:
        """None comes to a Closed queue: admission sees to that."""
        if phase != "Completed" and self.queues.get(name, {}).get("status", {}).get("state") == "Closed":
            return
        self.gangs.setdefault(name, {})[phase] = many
        self._settle([])

    @rule(name=st.sampled_from(NAMES), many=st.integers(0, 2))
    def jobs_come_and_go(self, name: str, many: int) -> None:
        """With and without PodGroups. None comes to a Closed queue: admission sees to that."""
        if many and self.queues.get(name, {}).get("status", {}).get("state") == "Closed":
            return
        self.jobs[name] = many
        self._settle([])

    @rule(name=st.sampled_from(NAMES), many=st.integers(0, 2))
    def pods_hold_nodes(self, name: str, many: int) -> None:
        """Also those of jobs that are gone. None is bound in a Closed queue: nothing is left in it that makes pods."""
        if many and self.queues.get(name, {}).get("status", {}).get("state") == "Closed":
            return
        self.pods[name] = many
        self._settle([])

    @rule(name=st.sampled_from(NAMES))
    def a_queue_is_deleted(self, name: str) -> None:
        """In any order: those below it stay as they are, without a parent."""
        if self.queues.pop(name, None) is not None:
            self.oracle.remove(name)
            self._settle([])

    @precondition(lambda self: len(self.queues) <= len(NAMES))
    @rule(data=st.data(), deaths=st.lists(st.integers(0, 2), max_size=6))
    def a_queue_is_made(self, data: st.DataObject, deaths: list[int]) -> None:
        """Below any that isn't below it."""
        name = data.draw(st.sampled_from([name for name in NAMES if name not in self.queues]))
        self._make(name, data.draw(st.sampled_from([each for each in self.queues if not self._below(each, name)])))
        self._settle(deaths)

    # What holds

    @invariant()
    def people_get_what_they_asked_for(self) -> None:
        for name, stored in self.queues.items():
            gangs = {phase: many for phase, many in self.gangs.get(name, {}).items() if many}
            empty = not gangs.keys() - {"Completed"} and not self.jobs.get(name) and not self.pods.get(name)
            wanted = ("Closed" if empty else "Closing") if self.oracle.shut[name] else "Open"
            assert stored["status"]["state"] == wanted, f"{name}, shut by {self.oracle.shut[name] or 'nobody'}"
            counts = {"pending": gangs.get("Pending", 0) + gangs.get("", 0)}
            counts |= {phase.lower(): gangs.get(phase, 0) for phase in PHASES[2:]}
            assert {key: stored["status"].get(key, 0) for key in counts} == counts
            assert stored["status"]["allocated"] == {"cpu": "1"}, "the scheduler's"

    @invariant()
    def what_closed_with_its_parent_says_so(self) -> None:
        for name, why in self.oracle.shut.items():
            marked = self.queues[name]["metadata"]["annotations"].get(names.CLOSED_BY_PARENT) == "true"
            if why:
                assert marked == (why == "parent"), name

    # The controller

    def _settle(self, deaths: list[int]) -> None:
        """Look at every queue until nothing is written; each of `deaths` is how many writes one look gets to do."""
        dying = list(deaths)
        for _ in range(60):
            written = [self._reconcile(name, dying.pop(0) if dying else None) for name in list(self.queues)]
            if not any(written):
                assert not self.commands.keys() & {key for key in self.commands if self._is_for_one(key)}
                return
        raise AssertionError("it doesn't come to rest")

    def _is_for_one(self, key: str) -> bool:
        return self.commands[key]["target"]["name"] in self.queues

    def _reconcile(self, name: str, most: int | None) -> bool:
        """Whether anything was to be written: the status first, then marks, then Commands are taken away."""
        stored = self.queues[name]
        parent = self.queues.get(stored["spec"]["parent"])
        view = QueueView(
            queue=Queue.parse(stored),
            parent=Queue.parse(parent) if parent else None,
            pod_groups={phase: many for phase, many in self.gangs.get(name, {}).items() if many},
            jobs=self.jobs.get(name, 0),
            pods=self.pods.get(name, 0),
            commands=[Command.parse(each) for each in self.commands.values() if each["target"]["name"] == name],
        )
        decision = decide(view, now=START)
        writes: list[Json | Mark | str] = [decision.status.status] if decision.status else []
        writes += [*decision.marks, *(delete.ref.name for delete in decision.deletes)]
        for write in writes[:most]:
            if isinstance(write, Mark):
                stored["metadata"]["annotations"].update(write.patch["metadata"]["annotations"])
            elif isinstance(write, str):
                del self.commands[write]
            else:
                assert write != stored["status"], "nothing changed"
                stored["status"] = write
        return bool(writes) or decision.requeue_at is not None

    # The world

    def _make(self, name: str, parent: str) -> None:
        self._store(name, parent)
        self.oracle.make(name, parent)

    def _store(self, name: str, parent: str) -> None:
        self.number += 1
        metadata = {"name": name, "uid": f"{name}-{self.number}", "annotations": dict[str, str]()}
        self.queues[name] = {"metadata": metadata, "spec": {"parent": parent}, "status": {"allocated": {"cpu": "1"}}}

    def _command(self, name: str, action: str) -> None:
        self.number += 1
        key = f"command-{self.number:05d}"
        target = {"kind": "Queue", "name": name, "uid": self.queues[name]["metadata"]["uid"]}
        self.commands[key] = {"metadata": {"name": key}, "action": action, "target": target}

    def _below(self, name: str, above: str) -> bool:
        while name and name != above:
            name = self.queues[name]["spec"]["parent"] if name in self.queues else ""
        return name == above


QueueMachine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=25)
TestQueueMachine = QueueMachine.TestCase
