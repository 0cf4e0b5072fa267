"""Several schedulers on one cluster: by labels of nodes, by instances, by NodeShards."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.unit.scheduler.cluster import Cluster, Json
from vcbatch.api.meta import ObjectMeta, OwnerReference
from vcbatch.api.node import Node
from vcbatch.api.node_shard import NodeShardView
from vcbatch.api.resources import NODESHARDS
from vcbatch.scheduler import Policy, Scheduler
from vcbatch.scheduler.model.share import Ring, ShardingMode, Share

HOST = "kubernetes.io/hostname"


class Shared(Cluster):
    def __init__(self, share: Share, policy: Policy | None = None) -> None:
        super().__init__()
        self.scheduler = Scheduler(policy, share=share)
        self.queue("default")

    def shard(self, name: str, *nodes: str, using: tuple[str, ...] | None = None) -> None:
        raw = {
            "metadata": {"name": name, "uid": f"shard-{name}"},
            "spec": {"nodesDesired": list(nodes)},
            "status": {} if using is None else {"nodesInUse": list(using)},
        }
        self.scheduler.apply(NODESHARDS, "ADDED", msgspec.convert(raw, NodeShardView))

    def nodes(self, gang: str) -> set[str]:
        self.cycle()
        return set(self.placed(gang).values())


def _sharded(mode: ShardingMode, **given: Any) -> Shared:
    cluster = Shared(Share(mode=mode), **given)
    for name in ("a", "b", "c"):
        cluster.node(name, cpu="2")
    return cluster


def test_a_node_needs_one_of_the_labels() -> None:
    cluster = Shared(Share(node_labels=frozenset({("pool", "batch"), ("pool", "gpu")})))
    cluster.node("a", cpu="2")
    cluster.node("b", cpu="2", labels={"pool": "gpu"})
    cluster.node("c", cpu="2", labels={"pool": "web"})
    cluster.gang("g", 3)
    assert cluster.nodes("g") == set()
    reported = cluster.scheduler.explain("ns", "g")
    assert reported is not None
    assert [short.available for short in reported.shortages] == ["2"], "one node of two cores is this scheduler's"
    cluster.node("c", cpu="2", labels={"pool": "batch"}, event="MODIFIED")
    assert cluster.nodes("g") == {"b", "c"}


def test_a_node_that_loses_its_label_is_used_no_more() -> None:
    cluster = Shared(Share(node_labels=frozenset({("pool", "batch")})))
    cluster.node("a", labels={"pool": "batch"})
    cluster.cycle()
    cluster.node("a", event="MODIFIED")
    cluster.gang("g", 1)
    assert cluster.nodes("g") == set()
    cluster.node("a", labels={"pool": "batch"}, event="MODIFIED")
    assert cluster.nodes("g") == {"a"}


# Instances


def test_every_name_belongs_to_one_instance_and_few_move_when_one_is_added() -> None:
    names = [f"node-{i}" for i in range(2000)]
    three, four = Ring(f"s-{i}" for i in range(3)), Ring(f"s-{i}" for i in range(4))
    before, after = {n: three.owner(n) for n in names}, {n: four.owner(n) for n in names}
    assert set(before.values()) == {"s-0", "s-1", "s-2"}
    moved = {n for n in names if before[n] != after[n]}
    assert moved
    assert {after[n] for n in moved} == {"s-3"}, "names only move to the new one"


def test_the_ring_is_that_of_volcano() -> None:
    """By hand: points are the CRC-32 of number and member, a name belongs to the next point above its own."""
    import zlib

    members = ["volcano-scheduler-0", "volcano-scheduler-1"]
    points = sorted((zlib.crc32(f"{i}{m}".encode()), m) for m in members for i in range(20))
    for name in ("node-a", "node-b", "job-7", ""):
        above = [m for at, m in points if at > zlib.crc32(name.encode())]
        assert Ring(members).owner(name) == (above[0] if above else points[0][1])


def test_what_one_owner_made_belongs_to_one_instance() -> None:
    ring = Ring(["s-0", "s-1"])
    shares = [Share(ring=ring, instance=name) for name in ("s-0", "s-1")]
    owner = [OwnerReference(name="job-1"), OwnerReference(name="other")]
    metas = [ObjectMeta(name=f"job-1-{i}", owner_references=owner) for i in range(20)]
    assert {tuple(share.owns(meta) for share in shares) for meta in metas} in ({(True, False)}, {(False, True)})
    for i in range(50):
        assert sum(share.owns(ObjectMeta(name=f"bare-{i}")) for share in shares) == 1
        assert sum(share.node(Node(metadata=ObjectMeta(name=f"n-{i}"))) for share in shares) == 1


def test_instances_place_each_its_own_gangs_on_its_own_nodes() -> None:
    ring = Ring(["s-0", "s-1"])
    both = [Shared(Share(ring=ring, instance=name)) for name in ("s-0", "s-1")]
    placed: list[Json] = []
    for cluster in both:
        for i in range(8):
            cluster.node(f"node-{i}")
            cluster.gang(f"gang-{i}", 1)
        cluster.cycle()
        placed.append({gang: node for i in range(8) for gang, node in cluster.placed(f"gang-{i}").items()})
    assert not placed[0].keys() & placed[1].keys()
    assert not set(placed[0].values()) & set(placed[1].values())
    assert {ring.owner(node) for node in placed[0].values()} <= {"s-0"}
    assert {gang for one in placed for gang in one}, "somebody places something"


# Shards


def test_a_hard_shard_is_all_that_is_used() -> None:
    cluster = _sharded(ShardingMode.HARD)
    cluster.shard("volcano", "b")
    cluster.gang("g", 3)
    cluster.gang("h", 2)
    cluster.cycle()
    assert cluster.placed("g") == {}
    assert set(cluster.placed("h").values()) == {"b"}
    reported = cluster.scheduler.explain("ns", "g")
    assert reported is not None
    assert reported.nodes is not None
    assert reported.nodes["node(s) weren't in the shard of this scheduler"] == 2


def test_without_its_shard_a_hard_scheduler_uses_nothing_and_goes_on_when_it_comes() -> None:
    cluster = _sharded(ShardingMode.HARD)
    cluster.gang("g", 1)
    assert cluster.nodes("g") == set()
    cluster.shard("volcano", "c")
    assert cluster.nodes("g") == {"c"}


def test_a_soft_shard_is_filled_before_other_nodes_however_good_these_are() -> None:
    cluster = _sharded(ShardingMode.SOFT)
    cluster.node("z", cpu="64", memory="256Gi")
    cluster.shard("volcano", "b", "c")
    cluster.gang("g", 5)
    cluster.cycle()
    nodes = sorted(cluster.placed("g").values())
    assert nodes[:4] == ["b", "b", "c", "c"]
    assert nodes[4] in ("a", "z")


def test_free_room_elsewhere_goes_before_room_that_is_coming_in_the_shard() -> None:
    cluster = _sharded(ShardingMode.SOFT)
    cluster.shard("volcano", "b")
    cluster.gang("old", 1, cpu="2", pod={"nodeName": "b"}, phase="Running")
    cluster.change("old-worker-0", phase="Running", deleting=True)
    cluster.gang("g", 1)
    assert cluster.nodes("g") <= {"a", "c"}
    assert cluster.placed("g")


def test_pods_that_mind_others_keep_to_the_shard_as_well() -> None:
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOST, "labelSelector": {}}]
        }
    }
    cluster = _sharded(ShardingMode.SOFT)
    cluster.shard("volcano", "c", "b")
    cluster.gang("g", 2, pod={"affinity": apart})
    assert cluster.nodes("g") == {"b", "c"}


def test_a_node_that_another_shard_still_uses_is_waited_for() -> None:
    cluster = _sharded(ShardingMode.HARD)
    cluster.shard("volcano", "a", "b")
    cluster.shard("agent", "c", using=("b", "c"))
    cluster.gang("g", 4)
    result = cluster.cycle()
    assert not result.binds
    assert result.node_shard is not None
    assert result.node_shard.name == "volcano"
    assert result.node_shard.status["nodesInUse"] == ["a"]
    assert result.node_shard.status["nodesToAdd"] == ["b"]
    cluster.shard("agent", "c", using=("c",))
    assert cluster.nodes("g") == {"a", "b"}


def test_what_is_in_use_is_said_once_and_again_only_when_it_was_not_stored() -> None:
    cluster = _sharded(ShardingMode.SOFT)
    cluster.shard("volcano", "a")
    first = cluster.cycle().node_shard
    assert first is not None
    assert cluster.cycle().node_shard is None
    cluster.scheduler.shard_write_failed(first.uid)
    assert cluster.cycle().node_shard is not None
    cluster.shard("volcano", "a", using=("a",))
    assert cluster.cycle().node_shard is None


def test_where_nothing_is_divided_shards_mean_nothing() -> None:
    cluster = _sharded(ShardingMode.NONE)
    cluster.shard("volcano", "b")
    cluster.gang("g", 6)
    assert cluster.nodes("g") == {"a", "b", "c"}
    assert cluster.cycle().node_shard is None


@pytest.mark.parametrize("mode", [ShardingMode.HARD, ShardingMode.SOFT])
def test_pods_that_ask_for_nothing_keep_to_the_shard(mode: ShardingMode) -> None:
    cluster = _sharded(mode)
    cluster.shard("volcano", "c")
    cluster.gang("g", 3, cpu=None)
    assert cluster.nodes("g") == {"c"}
