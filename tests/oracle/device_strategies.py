"""Random cluster states whose nodes have cards that pods share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from tests.oracle.thin import thin_policy, thin_world

Json = dict[str, Any]
COUNTED = ("volcano.sh/gpu-memory", "volcano.sh/gpu-number", "volcano.sh/vgpu-number")
"""Resources that are both a sum that pods use parts of, as any resource, and tracked for each card."""


def _cut(group: str, *parts: tuple[int, int]) -> Json:
    return {"group": group, "geometries": [{"name": f"{m}", "memory": m, "count": n} for m, n in parts]}


CONFIG: Json = {
    "metadata": {"name": "volcano-vgpu-device-config", "namespace": "kube-system"},
    "data": {
        "device-config.yaml": json.dumps(
            {
                "nvidia": {
                    "knownMigGeometries": [
                        {"models": ["A100"], "allowedGeometries": [_cut("a", (3, 2), (7, 1)), _cut("b", (5, 3))]}
                    ]
                }
            }
        )
    },
}
"""Cards of one type can be partitioned in two ways; for the other types there is no configuration."""


KINDS = (("T4", "hami-core"), ("A100", "hami-core"), ("A100", "mig"), ("A100", "mig"), ("T4", "mig"))
"""Types of cards, and how they are shared."""
CUT = (("A100", "mig"),)
AMOUNTS: tuple[Json, ...] = ({}, *({"memory": size} for size in "23457"), {"memory-percentage": "30"})


@st.composite
def carded(draw: st.DrawFn) -> tuple[Json, Json]:
    """Cards that are shared in one of the modes, some already allocated to running pods. In some states all vGPUs are
    partitioned."""
    mode = draw(st.sampled_from(["GPUSharing", "GPUNumber", "VGPU", "VGPU", "VGPU"]))
    world = thin_world(draw, cpus=("8",), most_nodes=3, most_pods=5)
    world["configMaps"] = [CONFIG]
    kinds = draw(st.sampled_from([KINDS, CUT]))
    cards = {node["metadata"]["name"]: _cards(draw, node, mode, kinds) for node in world["nodes"]}
    for group in world["podGroups"]:
        containers = _containers(draw, mode)
        notes = _requests(draw) if mode == "VGPU" else {}
        gold = draw(st.booleans())
        for pod in world["pods"]:
            if pod["metadata"]["labels"]["gang"] != group["metadata"]["name"]:
                continue
            pod["spec"]["containers"] = containers
            pod["metadata"]["annotations"] |= notes
            pod["metadata"]["labels"] |= {"tier": "gold"} if gold else {}
            asks = any(container["resources"]["limits"] for container in containers)
            if asks and (there := cards.get(pod["spec"].get("nodeName", ""))):
                pod["metadata"]["annotations"] |= _given(draw, mode, there)
    arguments = {
        f"deviceshare.{mode}Enable": True,
        "deviceshare.SchedulePolicy": draw(st.sampled_from(["", "binpack", "spread"])),
        "deviceshare.ScheduleWeight": draw(st.sampled_from([0, 1, 1, 2])),
        "deviceshare.GPUExclusiveRules": draw(st.sampled_from([[], [], [{"tier": "gold"}]])),
    }
    return world, thin_policy(draw, {"name": "deviceshare", "arguments": arguments})


def _cards(draw: st.DrawFn, node: Json, mode: str, kinds: Sequence[tuple[str, str]]) -> list[str]:
    """Add cards to the node; returns those that can be in use already, by UUID or by number."""
    status, number = node["status"], draw(st.integers(0, 1 if kinds is CUT else 3))
    status["capacity"] = status["allocatable"]
    if mode == "VGPU":
        name, register = node["metadata"]["name"], ""
        whole: list[str] = []
        for i in range(number):
            kind, how = draw(st.sampled_from(kinds))
            healthy = "true" if draw(st.integers(0, 9)) else "false"
            memory = draw(st.sampled_from([8, 16]))
            register += f"{name}-c{i},{draw(st.integers(1, 5))},{memory},NVIDIA-{kind},{healthy},{how}:"
            whole += [f"{name}-c{i}"] if (kind, how) != ("A100", "mig") else []
        node["metadata"]["annotations"] = {"volcano.sh/node-vgpu-register": register}
        status["allocatable"]["volcano.sh/vgpu-number"] = "100"
        return whole
    if number:
        status["allocatable"] |= {"volcano.sh/gpu-number": str(number), "volcano.sh/gpu-memory": str(number * 8)}
        bad = draw(st.sampled_from(["", "", "0", "1"]))
        node["metadata"]["annotations"] = {"volcano.sh/gpu-unhealthy-ids": bad}
    return [str(i) for i in range(number)]


def _given(draw: st.DrawFn, mode: str, cards: list[str]) -> Json:
    """The annotations for the cards of a running pod."""
    card = draw(st.sampled_from(cards))
    if mode != "VGPU":
        return {"volcano.sh/gpu-index": card}
    memory, cores = draw(st.sampled_from([3, 5])), draw(st.sampled_from([0, 30, 100]))
    return {"volcano.sh/vgpu-ids-new": f"{card},NVIDIA,{memory},{cores}:"}


def _containers(draw: st.DrawFn, mode: str) -> list[Json]:
    out: list[Json] = []
    for i in range(draw(st.sampled_from([1, 1, 2]))):
        limits = draw(_shares(mode))
        asked = {"cpu": "250m", "memory": "1Gi", **{k: v for k, v in limits.items() if k in COUNTED}}
        out.append({"name": f"c{i}", "resources": {"requests": asked, "limits": limits}})
    return out


@st.composite
def _shares(draw: st.DrawFn, mode: str) -> Json:
    """The requests of a container for cards."""
    if draw(st.integers(0, 5)) == 0:
        return {}
    if mode == "GPUSharing":
        return {"volcano.sh/gpu-memory": draw(st.sampled_from(["2", "3", "5", "9"]))}
    if mode == "GPUNumber":
        return {"volcano.sh/gpu-number": draw(st.sampled_from(["1", "2"]))}
    out = {"volcano.sh/vgpu-number": draw(st.sampled_from(["1", "1", "2"]))}
    memory = draw(st.sampled_from(AMOUNTS))
    if memory and draw(st.integers(0, 5)) == 0:
        memory = {"memory": "3", "memory-percentage": draw(st.sampled_from(["101", "50"]))}
    cores = draw(st.sampled_from([{}, {}, {"cores": "30"}, {"cores": "100"}, {"cores": "50"}]))
    return out | {f"volcano.sh/vgpu-{name}": value for name, value in (memory | cores).items()}


def _requests(draw: st.DrawFn) -> Json:
    """The annotations of a pod that restrict its cards by type or UUID, or spread its gang over nodes."""
    return draw(
        st.sampled_from(
            [
                {},
                {},
                {},
                {"volcano.sh/vgpu-podgroup-policy": "spread"},
                {"volcano.sh/vgpu-use-gpuuuid": "n0-c0,n1-c1,n2-c0"},
                {"volcano.sh/vgpu-nouse-gpuuuid": "n0-c0,n1-c0"},
                {"nvidia.com/use-gputype": "a100"},
                {"nvidia.com/nouse-gputype": "A100"},
                {"nvidia.com/use-gputype": "T4", "volcano.sh/vgpu-nouse-gpuuuid": "n0-c1"},
            ]
        )
    )
