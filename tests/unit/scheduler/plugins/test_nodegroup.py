"""The nodegroup plugin: which queue's pods go to which group of nodes, and how much they may hold there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.scoring import plugin_of, policy, session, task_of
from vcbatch.scheduler import Policy, PolicyError
from vcbatch.scheduler.framework.statement import Statement
from vcbatch.scheduler.plugins.nodegroup import FULL, NodeGroup

NAME = "nodegroup"
GROUP = "volcano.sh/nodegroup-name"
LIMITS = "volcano.sh/nodegroup-resource-limits"
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def _affinity(**given: Any) -> dict[str, Any]:
    near = {REQUIRED: given.get("required"), PREFERRED: given.get("preferred")}
    far = {REQUIRED: given.get("never"), PREFERRED: given.get("avoided")}
    return {"nodeGroupAffinity": near, "nodeGroupAntiAffinity": far}


def _cluster(given: Policy, **affinity: Any) -> Cluster:
    """Nodes of the groups a, b and c and one of none; queue q has the affinity."""
    cluster = Cluster(given)
    for group in ("a", "b", "c"):
        cluster.node(f"n-{group}", labels={GROUP: group})
    cluster.node("n-none")
    cluster.queue("q", affinity=_affinity(**affinity) if affinity else None)
    return cluster


def _admitted(given: Policy, **affinity: Any) -> set[str]:
    cluster = _cluster(given, **affinity)
    cluster.gang("g", 1, queue="q")
    opened = session(cluster, given)
    static = opened.placer.static(task_of(opened, "g-worker-0").cls)
    return {info.name for info in opened.nodes.infos if static.mask[info.row]}


@pytest.mark.parametrize(
    ("affinity", "strict", "admitted"),
    [
        ({}, True, set()),
        ({}, False, {"n-none"}),
        ({"required": ["a"]}, True, {"n-a"}),
        ({"required": ["a"]}, False, {"n-a"}),
        ({"required": ["a"], "preferred": ["b"]}, True, {"n-a", "n-b"}),
        ({"required": ["a", "b"], "never": ["b"]}, True, {"n-a"}),
        ({"avoided": ["c"]}, True, {"n-c"}),
        ({"required": ["a"], "never": ["c"], "avoided": ["c"]}, True, {"n-a", "n-c"}),
        ({"never": ["a"]}, True, set()),
    ],
)
def test_which_groups_a_queue_may_use(affinity: dict[str, Any], strict: bool, admitted: set[str]) -> None:
    assert _admitted(policy(NAME, {"strict": strict}), **affinity) == admitted


@pytest.mark.parametrize(
    ("affinity", "ordered", "points"),
    [
        ({"required": ["a"], "preferred": ["b"]}, False, {"n-a": 100, "n-b": 50, "n-c": 0, "n-none": 0}),
        ({"preferred": ["a", "b"]}, False, {"n-a": 50, "n-b": 50, "n-c": 0, "n-none": 0}),
        ({"required": ["a"], "preferred": ["b", "a"]}, True, {"n-a": 125, "n-b": 50, "n-c": 0, "n-none": 0}),
        ({"required": ["a", "b"], "avoided": ["b"]}, False, {"n-a": 100, "n-b": -1, "n-c": 0, "n-none": 0}),
    ],
)
def test_how_groups_are_preferred(affinity: dict[str, Any], ordered: bool, points: dict[str, float]) -> None:
    given = policy(NAME, {"enablePreferredOrder": ordered})
    cluster = _cluster(given, **affinity)
    cluster.gang("g", 1, queue="q")
    opened = session(cluster, given)
    (preference,) = opened.placer.static(task_of(opened, "g-worker-0").cls).preferences
    assert {info.name: float(preference.raw[info.row]) for info in opened.nodes.infos} == points


def test_preferred_groups_are_equal_where_nothing_is_said_of_their_order() -> None:
    """`enablePreferredOrder` is false by default."""
    given = policy(NAME)
    cluster = _cluster(given, preferred=["a", "b"])
    cluster.gang("g", 1, queue="q")
    opened = session(cluster, given)
    (preference,) = opened.placer.static(task_of(opened, "g-worker-0").cls).preferences
    assert preference.raw.tolist() == [50, 50, 0, 0]


@pytest.mark.parametrize(("hierarchy", "node"), [(True, "n-b"), (False, None)])
def test_a_queue_may_inherit_from_its_nearest_ancestor(hierarchy: bool, node: str | None) -> None:
    cluster = _cluster(policy(NAME, {}, enableHierarchy=hierarchy), required=["a"])
    cluster.queue("middle", parent="q", affinity=_affinity(required=["b"]))
    cluster.queue("leaf", parent="middle")
    cluster.gang("g", 1, queue="leaf")
    cluster.cycle()
    assert cluster.placed("g").get("g-worker-0") == node


def test_queues_above_each_other_have_no_affinity_to_inherit() -> None:
    cluster = _cluster(policy(NAME, {"strict": False}, enableHierarchy=True))
    cluster.queue("one", parent="other")
    cluster.queue("other", parent="one")
    cluster.gang("g", 1, queue="one")
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "n-none"}


def test_alike_gangs_of_two_queues_go_to_their_own_nodes() -> None:
    cluster = _cluster(policy(NAME), required=["a"])
    cluster.queue("r", affinity=_affinity(required=["b"]))
    cluster.gang("one", 2, queue="q")
    cluster.gang("two", 2, queue="r")
    cluster.cycle()
    assert set(cluster.placed("one").values()) == {"n-a"}
    assert set(cluster.placed("two").values()) == {"n-b"}


def test_a_queue_that_changes_frees_who_waited_for_it() -> None:
    cluster = _cluster(policy(NAME), required=["z"])
    cluster.gang("g", 1, queue="q")
    reported = cluster.cycle().pod_conditions
    assert "4 node(s) didn't match the node groups of the queue" in reported[0].message
    cluster.queue("q", event="MODIFIED", affinity=_affinity(required=["c"]))
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "n-c"}


def test_a_podgroup_that_moves_to_another_queue_follows_its_nodes() -> None:
    cluster = Cluster(policy(NAME))
    cluster.node("n-a", labels={GROUP: "a"})
    cluster.gang("g", 1, queue="late")
    cluster.cycle()
    assert cluster.placed("g") == {}
    cluster.queue("late", affinity=_affinity(required=["a"]))
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "n-a"}


def _limited(limits: str, **cpu: str) -> Cluster:
    cluster = Cluster(policy(NAME))
    for name, amount in cpu.items():
        cluster.node(name, cpu=amount, labels={GROUP: name[0]})
    cluster.queue("q", annotations={LIMITS: limits}, affinity=_affinity(required=["a", "b"], preferred=["a"]))
    return cluster


def test_a_limit_is_shared_by_the_nodes_of_a_group() -> None:
    cluster = _limited('{"a": {"cpu": "3"}}', a1="8", a2="8", b="8")
    cluster.gang("g", 5, queue="q")
    cluster.cycle()
    nodes = sorted(node[0] for node in cluster.placed("g").values())
    assert nodes == ["a", "a", "a", "b", "b"]


@pytest.mark.parametrize("limit", ['{"cpu": "3", "memory": "1Ti"}', '{"cpu": "50", "memory": "3Gi"}'])
def test_every_resource_of_a_limit_holds(limit: str) -> None:
    cluster = _limited(f'{{"a": {limit}}}', a1="8", b="8")
    cluster.gang("g", 5, queue="q")
    cluster.cycle()
    assert sorted(cluster.placed("g").values()) == ["a1", "a1", "a1", "b", "b"]


def test_what_the_queue_holds_already_counts_until_it_ends() -> None:
    cluster = _limited('{"a": {"cpu": "3"}, "b": {"cpu": 0}}', a1="8", b="8")
    cluster.gang("one", 2, queue="q")
    cluster.cycle()
    cluster.run("one")
    cluster.gang("two", 2, queue="q")
    reported = cluster.cycle().pod_conditions
    assert "2 node(s) were in a node group in which the queue holds all it may" in reported[0].message
    assert cluster.placed("two") == {}
    cluster.change("one-worker-0", phase="Succeeded")
    cluster.cycle()
    assert set(cluster.placed("two").values()) == {"a1"}


def test_only_pods_that_are_to_stay_count() -> None:
    """Of the four that the queue has had there, one ended and one is being deleted: room for one is left of three."""
    cluster = _limited('{"a": {"cpu": "3"}, "b": {"cpu": 0}}', a1="9", b="8")
    cluster.gang("one", 4, minimum=1, queue="q", phase="Running", pod={"nodeName": "a1"})
    cluster.run("one")
    cluster.change("one-worker-0", phase="Succeeded")
    cluster.change("one-worker-1", deleting=True)
    cluster.gang("two", 3, minimum=1, queue="q")
    cluster.cycle()
    assert list(cluster.placed("two").values()) == ["a1"]


def test_what_was_placed_a_cycle_ago_counts_before_it_is_seen() -> None:
    cluster = _limited('{"a": {"cpu": "3"}, "b": {"cpu": 0}}', a1="8", b="8")
    cluster.gang("one", 2, queue="q")
    assert len(cluster.scheduler.cycle(cluster.now).binds) == 2
    cluster.gang("two", 3, minimum=1, queue="q")
    assert len(cluster.scheduler.cycle(cluster.now).binds) == 1


def test_what_is_taken_back_leaves_its_room() -> None:
    cluster = _limited('{"a": {"cpu": "3"}}', a1="8")
    cluster.gang("g", 4, queue="q")
    opened = session(cluster, policy(NAME))
    plugin, tasks = plugin_of(opened, NodeGroup), [task_of(opened, f"g-worker-{i}") for i in range(4)]
    statement = Statement(opened)
    statement.allocate(tasks[:3], [0, 0, 0])
    assert [r.reason for r in plugin.task_rejections(tasks[3], [])] == [FULL]
    statement.discard()
    assert plugin.task_rejections(tasks[3], []) == ()


def test_another_queue_is_not_limited() -> None:
    cluster = _limited('{"a": {"cpu": "1"}}', a1="8")
    cluster.queue("r", affinity=_affinity(required=["a"]))
    cluster.gang("mine", 1, queue="q")
    cluster.gang("theirs", 3, queue="r")
    cluster.cycle()
    assert len(cluster.placed("theirs")) == 3


@pytest.mark.parametrize("limits", ["{", "[]", '{"a": 1}', '{"a": {"cpu": "much"}}', '{"a": {"cpu": null}}'])
def test_limits_that_cannot_be_read_keep_the_queue_out(limits: str) -> None:
    cluster = _limited(limits, a1="8")
    cluster.gang("g", 1, queue="q")
    reported = cluster.cycle().pod_conditions
    assert cluster.placed("g") == {}
    assert f"annotation {LIMITS} isn't readable" in reported[0].message


def test_limits_that_cannot_be_read_keep_the_queue_off_nodes_of_no_group_too() -> None:
    """With such an annotation every node refuses."""
    cluster = Cluster(policy(NAME, {"strict": False}))
    cluster.node("n-none")
    cluster.queue("q", annotations={LIMITS: "{"})
    cluster.gang("g", 1, queue="q")
    cluster.cycle()
    assert cluster.placed("g") == {}


def test_pods_of_one_class_share_it_where_no_plugin_goes_by_queues() -> None:
    cluster = _cluster(policy("nodeorder"))
    cluster.gang("one", 1, queue="q")
    cluster.gang("two", 1)
    tasks = cluster.scheduler._state.tasks
    assert tasks["pod-one-worker-0"].cls is tasks["pod-two-worker-0"].cls
    cluster.scheduler.set_policy(policy(NAME))
    assert tasks["pod-one-worker-0"].cls is not tasks["pod-two-worker-0"].cls


def test_ill_typed_arguments_are_refused_with_their_place() -> None:
    with pytest.raises(PolicyError, match=r"plugins\[1\].arguments.strict: must be true or false, got 3"):
        policy(NAME, {"strict": 3})
