"""Random cluster states: small, tight and with many ties, since bugs show there."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

ZONES = ("a", "b")
PLUGINS = ("priority", "gang", "overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack")


@st.composite
def policies(draw: st.DrawFn) -> Json:
    """A policy document: some of the plugins, in the order of the default policy, with random weights."""
    chosen = [p for p in PLUGINS if draw(st.booleans())] if draw(st.booleans()) else list(PLUGINS)
    plugins: list[Json] = []
    for name in chosen:
        plugin: Json = {"name": name}
        if name == "nodeorder" and draw(st.booleans()):
            plugin["arguments"] = {
                "leastrequested.weight": draw(st.integers(0, 2)),
                "mostrequested.weight": draw(st.integers(0, 2)),
                "balancedresource.weight": draw(st.integers(0, 2)),
                "tainttoleration.weight": draw(st.integers(0, 3)),
            }
        if name == "binpack" and draw(st.booleans()):
            plugin["arguments"] = {
                "binpack.weight": draw(st.integers(0, 5)),
                "binpack.resources": draw(st.sampled_from(["", "nvidia.com/gpu"])),
            }
        plugins.append(plugin)
    actions = draw(st.sampled_from(["enqueue, allocate, backfill", "allocate, backfill", "enqueue, allocate"]))
    return {"actions": actions, "tiers": [{"plugins": plugins}]}


@st.composite
def nodes(draw: st.DrawFn, *, most: int = 5) -> list[Json]:
    out: list[Json] = []
    for i in range(draw(st.integers(1, most))):
        allocatable = {
            "cpu": draw(st.sampled_from(["2", "4", "8", "3500m"])),
            "memory": draw(st.sampled_from(["8Gi", "16Gi"])),
            "pods": draw(st.sampled_from(["3", "10"])),
        }
        if draw(st.booleans()):
            allocatable["nvidia.com/gpu"] = draw(st.sampled_from(["1", "2", "4"]))
        spec: Json = {}
        effect = draw(st.sampled_from([None, None, None, "NoSchedule", "PreferNoSchedule"]))
        if effect:
            spec["taints"] = [{"key": "dedicated", "value": "train", "effect": effect}]
        if draw(st.integers(0, 9)) == 0:
            spec["unschedulable"] = True
        labels = {"zone": draw(st.sampled_from(ZONES)), "kubernetes.io/hostname": f"n{i}"}
        out.append(
            {
                "metadata": {"name": f"n{i}", "uid": f"node-{i}", "labels": labels},
                "spec": spec,
                "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
            }
        )
    return out


@st.composite
def queues(draw: st.DrawFn) -> list[Json]:
    out: list[Json] = []
    for i in range(draw(st.integers(1, 3))):
        spec: Json = {"weight": draw(st.integers(1, 3))}
        if draw(st.integers(0, 2)) == 0:
            spec["capability"] = {"cpu": draw(st.sampled_from(["4", "9"]))}
        if draw(st.integers(0, 3)) == 0:
            spec["guarantee"] = {"resource": {"cpu": "2", "memory": "2Gi"}}
        if draw(st.integers(0, 3)) == 0:
            spec["priority"] = draw(st.integers(0, 2))
        state = draw(st.sampled_from(["Open", "Open", "Open", "Open", "Closed"]))
        out.append({"metadata": {"name": f"q{i}", "uid": f"queue-{i}"}, "spec": spec, "status": {"state": state}})
    return out


@st.composite
def templates(draw: st.DrawFn) -> Json:
    """The part of a pod's spec that is equal in all pods of a task."""
    requests: Json = {}
    if draw(st.integers(0, 7)):
        requests = {
            "cpu": draw(st.sampled_from(["500m", "1", "2", "3"])),
            "memory": draw(st.sampled_from(["1Gi", "2Gi", "5Gi"])),
        }
        if draw(st.integers(0, 3)) == 0:
            requests["nvidia.com/gpu"] = draw(st.sampled_from(["1", "2"]))
    container: Json = {"name": "main", "resources": {"requests": requests}}
    if draw(st.integers(0, 7)) == 0:
        container["ports"] = [{"containerPort": 80, "hostPort": draw(st.sampled_from([8080, 9090]))}]
    spec: Json = {"schedulerName": "volcano", "containers": [container]}
    if draw(st.integers(0, 5)) == 0:
        spec["nodeSelector"] = {"zone": draw(st.sampled_from(ZONES))}
    if draw(st.integers(0, 3)) == 0:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    return spec


