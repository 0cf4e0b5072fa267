"""What holds for every gang that is to be near together, on random networks."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oracle.topology import HyperNode, Network
from tests.support.examples import examples
from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.domains import SOFT, hard, hyper_node, send
from vcbatch.scheduler import Policy, build_policy

Json = dict[str, Any]
WORLDS = settings(max_examples=examples(120), suppress_health_check=list(HealthCheck))

PLUGINS = ("gang", "predicates", "nodeorder", "binpack", "network-topology-aware")


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    chosen = [{"name": name} for name in PLUGINS if name == "gang" or draw(st.booleans())]
    return build_policy({"actions": "enqueue, allocate, backfill", "tiers": [{"plugins": chosen}]})


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Up to nine nodes in racks of tier 1, of which some are below spines of tier 2 or 3; one node is in none."""
    free: dict[str, int] = {"alone": draw(st.integers(0, 4))}
    hyper_nodes: dict[str, HyperNode] = {}
    for r in range(draw(st.integers(1, 4))):
        names = [f"r{r}-{i}" for i in range(draw(st.integers(1, 2)))]
        free |= {name: draw(st.integers(0, 4)) for name in names}
        hyper_nodes[f"r{r}"] = HyperNode(1, nodes=names)
    left = sorted(hyper_nodes)
    for s in range(draw(st.integers(0, 2))):
        below, left = left[: (taken := draw(st.integers(1, 2)))], left[taken:]
        if below:
            hyper_nodes[f"s{s}"] = HyperNode(draw(st.integers(2, 3)), below=below)
    return Network(hyper_nodes, free)


def cluster_of(network: Network, policy: Policy) -> Cluster:
    cluster = Cluster(policy)
    for name, cpu in sorted(network.free.items()):
        cluster.node(name, cpu=str(cpu))
    for name, one in network.hyper_nodes.items():
        send(cluster, hyper_node(name, one.tier, nodes=one.nodes, below=one.below))
    return cluster


def nodes_of(cluster: Cluster, gang: str) -> set[str]:
    return set(cluster.placed(gang).values())


@WORLDS
@given(networks(), policies(), st.data())
def test_a_gang_starts_as_near_as_it_can_where_brute_force_finds_room(
    network: Network, policy: Policy, data: st.DataObject
) -> None:
    size, cpu = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    limit = data.draw(st.one_of(st.none(), st.integers(1, 5)))
    cluster = cluster_of(network, policy)
    cluster.gang("g", size, cpu=str(cpu), networkTopology=SOFT if limit is None else hard(limit))
    cluster.cycle()
    nearest = network.nearest(limit=limit, held=set(), cpu=cpu, pods=size)
    assert len(cluster.placed("g")) == (0 if nearest is None else size)
    if nearest is not None:
        assert network.tier_of(nodes_of(cluster, "g")) == nearest


@WORLDS
@given(networks(), policies(), st.data())
def test_lost_members_come_back_near_the_others_where_brute_force_finds_room(
    network: Network, policy: Policy, data: st.DataObject
) -> None:
    """Some members run where somebody put them, within the limit or not; the others are new."""
    held = data.draw(st.lists(st.sampled_from(sorted(network.free)), min_size=1, max_size=2, unique=True))
    limit, lost = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    free = {name: cpu - (name in held) for name, cpu in network.free.items()}
    cluster = cluster_of(network, policy)
    cluster.gang("g", len(held) + lost, networkTopology=hard(limit))
    for index, node in enumerate(held):
        cluster.change(f"g-worker-{index}", phase="Running", node=node)
    result = cluster.cycle()
    room = Network(network.hyper_nodes, free).nearest(limit=limit, held=set(held), cpu=1, pods=lost)
    assert len(result.binds) == (0 if room is None else lost)


@WORLDS
@given(networks(), policies(), st.data())
def test_gangs_are_never_split_further_than_allowed_nor_started_in_part(
    network: Network, policy: Policy, data: st.DataObject
) -> None:
    """Gangs come, lose members and go; those that run are within their tier, and have their minimum."""
    cluster = cluster_of(network, policy)
    limits: dict[str, tuple[int, int]] = {}
    for step in range(data.draw(st.integers(2, 4))):
        size, limit = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
        minimum = data.draw(st.integers(1, size))
        limits[f"g{step}"] = (minimum, limit)
        cluster.gang(
            f"g{step}", size, minimum=minimum, cpu=str(data.draw(st.integers(1, 2))), networkTopology=hard(limit)
        )
        cluster.cycle()
        for gang, (least, tier) in limits.items():
            nodes = nodes_of(cluster, gang)
            assert not nodes or network.tier_of(nodes) <= tier
            assert not nodes or len(cluster.placed(gang)) >= least
        if data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(sorted(limits)))
            del limits[gone]
            cluster.delete_gang(gone)


@WORLDS
@given(networks(), policies(), st.data())
def test_gangs_inside_a_gang_are_whole_and_near_together(network: Network, policy: Policy, data: st.DataObject) -> None:
    size, parts = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    least = data.draw(st.integers(0, parts))
    limit, own = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    rule = {"name": "w", "subGroupSize": size, "minSubGroups": least, "matchLabelKeys": ["part"]}
    cluster = cluster_of(network, policy)
    cluster.gang(
        "g",
        0,
        minimum=max(least, 1) * size,
        networkTopology=hard(limit),
        subGroupPolicy=[{**rule, "networkTopology": hard(own)}],
    )
    for index in range(parts * size):
        cluster.pod("g", index, part=index // size)
    cluster.cycle()
    placed = cluster.placed("g")
    assert not placed or len(placed) >= max(least, 1) * size
    assert not placed or network.tier_of(set(placed.values())) <= limit
    for part in range(parts):
        members = [placed[f"g-worker-{i}"] for i in range(part * size, (part + 1) * size) if f"g-worker-{i}" in placed]
        assert len(members) in (0, size)
        assert not members or network.tier_of(set(members)) <= min(own, limit)
