"""Random cluster states in which nodes report their CPUs, and pods request exclusive ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.oracle.thin import thin_policy, thin_world

Json = dict[str, Any]
POLICIES = ("none", "best-effort", "restricted", "single-numa-node")

SHAPES = ((1, 4, 1), (2, 2, 2), (2, 3, 1), (2, 4, 1), (2, 4, 2), (4, 1, 2), (4, 2, 1), (4, 3, 1))
"""Number of NUMA nodes, cores of each, and threads of each core."""
CPUS = ("1", "2", "3", "3", "4", "1500m")


@st.composite
def aligned(draw: st.DrawFn) -> tuple[Json, Json]:
    """Nodes of several shapes, some of whose CPUs are in use. A node's allocatable CPUs are at most its free ones, so
    that a pod that fits gets exclusive ones. In most states all nodes and pods have the same policy."""
    usual = draw(st.sampled_from(POLICIES[1:]))
    mixed = draw(st.integers(0, 3)) == 0
    world = thin_world(draw, most_pods=3)
    world["numatopologies"] = []
    for node in world["nodes"]:
        if not mixed or draw(st.integers(0, 5)):
            spec = draw(_reports(usual, mixed))
            free = len(spec["numares"]["cpu"]["allocatable"].replace(",", " ").split()) - int(
                spec["resReserved"]["cpu"]
            )
            node["status"]["allocatable"]["cpu"] = str(max(free, 0))
            world["numatopologies"].append({"metadata": {"name": node["metadata"]["name"]}, "spec": spec})
    for group in world["podGroups"]:
        asked = draw(st.sampled_from([usual, None, *POLICIES])) if mixed else usual
        containers = [
            _container(f"c{i}", draw(st.sampled_from(CPUS)), guaranteed=not mixed or draw(_often))
            for i in range(draw(st.sampled_from([1, 1, 2])))
        ]
        for pod in world["pods"]:
            if pod["metadata"]["labels"]["gang"] == group["metadata"]["name"]:
                pod["spec"]["containers"] = containers
                pod["metadata"]["annotations"] |= {"volcano.sh/numa-topology-policy": asked} if asked else {}
    return world, thin_policy(draw, {"name": "numa-aware", "arguments": {"weight": draw(st.integers(1, 2))}})


_often = st.integers(0, 6).map(bool)


def _container(name: str, cpu: str, *, guaranteed: bool) -> Json:
    asked = {"cpu": cpu, "memory": "1Gi"}
    return {"name": name, "resources": {"requests": asked, **({"limits": asked} if guaranteed else {})}}


@st.composite
def _reports(draw: st.DrawFn, usual: str, mixed: bool) -> Json:
    """The report of one node: up to four NUMA nodes, one or two for each socket."""
    numas, cores, threads = draw(st.sampled_from(SHAPES))
    of_a_socket = draw(st.integers(1, 2))
    places = [
        {"numa": numa, "socket": numa // of_a_socket, "core": core + cores * (numa % of_a_socket)}
        for numa in range(numas)
        for core in range(cores)
        for _ in range(threads)
    ]
    taken = draw(st.integers(0, 2 ** len(places) - 1)) & draw(st.sampled_from([0x555555, 0x36DB6D, 0xFFFFFF]))
    return {
        "policies": {
            "CPUManagerPolicy": draw(st.sampled_from(["static", "static", "none"])) if mixed else "static",
            "TopologyManagerPolicy": draw(st.sampled_from([usual, usual, *POLICIES])) if mixed else usual,
        },
        "numares": {"cpu": {"allocatable": ",".join(str(i) for i in range(len(places)) if not taken >> i & 1)}},
        "cpuDetail": {str(i): place for i, place in enumerate(places)},
        "resReserved": {"cpu": draw(st.sampled_from(["0", "0", "1", "2"]))},
    }
