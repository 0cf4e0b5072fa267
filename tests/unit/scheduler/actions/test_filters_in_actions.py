"""What a plugin refuses for good is refused in every action: nobody goes for a pod that couldn't take the place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.api.resources import NODE_USAGES, PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES
from vcbatch.api.storage import Claim, PersistentVolume
from vcbatch.api.usage import NodeUsage
from vcbatch.scheduler import Policy, build_policy

Json = dict[str, Any]
ACTIONS = ("allocate", "preempt", "reclaim", "gangpreempt", "gangreclaim", "backfill")


def busy(cluster: Cluster) -> Json:
    """The node uses 99% of its cpu."""
    raw = {"metadata": {"name": "n"}, "cpu": 0.99, "memory": 0.1, "observedAt": cluster.now.timestamp()}
    cluster.scheduler.apply(NODE_USAGES, "ADDED", msgspec.convert(raw, NodeUsage))
    return {}


def outside(cluster: Cluster) -> Json:
    """The node is in another group than the queues may use."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": ["b"]}
    for queue in ("default", "lender"):
        cluster.queue(queue, event="MODIFIED", affinity={"nodeGroupAffinity": required})
    return {}


def unaligned(cluster: Cluster) -> Json:
    """Nothing is known of the node's NUMA nodes."""
    amounts = {"cpu": "1", "memory": "1Gi"}
    containers = [{"name": "main", "resources": {"requests": amounts, "limits": amounts}}]
    return {"notes": {"volcano.sh/numa-topology-policy": "restricted"}, "containers": containers}


def kept(cluster: Cluster) -> Json:
    """The node's idle devices keep all its cpus."""
    return {}


def unreached(cluster: Cluster) -> Json:
    """The pods' volume is elsewhere."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["elsewhere"]}]}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    volume = {"metadata": {"name": "v"}, "spec": {"nodeAffinity": affinity}, "status": {"phase": "Bound"}}
    cluster.scheduler.apply(PERSISTENTVOLUMES, "ADDED", msgspec.convert(volume, PersistentVolume))
    claim = {"metadata": {"name": "c", "namespace": "ns"}, "spec": {"volumeName": "v"}, "status": {"phase": "Bound"}}
    cluster.scheduler.apply(PERSISTENTVOLUMECLAIMS, "ADDED", msgspec.convert(claim, Claim))
    return {"volumes": [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]}


KEPT = {"enable": True, "resources": "x/gpu", "resourceProportion": {"x/gpu.cpu": 1, "x/gpu.memory": 0}}
FILTERS: list[tuple[Callable[[Cluster], Json], str, Json]] = [
    (busy, "usage", {}),
    (outside, "nodegroup", {}),
    (unaligned, "numa-aware", {}),
    (kept, "resource-strategy-fit", {"proportional": KEPT}),
    (unreached, "", {}),
]


CASES = [
    pytest.param(*given, action, id=f"{given[0].__name__}-{action}")
    for given in FILTERS
    for action in ACTIONS
    # Backfill is for pods that ask for nothing, which get no cpus of their own and take none that are kept.
    if action != "backfill" or given[0] not in (unaligned, kept)
]


def _policy(action: str, plugin: str, arguments: Json, *, on: bool) -> Policy:
    own = [{"name": plugin, "arguments": arguments}] if plugin and on else []
    predicates = {"predicate.VolumeBindingEnable": on, "predicate.VolumeZoneEnable": on}
    second = [{"name": "predicates", "arguments": predicates}, {"name": "proportion"}, *own]
    tiers = [[{"name": "priority"}, {"name": "gang"}, {"name": "conformance"}], second]
    return build_policy({"actions": action, "tiers": [{"plugins": plugins} for plugins in tiers]})


@pytest.mark.parametrize(("prepare", "plugin", "arguments", "action"), CASES)
def test_nobody_goes_for_a_pod_that_the_node_refuses(
    prepare: Callable[[Cluster], Json], plugin: str, arguments: Json, action: str
) -> None:
    """With the plugin nothing happens, without it somebody goes, or the pod is placed."""
    happened: list[bool] = []
    for on in (True, False):
        cluster = Cluster(_policy(action, plugin, arguments, on=on))
        cluster.node("n", cpu="4", x_gpu="4", labels={"volcano.sh/nodegroup-name": "a"})
        cluster.queue("lender")
        cluster.priority("high", 10)
        if action not in ("allocate", "backfill"):
            queue = "lender" if action.endswith("reclaim") else "default"
            cluster.gang("old", 4, minimum=1, queue=queue, phase="Running", pod={"nodeName": "n"})
            cluster.run("old")
        cluster.gang("new", 0, minimum=1, priorityClassName="high")
        cluster.pod("new", 0, cpu=None if action == "backfill" else "1", **prepare(cluster))
        result = cluster.cycle()
        happened.append(bool(result.evictions or result.binds))
    assert happened == [False, True]
