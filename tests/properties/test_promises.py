"""Promises on random clusters in which things take their time: victims end late and come back later, watches show it
later still, schedulers come and go, and so do nodes and gangs. Nothing is promised twice, everything is taken or given
up, and nobody's place goes to somebody else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.test_eviction_cycles import POLICY, SETTINGS, Play, World, worlds
from tests.support.examples import examples
from tests.unit.scheduler.slow_cluster import SlowCluster
from vcbatch.scheduler import CycleResult, Policy, parse_policy
from vcbatch.scheduler.model.objects import Job, Task, TaskStatus
from vcbatch.scheduler.reservations.promises import OVERDUE

Json = dict[str, Any]
MORE = settings(SETTINGS, max_examples=examples(40))
LONGEST = 4
"""Cycles that something takes at most."""
ACTIONS = [
    "allocate, preempt",
    "allocate, reclaim",
    "allocate, preempt, reclaim, backfill",
    "preempt, allocate",
    "allocate, gangpreempt",
    "gangreclaim, allocate, backfill",
    "allocate, gangpreempt, gangreclaim, backfill",
]


@st.composite
def policies(draw: st.DrawFn, *, queues: str | None = None) -> Policy:
    yes = st.sampled_from(["true", "false"])
    return parse_policy(
        POLICY.format(
            actions=draw(st.sampled_from(ACTIONS)),
            first="priority",
            second="gang",
            gang=draw(yes),
            drf=draw(yes),
            queues=queues or draw(st.sampled_from(["proportion", "capacity"])),
            minimize=draw(yes),
            prevent=draw(yes),
            dry=draw(yes),
        )
    )


class Late(Play, SlowCluster):
    """Evicted pods are shown to end, are gone and come back some cycles after each other; pods say what they are to
    some cycles later, and are seen as they were before now and then."""

    def __init__(self, world: World, policy: Policy, random: Random) -> None:
        self.random = random
        self.round = self._seen = 0
        self._due: list[tuple[int, Callable[[], None]]] = []
        self._written: list[tuple[int, Callable[[], None]]] = []
        """What the API server knows, and watches are yet to show."""
        self._world = world
        super().__init__(world, policy)

    def later(self, what: Callable[[], None]) -> None:
        self._due.append((self.round + self.random.randint(0, LONGEST), what))

    @property
    def quiet(self) -> bool:
        """Whether nothing is under way."""
        return not self._due and not self._written

    def step(self) -> CycleResult:
        """What is due happens, and a cycle is run and carried out."""
        self.round += 1
        due = [what for number, what in (*self._written, *self._due) if number <= self.round]
        self._written = [(number, what) for number, what in self._written if number > self.round]
        self._due = [(number, what) for number, what in self._due if number > self.round]
        for what in due:
            what()
        result = self.cycle()
        self.carry_out(result)
        return result

    def carry_out(self, result: CycleResult) -> None:
        for bind in result.binds:
            self.change(bind.name, phase="Running")
        for reported in result.pod_conditions:
            if self.random.random() < 0.3:
                self.change(reported.name)
        self._seen = max(self._seen, self.round + self.random.randint(0, LONGEST))
        if result.pod_conditions:
            self._written.append((self._seen, lambda: self.report(result)))
        for eviction in result.evictions:
            self._written.append((self._seen, lambda name=eviction.name, uid=eviction.uid: self._shown(name, uid)))

    def restart(self) -> None:
        """The next scheduler lists what there is."""
        written, self._written = self._written, []
        for _, what in written:
            what()
        super().restart()

    def report(self, result: CycleResult) -> None:
        """Where the pod is still the same."""
        for reported in result.pod_conditions:
            raw = self.pods.get(reported.name)
            if raw is not None and raw["metadata"]["uid"] == reported.uid and not raw["spec"].get("nodeName"):
                SlowCluster.report(self, CycleResult(pod_conditions=[reported]))

    def _shown(self, name: str, uid: str) -> None:
        if self._is(name, uid):
            self.change(name, deleting=True)
            self.later(lambda: self._gone(name, uid))

    def _gone(self, name: str, uid: str) -> None:
        if self._is(name, uid):
            raw = self.end(name)
            self.later(lambda: self._back(name, raw))

    def _back(self, name: str, raw: Json) -> None:
        if raw["metadata"]["labels"]["gang"] in self.groups and name not in self.pods:
            self.come_back(name, raw)

    def _is(self, name: str, uid: str) -> bool:
        return name in self.pods and self.pods[name]["metadata"]["uid"] == uid

    # What happens besides ---------------------------------------------------------------------------------------------

    def interfere(self) -> None:
        """Something that may take a promise its sense: of a node, of a gang or of its pods."""
        gangs = sorted({gang_of(task) for task in promises(self)}, key=lambda job: job.key)
        gang = self.random.choice(gangs).key.removeprefix("ns/") if gangs else ""
        what = self.random.choice(["nothing", "node", "shut", "gang", "pod", "more", "restart"])
        number = self.random.randrange(len(self._world.nodes))
        if what == "node":
            self.node(f"n{number}", event="DELETED", cpu=str(self._world.nodes[number]))
            self.later(lambda: self.node(f"n{number}", cpu=str(self._world.nodes[number])))
        elif what == "shut":
            self.node(f"n{number}", event="MODIFIED", cpu=str(self._world.nodes[number]), unschedulable=True)
            self.later(lambda: self.node(f"n{number}", event="MODIFIED", cpu=str(self._world.nodes[number])))
        elif what == "gang" and gang:
            self.delete_gang(gang)
        elif what == "pod" and gang:
            self._without_one(gang)
        elif what == "more" and gang:
            self.groups[gang]["spec"]["minMember"] += 1
            self.report_group(gang)
        elif what == "restart":
            self.restart()

    def _without_one(self, gang: str) -> None:
        """The gang is scaled down by a pod that it waits for."""
        waiting = [name for name, raw in self.pods.items() if raw["metadata"]["labels"]["gang"] == gang]
        name = self.random.choice([name for name in waiting if not self.pods[name]["spec"].get("nodeName")] or waiting)
        self.delete(name)
        spec = self.groups[gang]["spec"]
        spec["minMember"] = max(spec["minMember"] - 1, 0)
        self.report_group(gang)


def promises(play: Play) -> dict[Task, str]:
    """The nodes that are kept for pods."""
    tasks = play.state.tasks.values()
    return {task: task.nominated for task in tasks if task.status is TaskStatus.PENDING and task.nominated and task.job}


def gang_of(task: Task) -> Job:
    assert task.job is not None
    return task.job


def check_room(play: Play, result: CycleResult) -> None:
    """No node is promised more than it will have, in the cycle or from it on; no pod has two places."""
    nodes = play.state.nodes
    assert (nodes.used <= nodes.alloc).all()
    assert not nodes.pipelined.any()
    future = nodes.alloc - nodes.used + nodes.releasing
    row = {info.name: info.row for info in nodes.infos}
    held, kept = future.copy(), future.copy()
    for place in result.held:
        held[:, row[place.node]] -= play.state.tasks[place.uid].cls.request
    for task, node in promises(play).items():
        kept[:, row[node]] -= task.cls.request
    assert (held >= 0).all()
    assert (kept >= 0).all()
    assert len({place.uid for place in result.held} | {bind.uid for bind in result.binds}) == len(result.held) + len(
        result.binds
    )


def taken_over(play: Play, result: CycleResult, job: Job) -> bool:
    """Whether a gang of higher priority of its queue got anything in the cycle."""
    served = [play.state.tasks[place.uid].job for place in (*result.held, *result.binds)]
    return any(other.queue is job.queue and other.priority > job.priority for other in served)


@MORE
@given(worlds, policies(queues="capacity"), st.randoms(use_true_random=False), st.booleans())
def test_a_place_goes_to_whom_it_was_freed_for(world: World, policy: Policy, random: Random, restarts: bool) -> None:
    """Where nothing happens but what is decided, late: who is promised a node has it promised until it is bound there,
    unless a gang of higher priority came into its queue's way, or its gang lost pods that it can't start without; also
    by schedulers that have just come up."""
    play = Late(world, policy, random)
    for _ in range(30):
        before = promises(play)
        result = play.step()
        check_room(play, result)
        for task, node in before.items():
            if task.nominated != node and not task.node:
                job = gang_of(task)
                assert job.valid_count < job.min_member or taken_over(play, result, job), (task.name, node)
            elif task.node:
                assert task.node == node
        if restarts and random.random() < 0.3:
            kept = {task.uid: node for task, node in promises(play).items()}
            play.restart()
            assert {task.uid: node for task, node in promises(play).items()} == kept


@MORE
@given(worlds, policies(), st.randoms(use_true_random=False))
def test_evictions_end_though_their_victims_are_late(world: World, policy: Policy, random: Random) -> None:
    play = Late(world, policy, random)
    calm = 0
    for _ in range(40 * LONGEST):
        result = play.step()
        calm = calm + 1 if play.quiet and not result.evictions and not result.binds else 0
        if calm > 3:
            break
    assert calm > 3
    assert not promises(play), "all places were taken"


@MORE
@given(worlds, policies(), st.randoms(use_true_random=False))
def test_promises_end_whatever_comes_between(world: World, policy: Policy, random: Random) -> None:
    """Nodes, gangs and pods go, gangs ask for more, schedulers come up, while places are being freed. Nothing is ever
    promised twice, and in the end nothing is."""
    play = Late(world, policy, random)
    for _ in range(20):
        play.interfere()
        check_room(play, play.step())
    for _ in range(40 * LONGEST):
        result = play.step()
        check_room(play, result)
        if play.quiet and not result.evictions and not result.binds:
            play.now += OVERDUE + timedelta(seconds=30)
            if not play.step().evictions and not play.state.promised:
                break
    assert not play.state.promised
    assert not promises(play)


@MORE
@given(worlds, policies(), st.randoms(use_true_random=False), st.integers(1, 3))
def test_a_victim_that_stays_holds_nothing_up_for_ever(
    world: World, policy: Policy, random: Random, steps: int
) -> None:
    play = Late(world, policy, random)
    for _ in range(steps):
        play.carry_out(play.cycle())
    until = [promise.until for promise in play.state.promised.values()]
    assert all(end <= play.now + OVERDUE + timedelta(seconds=30) for end in until)
    play.now = max([play.now, *until])
    waiting = promises(play)
    result = play.cycle()
    again = {play.state.tasks[e.uid].job for e in result.evictions}
    assert not [t for t in waiting if t.status is TaskStatus.PENDING and t.nominated and not again]
