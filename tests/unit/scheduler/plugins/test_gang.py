"""When a gang is whole enough, by its own minimum, those of its roles and those of the gangs inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.scoring import plugin_of, session, task_of
from vcbatch.api.pod import Pod
from vcbatch.api.scheduling import PodGroupSpecView, PodGroupView
from vcbatch.scheduler import parse_policy
from vcbatch.scheduler.framework.plugin import EvictionKind, GangEviction, Vote
from vcbatch.scheduler.model.classes import ClassTable
from vcbatch.scheduler.model.objects import STATUSES, Job, Task, TaskStatus
from vcbatch.scheduler.model.resources import Dimensions
from vcbatch.scheduler.model.selectors import LabelSelector
from vcbatch.scheduler.model.sub_gangs import SubGangRule
from vcbatch.scheduler.plugins.gang import Gang

NOTHING = ClassTable(Dimensions()).of(msgspec.convert({"spec": {"containers": [{"name": "c"}]}}, Pod))
"""The class of pods that ask for nothing."""
STATES = {
    "allocated": TaskStatus.ALLOCATED,
    "binding": TaskStatus.BINDING,
    "bound": TaskStatus.BOUND,
    "running": TaskStatus.RUNNING,
    "succeeded": TaskStatus.SUCCEEDED,
    "failed": TaskStatus.FAILED,
    "releasing": TaskStatus.RELEASING,
    "unknown": TaskStatus.UNKNOWN,
    "promised": TaskStatus.PIPELINED,
    "pending": TaskStatus.PENDING,
    "idle": TaskStatus.PENDING,
}
"""`idle` pods are pending ones that ask for nothing."""


def job(members: str, *, minimum: int, roles: Mapping[str, int] | None = None) -> Job:
    """`members` is like `2 running worker, 1 idle ps`."""
    made = Job("ns/g", 0)
    made.group = PodGroupView(spec=PodGroupSpecView(min_member=minimum, min_task_member=dict(roles or {})))
    for entry in members.split(", "):
        number, state, role = entry.split()
        status = STATES[state]
        made.counts[status] += int(number)
        made.roles.setdefault(role, [0] * STATUSES)[status] += int(number)
        for _ in range(int(number) if state == "idle" else 0):
            uid = f"idle-{len(made.tasks)}"
            task = made.tasks[uid] = Task(uid=uid, namespace="ns", name=uid, cls=NOTHING, job=made, pod=Pod())
            task.role = role
            made.pending_best_effort += 1
    return made


ROLES = {"ps": 1, "worker": 2}


@pytest.mark.parametrize(
    ("members", "minimum", "roles", "ready", "held", "starving"),
    [
        # Who counts for the minimum: held counts those with a promise too, starving leaves those that ask for nothing.
        ("1 allocated w, 1 binding w, 1 bound w, 1 running w, 1 succeeded w", 5, None, True, True, False),
        ("1 allocated w, 1 binding w, 1 bound w, 1 running w, 1 succeeded w", 6, None, False, False, True),
        ("2 running w, 3 failed w, 3 releasing w, 3 unknown w, 3 pending w", 3, None, False, False, True),
        ("2 running w, 1 promised w", 3, None, False, True, False),
        ("2 running w, 1 idle w", 3, None, True, True, True),
        ("1 running w, 1 promised w, 1 idle w", 3, None, False, True, True),
        ("1 running w, 1 promised w", 3, None, False, False, True),
        # Minimums of roles.
        ("1 running ps, 2 running worker", 3, ROLES, True, True, False),
        ("3 running worker, 1 pending ps", 3, ROLES, False, False, False),
        ("2 running worker, 1 promised ps", 3, ROLES, False, True, False),
        ("2 running worker, 1 idle ps", 3, ROLES, True, True, True),
        ("1 running ps, 1 running worker, 1 promised worker, 1 running x", 4, ROLES, False, True, False),
        ("2 running ps, 1 promised worker, 1 idle worker", 3, ROLES, False, True, False),
        ("3 running ps, 1 promised worker", 3, ROLES, False, False, False),
        ("3 succeeded worker, 1 succeeded ps", 4, ROLES, True, True, False),
        # They don't count where they add up to more than the gang's.
        ("2 running worker", 2, ROLES, True, True, False),
        ("3 running worker", 3, ROLES, False, False, False),
    ],
)
def test_when_a_gang_is_whole_enough(
    members: str, minimum: int, roles: Mapping[str, int] | None, ready: bool, held: bool, starving: bool
) -> None:
    gang, found = Gang({}), job(members, minimum=minimum, roles=roles)
    assert gang.job_ready(found) is ready
    assert gang.job_pipelined(found) is (Vote.PERMIT if held else Vote.REJECT)
    assert gang.job_starving(found) is starving
    enough = found.ready_count + found.pending_best_effort >= minimum
    assert gang.job_key(found) == int(enough)  # whatever its roles


@pytest.mark.parametrize(
    ("members", "minimum", "roles", "said"),
    [
        ("1 pending ps, 1 promised worker, 1 running worker", 3, ROLES, None),
        ("3 pending worker", 3, ROLES, "role 'ps' has 0 of 1 pods"),
        ("1 pending ps, 1 succeeded worker, 1 failed worker", 3, ROLES, "role 'worker' has 1 of 2 pods"),
        ("1 pending ps, 1 pending worker, 1 releasing worker, 1 pending x", 3, ROLES, "role 'worker' has 1 of 2 pods"),
        ("1 pending w, 1 promised w, 1 running w, 1 succeeded w", 4, None, None),
        ("1 pending w, 1 promised w, 1 running w, 1 failed w", 4, None, "3 of 4 pods exist"),
    ],
)
def test_whether_a_gang_could_run(
    members: str, minimum: int, roles: Mapping[str, int] | None, said: str | None
) -> None:
    assert Gang({}).job_valid(job(members, minimum=minimum, roles=roles)) == said


@pytest.mark.parametrize(
    ("members", "minimum", "roles", "missing"),
    [
        ("1 running worker, 9 pending worker", 4, None, 3),
        ("1 running worker, 1 idle worker, 9 pending worker", 4, None, 2),
        ("4 running ps, 9 pending worker", 4, {"worker": 3}, 3),
        ("4 running ps, 1 running worker, 1 idle worker, 9 pending worker", 4, {"worker": 3}, 1),
        ("9 running worker", 4, {"worker": 3}, 1),
    ],
)
def test_how_many_more_a_gang_needs_of_a_role(
    members: str, minimum: int, roles: Mapping[str, int] | None, missing: int
) -> None:
    assert Gang({}).tasks_until_ready(job(members, minimum=minimum, roles=roles), "worker") == missing


@pytest.mark.parametrize(
    ("parts", "ready", "held", "valid"),
    [
        (["running succeeded", "bound allocated", "pending pending"], True, True, True),
        (["running running", "running promised", "pending pending"], False, True, True),
        (["running running", "running pending", "running pending"], False, False, True),
        (["running running", "running running running"], True, True, True),
        (["running running", "running idle"], True, True, True),
        (["running promised", "running idle"], False, True, True),
        (["running running", "running failed", "pending"], False, False, False),
        (["running running running running"], False, False, False),
    ],
)
def test_two_gangs_of_two_inside_a_gang_have_to_be_whole(
    parts: Sequence[str], ready: bool, held: bool, valid: bool
) -> None:
    states = " ".join(parts).split()
    found = job(", ".join(f"1 {state} w" for state in states), minimum=2)
    found.rules = (SubGangRule("w", LabelSelector.parse({}), ("part",), size=2, least=2),)
    idle = iter(found.tasks.values())
    for number, part in enumerate(parts):
        key = (0, (str(number),))
        counts = found.subs[key] = [0] * STATUSES
        for state in part.split():
            counts[STATES[state]] += 1
            if state == "idle":
                next(idle).sub = key
    gang = Gang({})
    assert gang.job_ready(found) is ready
    assert gang.job_pipelined(found) is (Vote.PERMIT if held else Vote.REJECT)
    assert (gang.job_valid(found) is None) is valid


POLICY = parse_policy("actions: allocate, preempt\ntiers:\n- plugins: [{name: gang}]\n")


def test_members_beyond_the_minimum_go_and_no_others() -> None:
    """Who has succeeded counts as a member; pods without a PodGroup are nobody's to take."""
    made = Cluster(POLICY)
    made.node("n", cpu="30")
    for name, minimum in (("one", 2), ("two", 4)):
        made.gang(name, 4, minimum=minimum, pod={"nodeName": "n"})
        made.run(name)
    made.change("two-worker-3", phase="Succeeded")
    made.pod("orphan", 0, nodeName="n")
    made.change("orphan-worker-0", phase="Running")
    made.gang("new", 1)
    opened = session(made, POLICY)
    gang, actor = plugin_of(opened, Gang), task_of(opened, "new-worker-0")
    candidates = [task_of(opened, name) for name, raw in made.pods.items() if raw["status"]["phase"] == "Running"]
    surplus = ["one-worker-0", "one-worker-1"]
    assert [task.name for task in gang.preemptable(actor, candidates)] == surplus
    assert [task.name for task in gang.reclaimable(actor, candidates)] == surplus
    assert actor.job is not None
    whole = GangEviction(EvictionKind.PREEMPT, actor.job, np.zeros(3))
    assert list(gang.evictable(whole, candidates)) == candidates


def test_gangs_stand_in_one_order_whether_asked_for_one_or_all() -> None:
    made = Cluster(POLICY)
    made.node("n", cpu="30")
    for name, minimum, idle in (("whole", 2, 0), ("lacking", 4, 0), ("idle", 3, 1), ("more", 4, 1)):
        made.gang(name, 2, minimum=minimum, pod={"nodeName": "n"})
        made.run(name)
        for index in range(idle):
            made.pod(name, 2 + index, cpu=None)
    opened = session(made, POLICY)
    gang = plugin_of(opened, Gang)
    jobs = [opened.state.jobs[f"ns/{name}"] for name in made.groups]
    keys = gang.job_keys(np.array([found.row for found in jobs], dtype=np.intp))
    assert keys is not None
    assert keys.tolist() == [gang.job_key(found) for found in jobs] == [1, 0, 1, 0]
