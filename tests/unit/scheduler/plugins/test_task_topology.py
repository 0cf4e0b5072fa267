"""The task-topology plugin: buckets by affinity, the order of their tasks, and points of nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.scoring import plugin_of, policy, requests, session, task_of
from vcbatch.api.resources import PODGROUPS
from vcbatch.api.scheduling import PodGroupView
from vcbatch.scheduler import Policy
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.model.objects import TaskStatus
from vcbatch.scheduler.plugins.task_topology import TaskTopology, TaskTopologyPlugin

NAME = "task-topology"
AFFINITY, ANTI = "volcano.sh/task-topology-affinity", "volcano.sh/task-topology-anti-affinity"
ORDER = "volcano.sh/task-topology-task-order"


def _gang(cluster: Cluster, name: str, annotations: dict[str, str], minimum: int, **roles: int) -> None:
    cluster.gang(name, 0, minimum=minimum)
    cluster.groups[name]["metadata"]["annotations"] = annotations
    cluster._send(PODGROUPS, PodGroupView, "MODIFIED", cluster.groups[name])
    for role, count in roles.items():
        for index in range(count):
            cluster.pod(name, index, role=role)


def _opened(cluster: Cluster, given: Policy) -> tuple[Session, TaskTopologyPlugin]:
    opened = session(cluster, given)
    return opened, plugin_of(opened, TaskTopologyPlugin)


def _points(opened: Session, plugin: TaskTopologyPlugin, name: str) -> dict[str, float]:
    task, rows = task_of(opened, name), np.arange(len(opened.nodes), dtype=np.intp)
    assert plugin.couples(task)
    found = plugin.task_scores(task, rows, [])
    assert found is not None
    return {info.name: float(found[info.row]) for info in opened.nodes.infos}


@pytest.mark.parametrize(
    ("annotations", "together", "apart", "relations"),
    [
        ({AFFINITY: "ps,worker"}, {("ps", "worker"), ("worker", "ps")}, set(), {"ps": 3, "worker": 3}),
        ({AFFINITY: "ps;ps,worker"}, {("ps", "ps"), ("ps", "worker"), ("worker", "ps")}, set(), {"ps": 3, "worker": 3}),
        ({ANTI: "ps; worker , ps"}, set(), {("ps", "ps"), ("ps", "worker"), ("worker", "ps")}, {"ps": 4, "worker": 1}),
        ({AFFINITY: "worker", ANTI: "worker"}, {("worker", "worker")}, {("worker", "worker")}, {"worker": 4}),
    ],
)
def test_annotations_are_read(
    annotations: dict[str, str], together: set[Any], apart: set[Any], relations: dict[str, int]
) -> None:
    read = TaskTopology.read(annotations, ["ps", "worker"])
    assert read is not None
    assert (set(read.together), set(read.apart), dict(read.relations)) == (together, apart, relations)


@pytest.mark.parametrize(("order", "ranked"), [("", "dcba"), ("a,c", "acdb")])
def test_roles_rank_by_the_users_order_and_then_by_what_they_have_to_do_with_others(order: str, ranked: str) -> None:
    """Apart from themselves 4, together with others 3, with themselves 2, apart from others 1."""
    read = TaskTopology.read({ANTI: "d;a,b", AFFINITY: "c,d;b", ORDER: order}, "abcd")
    assert read is not None
    assert [int(read.relations[role]) for role in "abcd"] == [1, 2, 3, 4]
    assert sorted("abcd", key=read.rank) == list(ranked)


@pytest.mark.parametrize(
    "annotations",
    [
        {},
        {AFFINITY: ""},
        {ORDER: "ps"},
        {AFFINITY: "ps,chief"},
        {AFFINITY: "ps", ANTI: "ps,ps"},
        {AFFINITY: "ps", ORDER: "ps,chief"},
        {AFFINITY: "ps", ORDER: "ps,ps"},
    ],
)
def test_nothing_or_nonsense_is_no_topology(annotations: dict[str, str]) -> None:
    assert TaskTopology.read(annotations, ["ps", "worker"]) is None


def test_friends_share_a_node_and_likes_are_apart() -> None:
    cluster = Cluster(policy(NAME, {}, "predicates"))
    for name in ("a", "b"):
        cluster.node(name, cpu="8")
    _gang(cluster, "g", {AFFINITY: "ps,worker", ANTI: "ps"}, 6, ps=2, worker=4)
    cluster.cycle()
    placed = cluster.placed("g")
    assert placed["g-ps-0"] != placed["g-ps-1"]
    assert sorted(sum(n == name for n in placed.values()) for name in ("a", "b")) == [3, 3]


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("ps,worker", ["ps-0", "worker-0", "worker-2", "ps-1", "worker-1", "extra-0"]),
        ("worker,ps", ["worker-0", "worker-1", "worker-2", "ps-0", "ps-1", "extra-0"]),
    ],
)
def test_order_is_by_bucket_the_larger_first_then_by_the_users_order(order: str, names: list[str]) -> None:
    given = policy(NAME)
    cluster = Cluster(given)
    cluster.node("a")
    _gang(cluster, "g", {AFFINITY: "ps,worker", ANTI: "ps", ORDER: order}, 1, extra=1, ps=2, worker=3)
    opened, _ = _opened(cluster, given)
    tasks = list(opened.state.jobs["ns/g"].tasks.values())
    assert [task.name for task in opened.ordered(tasks)] == [f"g-{name}" for name in names]


def test_tasks_join_where_most_friends_are_and_the_lightest_of_several() -> None:
    given = policy(NAME)
    cluster = Cluster(given)
    cluster.node("a")
    _gang(cluster, "g", {AFFINITY: "ps,worker", ANTI: "ps", ORDER: "ps,worker"}, 1, ps=2, worker=3)
    opened, plugin = _opened(cluster, given)
    manager = plugin._manager(opened.state.jobs["ns/g"])
    assert manager is not None
    assert [[t.name for t in bucket.pending] for bucket in manager.buckets] == [
        ["g-ps-0", "g-worker-0", "g-worker-2"],
        ["g-ps-1", "g-worker-1"],
    ]


@pytest.mark.parametrize(
    ("one", "other", "joined"),
    [
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "512Mi"}, 0),  # 2024 and 2512
        ({"cpu": "1", "memory": "2Gi"}, {"cpu": "2", "memory": "512Mi"}, 1),  # 3048 and 2512
        ({"cpu": "1", "x_gpu": "2"}, {"cpu": "2"}, 1),  # 3000 and 2000
        ({"cpu": "1", "ephemeral-storage": "100Mi"}, {"cpu": "2"}, 0),  # 1100 and 2000, storage counted like memory
        ({"cpu": "1"}, {"cpu": "1"}, 0),
    ],
)
def test_the_lightest_bucket_is_the_one_of_least_milli_cores_mebibytes_and_devices(
    one: dict[str, str], other: dict[str, str], joined: int
) -> None:
    """Ties by reqScore, cpu in thousandths + MiB + scalars, which are in thousandths."""
    given = policy(NAME)
    cluster = Cluster(given)
    cluster.node("a", x_gpu="8", **{"ephemeral-storage": "1Gi"})
    _gang(cluster, "g", {AFFINITY: "ps,worker", ANTI: "ps"}, 1, ps=2, worker=1)
    requests(cluster, "g-ps-0", None, **one)
    requests(cluster, "g-ps-1", None, **other)
    opened, plugin = _opened(cluster, given)
    manager = plugin._manager(opened.state.jobs["ns/g"])
    assert manager is not None
    assert [t.name for t in manager.buckets[joined].pending] == [f"g-ps-{joined}", "g-worker-0"]


def test_of_equal_buckets_the_older_goes_first() -> None:
    given = policy(NAME)
    cluster = Cluster(given)
    cluster.node("a")
    _gang(cluster, "g", {AFFINITY: "ps,worker", ANTI: "ps"}, 1, ps=2, worker=2)
    opened, _ = _opened(cluster, given)
    tasks = list(opened.state.jobs["ns/g"].tasks.values())
    assert [task.name for task in opened.ordered(tasks)] == ["g-ps-0", "g-worker-0", "g-ps-1", "g-worker-1"]


def test_what_waits_of_a_bucket_counts_and_not_what_is_placed_of_it() -> None:
    """Both have two tasks, but one of the first runs (the larger *remaining* bucket first)."""
    given = policy(NAME)
    cluster = Cluster(given)
    cluster.node("a")
    _gang(cluster, "g", {AFFINITY: "ps,worker", ANTI: "ps"}, 1, ps=2, worker=2)
    cluster.change("g-ps-0", node="a")
    cluster.change("g-ps-0", phase="Running")
    requests(cluster, "g-ps-1", None, cpu="100m")
    opened, plugin = _opened(cluster, given)
    manager = plugin._manager(opened.state.jobs["ns/g"])
    assert manager is not None
    assert [(b.size, [t.name for t in b.pending]) for b in manager.buckets] == [
        (2, ["g-worker-0"]),
        (2, ["g-ps-1", "g-worker-1"]),
    ]
    tasks = [task_of(opened, f"g-{name}") for name in ("worker-0", "worker-1", "ps-1")]
    assert [task.name for task in opened.ordered(tasks)] == ["g-ps-1", "g-worker-1", "g-worker-0"]


def test_what_is_being_released_counts_as_free() -> None:
    """Tasks fit in Idle + Releasing."""
    given = policy(NAME)
    cluster = Cluster(given)
    cluster.node("full", cpu="2")
    cluster.gang("old", 2, phase="Running", pod={"nodeName": "full"})
    cluster.run("old")
    _gang(cluster, "g", {AFFINITY: "worker"}, 1, worker=2)
    opened, plugin = _opened(cluster, given)
    assert _points(opened, plugin, "g-worker-0") == {"full": 0}
    cluster.change("old-worker-0", deleting=True)
    opened, plugin = _opened(cluster, given)
    assert _points(opened, plugin, "g-worker-0") == {"full": 50}


def test_points_count_who_is_there_and_who_fits() -> None:
    given = policy(NAME, {"task-topology.weight": 2})
    cluster = Cluster(given)
    cluster.node("big", cpu="8")
    cluster.node("held", cpu="8")
    cluster.node("small", cpu="2")
    cluster.node("tiny", cpu="500m")
    _gang(cluster, "g", {AFFINITY: "worker"}, 1, worker=4)
    cluster.change("g-worker-0", node="held")
    cluster.change("g-worker-0", phase="Running")
    opened, plugin = _opened(cluster, given)
    assert _points(opened, plugin, "g-worker-1") == {"big": 150, "held": 200, "small": 100, "tiny": 0}


def test_who_ended_is_on_no_node_any_more() -> None:
    given = policy(NAME)
    cluster = Cluster(given)
    cluster.node("a")
    _gang(cluster, "g", {AFFINITY: "worker"}, 1, worker=3)
    for index, phase in ((0, "Succeeded"), (1, "Running")):
        cluster.change(f"g-worker-{index}", node="a")
        cluster.change(f"g-worker-{index}", phase=phase)
    opened, plugin = _opened(cluster, given)
    manager = plugin._manager(opened.state.jobs["ns/g"])
    assert manager is not None
    assert [(bucket.size, bucket.on) for bucket in manager.buckets] == [(2, {0: 1})]


def test_roles_kept_apart_cost_points_where_they_are() -> None:
    given = policy(NAME)
    cluster = Cluster(given)
    cluster.node("a")
    cluster.node("b")
    _gang(cluster, "g", {ANTI: "ps,worker"}, 1, ps=2, worker=1)
    for index in range(2):
        cluster.change(f"g-ps-{index}", node="a")
        cluster.change(f"g-ps-{index}", phase="Running")
    opened, plugin = _opened(cluster, given)
    assert _points(opened, plugin, "g-worker-0") == {"a": (1 - 2) * 50, "b": 50}


def test_what_is_taken_back_is_as_before() -> None:
    given = policy(NAME)
    cluster = Cluster(given)
    cluster.node("a", cpu="2")
    cluster.node("b", cpu="8")
    _gang(cluster, "g", {AFFINITY: "worker"}, 1, worker=3)
    opened, plugin = _opened(cluster, given)
    before = _points(opened, plugin, "g-worker-2")
    assert before == {"a": pytest.approx(200 / 3), "b": 100}
    statement = Statement(opened)
    statement.allocate([task_of(opened, "g-worker-0")], [0])
    assert _points(opened, plugin, "g-worker-2") == {"a": pytest.approx(200 / 3), "b": pytest.approx(200 / 3)}
    statement.discard()
    assert task_of(opened, "g-worker-0").status is TaskStatus.PENDING
    assert _points(opened, plugin, "g-worker-2") == before


def test_other_gangs_are_left_alone() -> None:
    given = policy(NAME)
    cluster = Cluster(given)
    cluster.node("a")
    cluster.gang("plain", 2)
    _gang(cluster, "bad", {AFFINITY: "ps,chief"}, 1, ps=2)
    opened, plugin = _opened(cluster, given)
    for name in ("plain-worker-0", "bad-ps-0"):
        assert plugin.task_key(task_of(opened, name)) == 0
        assert not plugin.couples(task_of(opened, name))
