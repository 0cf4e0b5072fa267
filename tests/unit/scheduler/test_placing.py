"""Where gangs go, and what happens to them after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.api.pod import Pod, PodSpec
from vcbatch.api.resources import JOBS, PODGROUPS, PODS
from vcbatch.api.scheduling import PodGroupView
from vcbatch.scheduler import DEFAULT_POLICY, WaitReason, build_policy, parse_policy
from vcbatch.scheduler.framework.plugin import Floats, Plugin, Rejection
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.classes import Profile, TaskClass
from vcbatch.scheduler.model.columns import Columns


def test_a_gang_waits_for_pods_that_are_ending_and_nobody_takes_their_room() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="4")
    cluster.gang("old", 1, cpu="3", pod={"nodeName": "a"}, phase="Running")
    cluster.change("old-worker-0", phase="Running", deleting=True)
    cluster.gang("first", 1, cpu="4")
    cluster.gang("second", 1, cpu="1")
    result = cluster.cycle()
    assert not result.binds
    assert [(h.name, h.node, h.promised) for h in result.held] == [("first-worker-0", "a", True)]
    reported = cluster.scheduler.explain("ns", "first")
    assert reported is not None
    assert reported.reason is WaitReason.WAITING_FOR_RELEASE
    cluster.delete("old-worker-0")
    assert cluster.placed("first") == {}
    cluster.cycle()
    assert cluster.placed("first") == {"first-worker-0": "a"}


def test_a_failed_bind_is_tried_again() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="2")
    cluster.gang("g", 2)
    binds = cluster.scheduler.cycle(cluster.now).binds
    assert len(binds) == 2
    cluster.scheduler.bind_failed(binds[0].uid, "conflict")
    again = cluster.scheduler.cycle(cluster.now).binds
    assert [b.uid for b in again] == [binds[0].uid]


def test_an_event_from_before_the_bind_doesnt_undo_it() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="1")
    cluster.gang("g", 1)
    assert len(cluster.scheduler.cycle(cluster.now).binds) == 1
    cluster.change("g-worker-0")
    assert not cluster.scheduler.cycle(cluster.now).binds


def test_elastic_tails_are_shared_between_gangs() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="8")
    cluster.gang("one", 8, minimum=1)
    cluster.gang("two", 8, minimum=1)
    cluster.cycle()
    assert (len(cluster.placed("one")), len(cluster.placed("two"))) == (4, 4)


def test_queues_get_what_their_weights_say() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="9")
    for name, weight in (("light", 1), ("heavy", 2)):
        cluster.queue(name, weight=weight)
        cluster.gang(name, 9, minimum=1, queue=name)
    cluster.cycle()
    assert (len(cluster.placed("light")), len(cluster.placed("heavy"))) == (3, 6)


def test_higher_priority_first() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="2")
    cluster.priority("high", 100)
    cluster.gang("low", 2)
    cluster.gang("high", 2, priorityClassName="high")
    cluster.cycle()
    assert len(cluster.placed("high")) == 2
    assert not cluster.placed("low")


def test_a_smaller_gang_passes_a_blocked_one_unless_the_queue_is_fifo() -> None:
    for strategy, passes in (("traverse", True), ("fifo", False)):
        cluster = Cluster()
        cluster.node("a", cpu="2")
        cluster.queue("q", dequeueStrategy=strategy)
        cluster.gang("holder", 1)
        cluster.cycle()
        cluster.gang("blocked", 2, queue="q")
        cluster.gang("small", 1, queue="q")
        cluster.cycle()
        assert bool(cluster.placed("small")) is passes


def test_a_gang_that_can_not_start_as_things_are_holds_up_nobody_in_a_line() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="2")
    cluster.queue("q", dequeueStrategy="fifo")
    cluster.gang("huge", 1, queue="q", cpu="3")
    cluster.gang("wide", 3, queue="q")
    cluster.gang("small", 1, queue="q")
    cluster.cycle()
    assert cluster.placed("small")
    cluster.gang("second", 2, queue="q")
    cluster.gang("third", 1, queue="q")
    cluster.cycle()
    assert not cluster.placed("third"), "the second may start one day, so it is the first in line"
    reported = cluster.scheduler.explain("ns", "third")
    assert reported is not None and "queue q is first in, first out: ns/second is first" in reported.message
    cluster.node("b", cpu="3")
    cluster.cycle()
    assert cluster.placed("huge"), "it is the first as soon as it can start"
    assert not cluster.placed("third")


def test_role_minimums_hold() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="3")
    cluster.gang("g", 0, minimum=3, minTaskMember={"worker": 2, "ps": 1})
    for index in range(3):
        cluster.pod("g", index)
    cluster.pod("g", 0, role="ps", cpu="1")
    cluster.cycle()
    assert Counter(name.split("-")[1] for name in cluster.placed("g")) == {"worker": 2, "ps": 1}


def test_a_gang_that_lacks_only_pods_that_ask_for_nothing_lets_others_go_first() -> None:
    plugins = [{"plugins": [{"name": "gang"}, {"name": "predicates"}]}]
    cluster = Cluster(build_policy({"actions": "allocate", "tiers": plugins}))
    cluster.node("n", cpu="2")
    cluster.gang("old", 2, minimum=2)
    cluster.pod("old", 2, cpu=None)
    cluster.change("old-worker-0", phase="Running", node="n")
    cluster.gang("new", 1)
    assert [bind.name for bind in cluster.cycle().binds] == ["new-worker-0"]


def test_who_runs_counts_where_a_role_fails_and_roles_need_more_than_the_gang() -> None:
    cluster = Cluster()
    cluster.node("n", cpu="3")
    cluster.gang("g", 0, minimum=3, minTaskMember={"a": 2, "b": 2})
    for i in range(2):
        cluster.pod("g", i, role="a")
        cluster.change(f"g-a-{i}", phase="Running", node="n")
    cluster.pod("g", 0, role="b", nodeSelector={"zone": "nowhere"})
    cluster.pod("g", 0, role="c")
    assert [bind.name for bind in cluster.cycle().binds] == ["g-c-0"]


def test_pods_of_others_take_room_and_are_left_alone() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="2")
    cluster.gang("g", 1, cpu="2")
    cluster.pod("x", 0, schedulerName="default-scheduler", nodeName="a")
    cluster.pod("x", 1, schedulerName="default-scheduler")
    assert not cluster.cycle().binds
    cluster.delete("x-worker-0")
    assert [b.name for b in cluster.cycle().binds] == ["g-worker-0"]


def test_gated_pods_wait() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.gang("g", 2, minimum=1, pod={"schedulingGates": [{"name": "mine"}]})
    assert not cluster.cycle().binds
    raw = cluster.pods["g-worker-1"]
    raw["spec"]["schedulingGates"] = None
    cluster.change("g-worker-1")
    assert [b.name for b in cluster.cycle().binds] == ["g-worker-1"]


def test_host_ports_are_taken_once_per_node() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.node("b")
    ports = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}, "ports": [{"hostPort": 80}]}]}
    cluster.gang("two", 2, pod=ports)
    cluster.gang("third", 1, pod=ports)
    cluster.cycle()
    assert sorted(cluster.placed("two").values()) == ["a", "b"]
    reported = cluster.scheduler.explain("ns", "third")
    assert reported is not None
    assert reported.nodes == {"node(s) didn't have free ports for the requested pod ports": 2}
    cluster.delete("two-worker-0")
    cluster.cycle()
    assert len(cluster.placed("third")) == 1


def _anti(key: str, gang: str) -> dict[str, object]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"gang": gang}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_anti_affinity_spreads_and_keeps_others_out() -> None:
    cluster = Cluster()
    for name in ("a", "b"):
        cluster.node(name)
    cluster.gang("g", 2, pod={"affinity": _anti("kubernetes.io/hostname", "g")})
    cluster.cycle()
    assert sorted(cluster.placed("g").values()) == ["a", "b"]
    cluster.gang("h", 1, pod={"affinity": _anti("kubernetes.io/hostname", "g")})
    assert not cluster.cycle().binds
    reported = cluster.scheduler.explain("ns", "h")
    assert reported is not None
    assert reported.nodes == {"node(s) didn't match pod anti-affinity rules": 2}
    assert "the nodes with room for h-worker-0 refuse it" in reported.message


def test_a_member_that_its_own_gang_keeps_away_counts_for_its_own_rule() -> None:
    cluster = Cluster()
    for name in ("a", "b"):
        cluster.node(name)
    cluster.gang("g", 3, pod={"affinity": _anti("kubernetes.io/hostname", "g")})
    assert not cluster.cycle().binds
    reported = cluster.scheduler.explain("ns", "g")
    assert reported is not None
    assert reported.nodes == {"node(s) didn't match pod anti-affinity rules": 2}


def test_anti_affinity_of_pods_that_are_there_counts() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.gang("loner", 1, pod={"affinity": _anti("kubernetes.io/hostname", "other")})
    cluster.cycle()
    cluster.gang("other", 1)
    assert not cluster.cycle().binds
    cluster.delete_gang("loner")
    assert len(cluster.cycle().binds) == 1


def test_affinity_gathers_a_gang_in_one_zone() -> None:
    cluster = Cluster()
    for name, zone in (("a", "x"), ("b", "y"), ("c", "y")):
        cluster.node(name, cpu="2", labels={"zone": zone})
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"gang": "g"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster.gang("g", 2, pod={"affinity": affinity})
    cluster.cycle()
    zones = {{"a": "x", "b": "y", "c": "y"}[node] for node in cluster.placed("g").values()}
    assert len(zones) == 1


def test_a_pod_that_is_in_no_zone_makes_nobody_second() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="1")
    cluster.gang("before", 1)
    cluster.cycle()
    assert cluster.placed("before") == {"before-worker-0": "a"}
    cluster.node("b", labels={"zone": "x"})
    term = {"topologyKey": "zone", "labelSelector": {}}
    cluster.gang("g", 1, pod={"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "b"}


def test_topology_spread_counts_domains() -> None:
    cluster = Cluster()
    for name, zone in (("a", "x"), ("b", "y"), ("c", "z")):
        cluster.node(name, labels={"zone": zone})
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"gang": "g"}},
    }
    cluster.gang("g", 6, pod={"topologySpreadConstraints": [spread]})
    cluster.cycle()
    assert Counter(cluster.placed("g").values()) == {"a": 2, "b": 2, "c": 2}


def test_preferences_of_nodes_are_heard() -> None:
    cluster = Cluster()
    cluster.node("a", taints=[{"key": "k", "effect": "PreferNoSchedule"}])
    cluster.node("b", cpu="4", memory="16Gi")
    cluster.node("c", cpu="4", memory="16Gi", labels={"fast": "yes"})
    preferred = [{"weight": 10, "preference": {"matchExpressions": [{"key": "fast", "operator": "Exists"}]}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    cluster.gang("picky", 1, pod={"affinity": affinity})
    cluster.cycle()
    assert cluster.placed("picky") == {"picky-worker-0": "c"}


def test_a_node_that_leaves_and_comes_back_keeps_its_pods() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="1")
    cluster.gang("g", 1)
    cluster.cycle()
    cluster.node("a", cpu="1", event="DELETED")
    cluster.gang("h", 1)
    assert not cluster.cycle().binds
    cluster.node("a", cpu="1")
    assert not cluster.cycle().binds
    cluster.delete("g-worker-0")
    assert len(cluster.cycle().binds) == 1


def test_the_same_name_with_another_uid_is_another_gang() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.gang("g", 1)
    cluster.cycle()
    old = cluster.groups["g"]
    cluster.groups["g"] = {**old, "metadata": {**old["metadata"], "uid": "group-new"}, "status": {}}
    cluster._send(PODGROUPS, PodGroupView, "ADDED", cluster.groups["g"])
    cluster._send(PODGROUPS, PodGroupView, "DELETED", old)
    assert cluster.scheduler.phase("ns", "g") == "Pending", "the deletion was of the other one"


def test_queue_status_counts_what_is_held_up_to_the_root() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.queue("root")
    cluster.gang("g", 2)
    updates = {u.name: u.allocated for u in cluster.cycle().queue_statuses}
    held = {"cpu": "2", "memory": "2Gi", "pods": "2"}
    assert updates == {"default": held, "root": held}
    assert not cluster.cycle().queue_statuses
    cluster.delete_gang("g")
    updates = {u.name: u.allocated for u in cluster.cycle().queue_statuses}
    assert updates["default"] == {"cpu": "0", "memory": "0", "pods": None}


def test_an_object_of_another_kind_is_refused() -> None:
    cluster = Cluster()
    with pytest.raises(TypeError, match="doesn't read jobs"):
        cluster.scheduler.apply(JOBS, "ADDED", PodSpec())
    cluster.scheduler.apply(PODS, "BOOKMARK", Pod())


class _Backwards(Plugin):
    """Prefers the last node by name, and keeps `never` for nobody."""

    def open(self, session: Session) -> None:
        self._infos = session.nodes.infos

    def rejections(self, profile: Profile) -> Sequence[Rejection]:
        return [Rejection("node(s) are kept free", np.array([info.name == "never" for info in self._infos]))]

    def scores(self, cls: TaskClass, columns: Columns) -> Floats:
        return np.broadcast_to(columns.rows.astype(np.float64), columns.shape)


def test_a_plugin_of_ones_own_decides_on_arrays() -> None:
    document = {"actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}, {"name": "backwards"}]}]}
    cluster = Cluster(build_policy(document, plugins={"backwards": _Backwards}))
    for name in ("a", "b", "never"):
        cluster.node(name, cpu="1")
    cluster.gang("g", 1)
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "b"}
    cluster.gang("h", 2)
    cluster.cycle()
    reported = cluster.scheduler.explain("ns", "h")
    assert reported is not None
    assert reported.nodes == {"node(s) are kept free": 1, "Insufficient cpu": 2}


def test_a_new_policy_counts_from_the_next_cycle() -> None:
    cluster = Cluster(parse_policy("actions: enqueue"))
    cluster.node("a")
    cluster.gang("g", 1)
    assert not cluster.cycle().binds
    cluster.scheduler.set_policy(parse_policy(DEFAULT_POLICY))
    assert cluster.scheduler.dirty
    assert len(cluster.cycle().binds) == 1


def test_a_refused_bind_is_told_on_the_pod() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.gang("g", 1)
    (bind,) = cluster.scheduler.cycle(cluster.now).binds
    cluster.scheduler.bind_failed(bind.uid, "node is gone")
    result = cluster.scheduler.cycle(cluster.now)
    assert [(c.reason, c.message) for c in result.pod_conditions] == [
        ("SchedulerError", "binding was refused: node is gone")
    ]
