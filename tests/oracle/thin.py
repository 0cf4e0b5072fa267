"""Minimal random cluster states: a few nodes and gangs and nothing else, for complex rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]
BY_AMOUNTS = ("leastrequested", "mostrequested", "balancedresource", "tainttoleration")


def thin_world(
    draw: st.DrawFn,
    *,
    cpus: Sequence[str] = ("4", "8"),
    most_nodes: int = 4,
    most_pods: int = 4,
    guests: bool = False,
) -> Json:
    """Nodes in zones, and up to three gangs of one role. The first may run, and always runs with `guests`."""
    nodes = [_node(i, draw(st.sampled_from(cpus)), draw(st.sampled_from("ab"))) for i in range(most_nodes)]
    world: Json = {"nodes": nodes[: draw(st.integers(2, most_nodes))], "podGroups": [], "pods": []}
    world["queues"] = [{"metadata": {"name": "q", "uid": "queue"}, "spec": {"weight": 1}}]
    for g in range(draw(st.integers(2 if guests else 1, 3))):
        size = draw(st.integers(1, most_pods))
        runs = g == 0 and (guests or draw(st.booleans()))
        meta = {"name": f"g{g}", "namespace": "ns", "uid": f"group-{g}", "creationTimestamp": f"2026-01-0{g + 1}"}
        spec = {"minMember": draw(st.sampled_from([1, size])), "queue": "q"}
        phase = "Running" if runs else "Inqueue"
        world["podGroups"].append({"metadata": meta, "spec": spec, "status": {"phase": phase}})
        cpu = draw(st.sampled_from(["500m", "1", "2"]))
        for i in range(size):
            on = draw(st.sampled_from(world["nodes"]))["metadata"]["name"] if runs else ""
            world["pods"].append(_pod(g, i, cpu, on))
    return world


def _node(i: int, cpu: str, zone: str) -> Json:
    return {
        "metadata": {"name": f"n{i}", "uid": f"node-{i}", "labels": {"zone": zone, "kubernetes.io/hostname": f"n{i}"}},
        "spec": {},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod(g: int, i: int, cpu: str, node: str) -> Json:
    meta = {
        "name": f"g{g}-t0-{i}",
        "namespace": "ns",
        "uid": f"pod-{g}-t0-{i}",
        "labels": {"gang": f"g{g}", "role": f"t{i % 2}"},
        "annotations": {"scheduling.k8s.io/group-name": f"g{g}", "volcano.sh/task-spec": "t0"},
    }
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    spec: Json = {"schedulerName": "volcano", "containers": [{"name": "main", "resources": resources}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": meta, "spec": spec, "status": {"phase": "Running" if node else "Pending"}}


def thin_policy(draw: st.DrawFn, *plugins: Json) -> Json:
    """A policy in which these plugins decide nearly everything."""
    first: list[Json] = [{"name": "gang"}, {"name": "predicates"}]
    if draw(st.integers(0, 2)):
        first.append({"name": "nodeorder", "arguments": {f"{name}.weight": 0 for name in BY_AMOUNTS}})
    return {"actions": "allocate, backfill", "tiers": [{"plugins": first}, {"plugins": list(plugins)}]}
