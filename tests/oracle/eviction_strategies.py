"""Random cluster states with full nodes, where pods must be evicted, and the policies that allow evictions."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.oracle.strategies import near, networks, parts

Json = dict[str, Any]

CLASSES = {"low": 1, "mid": 5, "high": 10}
PEACEFUL = "peaceful"
CPUS = (1, 1, 2, 3)


def _tiers(*tiers: tuple[str, ...]) -> list[Json]:
    """`-name` is a plugin whose eviction switches are off, `name+` one with a hierarchy of queues."""
    out: list[Json] = []
    for tier in tiers:
        plugins: list[Json] = []
        for text in tier:
            plugin: Json = {"name": text.strip("-+")}
            if text.startswith("-"):
                plugin["enablePreemptable"] = False
            if text.endswith("+"):
                plugin["enableHierarchy"] = True
            plugins.append(plugin)
        out.append({"plugins": plugins})
    return out


TIERS = {
    "default": _tiers(("priority", "gang", "conformance"), ("drf", "predicates", "proportion", "nodeorder")),
    "installed": _tiers(
        ("priority", "-gang", "conformance"),
        ("overcommit", "-drf", "predicates", "proportion", "nodeorder", "binpack"),
    ),
    "capacity": _tiers(("priority", "-gang", "conformance"), ("drf", "predicates", "capacity", "nodeorder")),
    "together": _tiers(("priority", "-gang", "capacity", "conformance", "pdb", "cdp"), ("predicates", "binpack")),
    "shares": _tiers(("priority", "gang"), ("drf", "predicates", "binpack")),
    "shares first": _tiers(("drf", "-gang", "conformance"), ("priority", "predicates", "nodeorder")),
    "budgets": _tiers(("priority", "-gang", "pdb", "cdp"), ("drf", "predicates", "proportion", "nodeorder")),
    "hierarchy": _tiers(("priority", "-gang", "conformance"), ("predicates", "capacity+", "nodeorder")),
}
WINDOWS = {"now": "00:00-06:00", "later": "10:00-11:00"}
"""Time windows of revocable zones, at midnight and later."""
SHUFFLE = _tiers(("gang", "conformance"), ("tdm", "pdb"), ("cdp", "predicates"))
ACTIONS = (
    "enqueue, allocate, preempt, reclaim, backfill",
    "enqueue, allocate, reclaim, preempt",
    "allocate, preempt",
    "allocate, reclaim",
    "preempt, allocate",
    "allocate, gangpreempt",
    "enqueue, allocate, gangreclaim, backfill",
    "allocate, gangpreempt, gangreclaim",
)


@st.composite
def policies(draw: st.DrawFn) -> Json:
    tiers = [{"plugins": [dict(p) for p in tier["plugins"]]} for tier in TIERS[draw(st.sampled_from(list(TIERS)))]]
    for tier in tiers:
        for plugin in tier["plugins"]:
            if plugin["name"] == "capacity" and plugin.get("enableHierarchy"):
                plugin["arguments"] = {"ancestorReclaimLevel": draw(st.integers(0, 2))}
    configurations = [
        {"name": name, "arguments": {"preventTakeBack": True}} for name in ("preempt", "reclaim") if draw(st.booleans())
    ]
    return {"actions": draw(st.sampled_from(ACTIONS)), "tiers": tiers, "configurations": configurations}


@st.composite
def shuffles(draw: st.DrawFn) -> Json:
    """Policies for `shuffle`, whose plugins evict pods even if no pod is pending."""
    tiers = [
        {"plugins": [dict(p) for p in tier["plugins"] if p["name"] == "tdm" or draw(st.booleans())]} for tier in SHUFFLE
    ]
    for tier in tiers:
        for plugin in tier["plugins"]:
            if plugin["name"] == "tdm":
                plugin["arguments"] = {f"tdm.revocable-zone.{zone}": window for zone, window in WINDOWS.items()}
    return {"actions": "shuffle", "tiers": [tier for tier in tiers if tier["plugins"]]}


@st.composite
def worlds(draw: st.DrawFn) -> Json:
    """Gangs that run where capacity was free, some of whose pods are terminating, and pending gangs."""
    world: Json = {
        "nodes": [_node(draw, i) for i in range(draw(st.integers(1, 4)))],
        "queues": _queues(draw),
        "priorityClasses": [
            *({"metadata": {"name": n, "uid": n}, "value": v} for n, v in CLASSES.items()),
            {"metadata": {"name": PEACEFUL, "uid": PEACEFUL}, "value": 10, "preemptionPolicy": "Never"},
        ],
        "podGroups": [],
        "pods": [],
        "podDisruptionBudgets": [],
    }
    if draw(st.booleans()):
        world["hyperNodes"] = draw(networks([node["metadata"]["name"] for node in world["nodes"]]))
    room = {n["metadata"]["name"]: _room(n) for n in world["nodes"]}
    running = draw(st.integers(2, 5))
    for g in range(running + draw(st.integers(1, 3))):
        _gang(draw, world, g, room if g < running else None)
    for g in range(running):
        if draw(st.integers(0, 3)) == 0:
            _budget(draw, world, g)
    return world


def _node(draw: st.DrawFn, i: int) -> Json:
    allocatable = {
        "cpu": draw(st.sampled_from(["2", "4", "6"])),
        "memory": "16Gi",
        "pods": draw(st.sampled_from(["3", "10"])),
    }
    spec: Json = {}
    effect = draw(st.sampled_from([None, None, None, None, "NoSchedule", "PreferNoSchedule"]))
    if effect:
        spec["taints"] = [{"key": "dedicated", "value": "train", "effect": effect}]
    labels = {"zone": draw(st.sampled_from(["a", "b"]))}
    if draw(st.booleans()):
        labels["volcano.sh/revocable-zone"] = draw(st.sampled_from(list(WINDOWS)))
    return {
        "metadata": {"name": f"n{i}", "uid": f"node-{i}", "labels": labels},
        "spec": spec,
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _room(node: Json) -> list[int]:
    """The capacity of a node: CPUs, GiB and pods."""
    allocatable = node["status"]["allocatable"]
    return [int(allocatable["cpu"]), 16, int(allocatable["pods"])]


def _queues(draw: st.DrawFn) -> list[Json]:
    """Leaf queues, some of them below a parent queue; without a hierarchy the parent is a queue like any other."""
    out: list[Json] = []
    above = draw(st.booleans())
    for i in range(draw(st.integers(1, 3))):
        spec: Json = {"weight": draw(st.integers(1, 3)), "reclaimable": draw(st.integers(0, 5)) > 0}
        if draw(st.integers(0, 2)):
            spec["deserved"] = {"cpu": draw(st.sampled_from(["1", "3", "5"])), "memory": "8Gi"}
        if draw(st.integers(0, 4)) == 0:
            spec["guarantee"] = {"resource": {"cpu": "1", "memory": "1Gi"}}
        if draw(st.integers(0, 4)) == 0:
            spec["capability"] = {"cpu": draw(st.sampled_from(["4", "9"]))}
        if draw(st.integers(0, 3)) == 0:
            spec["priority"] = draw(st.integers(0, 2))
        if above and draw(st.integers(0, 2)):
            spec["parent"] = "above"
        out.append({"metadata": {"name": f"q{i}", "uid": f"queue-{i}"}, "spec": spec, "status": {"state": "Open"}})
    if above:
        spec = {"weight": 1, "deserved": {"cpu": draw(st.sampled_from(["2", "6"])), "memory": "9Gi"}}
        out.append({"metadata": {"name": "above", "uid": "queue-above"}, "spec": spec, "status": {"state": "Open"}})
    root: Json = {"metadata": {"name": "root", "uid": "queue-root"}, "spec": {"weight": 1}, "status": {"state": "Open"}}
    return [*out, root]


def _gang(draw: st.DrawFn, world: Json, g: int, room: dict[str, list[int]] | None) -> None:
    sizes = {f"t{t}": draw(st.integers(1, 4)) for t in range(draw(st.sampled_from([1, 1, 2])))}
    total = sum(sizes.values())
    leaves = [q["metadata"]["name"] for q in world["queues"] if q["metadata"]["name"].startswith("q")]
    least = draw(st.one_of(st.just(total), st.integers(1, total))) if room is None else draw(st.integers(1, total))
    spec: Json = {"minMember": least, "queue": draw(st.sampled_from(leaves))}
    if draw(st.integers(0, 3)) == 0:
        spec["minTaskMember"] = {role: draw(st.integers(0, size)) for role, size in sizes.items()}
    size = draw(st.sampled_from([0, 0, 0, 1, 2]))
    if size:
        spec["subGroupPolicy"] = [parts(size, draw(st.integers(0, 2)))]
    near(draw, world, spec)
    if draw(st.integers(0, 3)) == 0:
        spec["minResources"] = {"cpu": draw(st.sampled_from(["1", "4"])), "memory": "2Gi"}
    classes = (*CLASSES, "mid", "high", "high", PEACEFUL) if room is None else ("low", "low", *CLASSES)
    priority = draw(st.sampled_from(classes))
    if draw(st.integers(0, 4)):
        spec["priorityClassName"] = priority
    meta: Json = {
        "name": f"g{g}",
        "namespace": "ns",
        "uid": f"group-{g}",
        "creationTimestamp": f"2026-01-0{g + 1}T00:00:00Z",
    }
    if draw(st.integers(0, 9)) == 0:
        meta["annotations"] = {"volcano.sh/preemptable": draw(st.sampled_from(["true", "false"]))}
    if room is not None and draw(st.integers(0, 2)) == 0:
        limit = draw(st.sampled_from(["volcano.sh/jdb-max-unavailable", "volcano.sh/jdb-min-available"]))
        meta.setdefault("annotations", {})[limit] = str(draw(st.integers(1, 3)))
    phase = "Running" if room is not None else draw(st.sampled_from(["Inqueue", "Inqueue", "Inqueue", "Pending"]))
    world["podGroups"].append({"metadata": meta, "spec": spec, "status": {"phase": phase}})
    for role, size in sizes.items():
        cpu, port = draw(st.sampled_from(CPUS)), draw(st.integers(0, 7)) == 0
        asked = {"cpu": str(cpu), "memory": f"{draw(st.sampled_from([1, 2]))}Gi"}
        if draw(st.integers(0, 7)) == 0:
            asked = {}
        container: Json = {"name": "main", "resources": {"requests": asked}}
        if port:
            container["ports"] = [{"containerPort": 80, "hostPort": 8080}]
        template: Json = {"schedulerName": "volcano", "containers": [container]}
        if draw(st.integers(0, 7)) == 0:
            template["nodeSelector"] = {"zone": draw(st.sampled_from(["a", "b"]))}
        if draw(st.integers(0, 2)):
            template["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
        if "priorityClassName" in spec:
            template["priorityClassName"] = priority
            template["priority"] = {**CLASSES, PEACEFUL: 10}[priority]
            if priority == PEACEFUL:
                template["preemptionPolicy"] = "Never"
        elif draw(st.integers(0, 5)) == 0 and room is not None:
            template["priorityClassName"] = "system-node-critical"
        elif draw(st.integers(0, 3)) == 0:
            template["priority"] = draw(st.integers(0, 3))
        for i in range(size):
            _pod(draw, world, g, role, i, template, room)


def _pod(
    draw: st.DrawFn, world: Json, g: int, role: str, i: int, template: Json, room: dict[str, list[int]] | None
) -> None:
    meta: Json = {
        "name": f"g{g}-{role}-{i}",
        "namespace": "ns",
        "uid": f"pod-{g}-{role}-{i}",
        "labels": {"gang": f"g{g}", "role": role, "part": str(i // 2)},
        "annotations": {"scheduling.k8s.io/group-name": f"g{g}", "volcano.sh/task-spec": role},
    }
    spec: Json = dict(template)
    status: Json = {"phase": "Pending"}
    node = draw(st.sampled_from(sorted(room))) if room is not None else ""
    if room is not None and draw(st.integers(0, 7)) and _takes(room[node], template):
        spec["nodeName"] = node
        status = {"phase": draw(st.sampled_from(["Running", "Running", "Running", "Running", "Pending"]))}
        if draw(st.integers(0, 7)) == 0:
            meta["deletionTimestamp"] = "2026-02-01T00:00:00Z"
        if draw(st.integers(0, 7)) == 0:
            meta["annotations"]["volcano.sh/preemptable"] = draw(st.sampled_from(["true", "false"]))
        if draw(st.integers(0, 7)) == 0:
            meta["annotations"]["volcano.sh/cooldown-time"] = "10m"
            since = draw(st.sampled_from(["2026-05-31T23:55:00Z", "2026-05-31T23:00:00Z"]))
            status["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": since}]
    world["pods"].append({"metadata": meta, "spec": spec, "status": status})


def _takes(room: list[int], template: Json) -> bool:
    """Subtract the pod's requests from the capacity of a node; False where it isn't sufficient."""
    asked = template["containers"][0]["resources"]["requests"]
    needs = [int(asked.get("cpu", 0)), int(asked.get("memory", "0Gi").removesuffix("Gi")), 1]
    if any(a > b for a, b in zip(needs, room, strict=True)):
        return False
    room[:] = [b - a for a, b in zip(needs, room, strict=True)]
    return True


def _budget(draw: st.DrawFn, world: Json, g: int) -> None:
    world["podDisruptionBudgets"].append(
        {
            "metadata": {"name": f"b{g}", "namespace": "ns", "uid": f"budget-{g}"},
            "spec": {"selector": {"matchLabels": {"gang": f"g{g}"}}},
            "status": {"disruptionsAllowed": draw(st.integers(0, 2))},
        }
    )
