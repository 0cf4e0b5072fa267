"""What a gang can spare, and in which pieces it is taken apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler.actions.bundles import below_minimum, ending, remains, spared, sparing
from vcbatch.scheduler.model.objects import Job

ROLES = {"ps": 1, "worker": 3}
PARTS = {
    "name": "part",
    "labelSelector": {"matchLabels": {"gang": "g"}},
    "subGroupSize": 2,
    "minSubGroups": 1,
    "matchLabelKeys": ["part"],
}


def gang(pods: list[tuple[str, dict[str, Any]]], **spec: Any) -> Job:
    """A gang that runs, with these pods of (role, spec) on one node."""
    cluster = Cluster()
    cluster.node("a", cpu="64", memory="256Gi", pods="64")
    minimum = spec.pop("minimum")
    cluster.gang("g", 0, minimum=minimum, phase="Running", **spec)
    for index, (role, given) in enumerate(pods):
        cluster.pod("g", index, role=role, nodeName="a", **given)
    cluster.run("g")
    return cluster.scheduler._state.jobs["ns/g"]


def names(tasks: Any) -> list[str]:
    return [task.name.removeprefix("g-") for task in tasks]


def test_keeps_the_minimum_of_the_gang_and_of_each_role() -> None:
    """Two workers, two parameter servers, two workers, by priority."""
    order = ["worker", "worker", "ps", "ps", "worker", "worker"]
    job = gang(
        [(role, {"priority": i}) for i, role in enumerate(order)],
        minimum=4,
        minTaskMember=ROLES,
    )
    safe, rest = spared(job, job.tasks.values())
    assert names(safe) == ["worker-0", "ps-2"]
    assert names(rest) == ["worker-1", "ps-3", "worker-4", "worker-5"]


def test_tells_how_much_of_what_ends_is_of_use() -> None:
    """Two pods are needed, the gang has six of that size, and four go together."""
    order = ["worker", "worker", "ps", "ps", "worker", "worker"]
    job = gang([(role, {"priority": i}) for i, role in enumerate(order)], minimum=4, minTaskMember=ROLES)
    tasks = list(job.tasks.values())
    need = 2 * tasks[0].cls.request
    can_go, rest = spared(job, tasks)
    safe, whole = sparing(job, can_go), ending(job, rest, here=rest, need=need)
    assert (safe.safe, safe.worth) == (True, math.inf)
    assert not whole.safe
    assert whole.worth == pytest.approx(1 / 3)
    assert (safe.amount == need).all()
    assert (whole.amount == 2 * need).all()


def test_minimums_of_roles_beyond_that_of_the_gang_do_not_count() -> None:
    job = gang([("worker", {}), ("worker", {}), ("ps", {})], minimum=2, minTaskMember={"worker": 2, "ps": 1})
    assert [len(part) for part in spared(job, job.tasks.values())] == [1, 2]


def test_a_gang_below_its_minimum_has_nothing_to_lose() -> None:
    job = gang([("worker", {}), ("worker", {})], minimum=3)
    whole = remains(job, list(job.tasks.values()))
    assert (below_minimum(job), whole.safe, whole.worth) == (True, False, math.inf)


def test_a_gang_at_its_minimum_goes_whole() -> None:
    job = gang([("worker", {}), ("worker", {})], minimum=2)
    assert [len(part) for part in spared(job, job.tasks.values())] == [0, 2]


def test_breaks_no_more_parts_than_the_gang_can_spare() -> None:
    pods = [("worker", {"part": i // 2, "priority": i}) for i in range(6)]
    job = gang(pods, minimum=2, subGroupPolicy=[{**PARTS, "minSubGroups": 2}])
    safe, rest = spared(job, job.tasks.values())
    assert names(safe) == ["worker-0", "worker-1"], "the part is broken by the first, so the second is free"
    assert len(rest) == 4


def test_parts_that_are_broken_already_are_free() -> None:
    pods = [("worker", {"part": 0}), ("worker", {"part": 0}), ("worker", {"part": 1})]
    job = gang(pods, minimum=2, subGroupPolicy=[PARTS])
    safe, _ = spared(job, job.tasks.values())
    assert names(safe) == ["worker-2"]


def test_of_what_ends_only_what_goes_where_it_is_needed_is_of_use() -> None:
    job = gang([("worker", {"priority": i}) for i in range(4)], minimum=4)
    tasks = list(job.tasks.values())
    whole = ending(job, tasks, here=tasks[:2], need=2 * tasks[0].cls.request)
    assert whole.worth == pytest.approx(1 / 2)
    assert np.array_equal(whole.amount, 4 * tasks[0].cls.request)