BOUND, LATE, SHARED, STATIC, SINGLE, NOW = "bound", "late", "shared", ("static-0", "static-1"), "single", "now"
SETTLED = (BOUND, SINGLE)
CLAIMS = (BOUND, LATE, SHARED, *STATIC, SINGLE, NOW)


def _claim(name: str, of_class: str, *, mode: str = "ReadWriteOnce", size: str = "1Gi", volume: str = "") -> Json:
    spec: Json = {
        "storageClassName": of_class,
        "accessModes": [mode],
        "resources": {"requests": {"storage": size}},
        "volumeName": volume,
    }
    meta = {"name": name, "namespace": "ns"}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Bound" if volume else "Pending"}}


@st.composite
def storage(draw: st.DrawFn, names: list[str]) -> Json:
    """Claims in every relevant state, and volumes that are accessible from some of the nodes."""

    def volume(name: str, phase: str, mode: str = "ReadWriteOnce") -> Json:
        spec: Json = {"storageClassName": "static", "accessModes": [mode]}
        spec["capacity"] = {"storage": draw(st.sampled_from(["1Gi", "2Gi", "3Gi"]))}
        reached = draw(st.lists(st.sampled_from(names), unique=True))
        if reached:
            fields = [{"key": "metadata.name", "operator": "In", "values": reached}]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchFields": fields}]}}
        return {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}}

    free = [volume(f"v{i}", "Available") for i in range(draw(st.integers(0, 3)))]
    sizes = [draw(st.sampled_from(["1Gi", "2Gi"])) for _ in STATIC]
    return {
        "storageClasses": [
            {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
            for name, provisioner, mode in (
                ("now", "example.com/disk", "Immediate"),
                ("late", "example.com/disk", "WaitForFirstConsumer"),
                ("static", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
            )
        ],
        "pvs": [*free, volume("v-bound", "Bound"), volume("v-single", "Bound", "ReadWriteOncePod")],
        "pvcs": [
            _claim(BOUND, "static", volume="v-bound"),
            _claim(LATE, "late"),
            _claim(SHARED, "late", mode="ReadWriteMany"),
            *(_claim(name, "static", size=size) for name, size in zip(STATIC, sizes, strict=True)),
            _claim(SINGLE, "static", mode="ReadWriteOncePod", volume="v-single"),
            _claim(NOW, "now"),
        ],
    }


@st.composite
def networks(draw: st.DrawFn, names: list[str]) -> list[Json]:
    """HyperNodes: racks of tier 1 with some of the nodes, of which some are below spines of tier 2 or 3."""
    out: list[Json] = []

    def add(name: str, tier: int, kind: str, members: list[str]) -> None:
        listed = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members]
        meta = {"name": name, "uid": f"hyper-{name}"}
        out.append({"metadata": meta, "spec": {"tier": tier, "members": listed}})

    rack_of = {name: draw(st.integers(0, 2)) for name in names}
    racks = [r for r in (1, 2) if r in rack_of.values()]
    for rack in racks:
        add(f"r{rack}", 1, "Node", [name for name in names if rack_of[name] == rack])
    if racks and draw(st.booleans()):
        below = racks if draw(st.booleans()) else racks[:1]
        add("s", draw(st.integers(2, 3)), "HyperNode", [f"r{rack}" for rack in below])
    return out


topologies = st.one_of(
    st.none(),
    st.just({"mode": "soft"}),
    st.integers(1, 4).map(lambda tier: {"mode": "hard", "highestTierAllowed": tier}),
)
"""The network topology constraint of a gang."""


@st.composite
def worlds(draw: st.DrawFn) -> Json:
    """Nodes, queues and gangs, some of which run already."""
    world: Json = {
        "nodes": draw(nodes()),
        "queues": draw(queues()),
        "priorityClasses": [{"metadata": {"name": "high", "uid": "pc"}, "value": 10}],
        "podGroups": [],
        "pods": [],
    }
    if draw(st.integers(0, 2)) == 0:
        world |= draw(storage([node["metadata"]["name"] for node in world["nodes"]]))
    elif draw(st.booleans()):
        world["hyperNodes"] = draw(networks([node["metadata"]["name"] for node in world["nodes"]]))
    for g in range(draw(st.integers(1, 5))):
        _gang(draw, world, g)
    return world


def parts(size: int, least: int) -> Json:
    """A rule for subgroups of this size, made of the pods of the gang's first role; `least` of them are required."""
    selector = {"matchLabels": {"role": "t0"}}
    keys = {"labelSelector": selector, "matchLabelKeys": ["part"]}
    return {"name": "parts", **keys, "subGroupSize": size, "minSubGroups": least}


def near(draw: st.DrawFn, world: Json, spec: Json) -> None:
    """Add topology constraints to gangs and their subgroups at random, where there are HyperNodes."""
    for one in (spec, *spec.get("subGroupPolicy", ())):
        if "hyperNodes" in world and (topology := draw(topologies)):
            one["networkTopology"] = topology


def _gang(draw: st.DrawFn, world: Json, g: int) -> None:
    sizes = {f"t{t}": draw(st.integers(1, 4)) for t in range(draw(st.integers(1, 2)))}
    total = sum(sizes.values())
    spec: Json = {
        "minMember": draw(st.one_of(st.just(total), st.integers(1, total))),
        "queue": draw(st.sampled_from([q["metadata"]["name"] for q in world["queues"]])),
    }
    if draw(st.integers(0, 3)) == 0:
        spec["minTaskMember"] = {role: draw(st.integers(0, size)) for role, size in sizes.items()}
    size = draw(st.sampled_from([0, 0, 0, 1, 2]))
    if size:
        least = draw(st.integers(0, 2))
        spec["subGroupPolicy"] = [parts(size, least)]
    near(draw, world, spec)
    if draw(st.integers(0, 2)) == 0:
        spec["minResources"] = {"cpu": draw(st.sampled_from(["1", "6"])), "memory": "2Gi"}
    if draw(st.integers(0, 2)) == 0:
        spec["priorityClassName"] = "high"
    running = draw(st.integers(0, 3)) == 0
    phase = "Running" if running else draw(st.sampled_from(["Inqueue", "Inqueue", "Pending"]))
    world["podGroups"].append(
        {
            "metadata": {
                "name": f"g{g}",
                "namespace": "ns",
                "uid": f"group-{g}",
                "creationTimestamp": f"2026-01-0{g + 1}",
            },
            "spec": spec,
            "status": {"phase": phase},
        }
    )
    for role, size in sizes.items():
        template = draw(templates())
        if "pvcs" in world and draw(st.integers(0, 1)):
            # The volumes of running pods are bound.
            claims = draw(st.lists(st.sampled_from(SETTLED if running else CLAIMS), unique=True, max_size=2))
            template["volumes"] = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
        for i in range(size):
            pod = _pod(draw, world, g, role, i, template, running=running)
            pod["metadata"]["labels"] |= {"role": role, "part": str(i // 2)}
            world["pods"].append(pod)


def _pod(draw: st.DrawFn, world: Json, g: int, role: str, i: int, template: Json, *, running: bool) -> Json:
    meta: Json = {
        "name": f"g{g}-{role}-{i}",
        "namespace": "ns",
        "uid": f"pod-{g}-{role}-{i}",
        "labels": {"gang": f"g{g}", "index": str(i)},
        "annotations": {"scheduling.k8s.io/group-name": f"g{g}", "volcano.sh/task-spec": role},
    }
    spec, phase = dict(template), "Pending"
    if running and draw(st.integers(0, 4)):
        spec["nodeName"] = draw(st.sampled_from([n["metadata"]["name"] for n in world["nodes"]]))
        phase = draw(st.sampled_from(["Running", "Running", "Running", "Pending", "Succeeded"]))
        if draw(st.integers(0, 2)) == 0:
            meta["deletionTimestamp"] = "2026-02-01T00:00:00Z"
    status: Json = {"phase": phase}
    if phase == "Running" and draw(st.integers(0, 3)) == 0:
        status |= _resizing(draw)
    return {"metadata": meta, "spec": spec, "status": status}


def _resizing(draw: st.DrawFn) -> Json:
    """The status that a kubelet reports of a pod that is being resized in place."""
    held: Json = {"name": "main", "allocatedResources": {"cpu": draw(st.sampled_from(["1", "3"]))}}
    if draw(st.booleans()):
        held["resources"] = {"requests": {"cpu": draw(st.sampled_from(["2", "4"])), "memory": "1Gi"}}
    status: Json = {"containerStatuses": [held]}
    if draw(st.integers(0, 2)) == 0:
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    return status
