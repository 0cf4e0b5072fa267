"""The state of one cycle, decoded from JSON objects."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.claims import Claims
from tests.oracle.model import Amounts, Job, Json, Node, Queue, Task, amounts, plus


class JobContext:
    """`options` are the policy's plugins in order, each with its arguments."""

    def __init__(self, world: Json, actions: Sequence[str], options: Sequence[tuple[str, Json]]) -> None:
        self.actions = actions
        self.plugins = dict(options)
        self._read(world)
        self.total: Amounts = {}
        for node in self.nodes:
            self.total = plus(self.total, node.alloc)

    def _read(self, world: Json) -> None:
        classes = {p["metadata"]["name"]: p["value"] for p in world.get("priorityClasses") or ()}
        self.queues = {q["metadata"]["name"]: _queue(q) for q in world["queues"]}
        self.nodes = sorted((_node(n) for n in world["nodes"]), key=lambda n: n.name)
        self.jobs: dict[str, Job] = {}
        for group in world["podGroups"]:
            meta, spec = group["metadata"], group["spec"]
            queue = self.queues.get(spec.get("queue") or "default")
            if queue is None:
                continue
            key = f"{meta['namespace']}/{meta['name']}"
            minimum = spec.get("minResources")
            self.jobs[key] = Job(
                key=key,
                uid=meta.get("uid") or f"podGroups/{key}",
                creation=meta.get("creationTimestamp") or "",
                queue=queue,
                minimum=spec.get("minMember", 0),
                role_minimums=spec.get("minTaskMember") or {},
                priority=classes.get(spec.get("priorityClassName") or "", 0),
                min_resources=None if minimum is None else amounts(minimum),
                phase=(group.get("status") or {}).get("phase") or "Pending",
                rules=spec.get("subGroupPolicy") or (),
                topology=spec.get("networkTopology"),
            )
        self.claims = Claims(world)
        by_name = {n.name: n for n in self.nodes}
        for pod in world["pods"]:
            task = self._task(pod)
            if task.job is not None:
                task.job.tasks.append(task)
            if task.node and task.status not in ("Pending", "Succeeded", "Failed") and task.node in by_name:
                by_name[task.node].tasks.append(task)

    def _task(self, pod: Json) -> Task:
        meta, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
        notes = meta.get("annotations") or {}
        request: Amounts = {"pods": 1.0}
        nonzero: Amounts = {}
        for container in spec["containers"]:
            asked = _taken(container, status)
            request = plus(request, asked)
            nonzero = plus(
                nonzero, {"cpu": asked.get("cpu", 100.0), "memory": asked.get("memory", 200.0 * 1024 * 1024)}
            )
        phase = status.get("phase") or "Pending"
        if phase in ("Pending", "Running") and meta.get("deletionTimestamp"):
            phase = "Releasing"
        elif phase == "Pending" and spec.get("nodeName"):
            phase = "Bound"
        parts = meta["name"].split("-")
        return Task(
            uid=meta["uid"],
            name=f"{meta['namespace']}/{meta['name']}",
            job=self.jobs.get(f"{meta['namespace']}/{notes.get('scheduling.k8s.io/group-name')}"),
            status=phase,
            node=spec.get("nodeName") or "",
            role=notes.get("volcano.sh/task-spec") or "",
            priority=spec.get("priority", 1),
            index=int(parts[-1]) if len(parts) >= 3 and parts[-1].isdigit() else None,
            creation=meta.get("creationTimestamp") or "",
            request=request,
            nonzero=nonzero,
            selector=spec.get("nodeSelector") or {},
            tolerations=spec.get("tolerations") or (),
            ports=frozenset(p["hostPort"] for c in spec["containers"] for p in c.get("ports") or () if "hostPort" in p),
            labels=meta.get("labels") or {},
            affinity=spec.get("affinity") or {},
            claims=sorted(v["persistentVolumeClaim"]["claimName"] for v in spec.get("volumes") or ()),
        )


def _taken(container: Json, status: Json) -> Amounts:
    """The resources that a container uses: the maximum of its requests, its allocated resources and its current ones;
    without its requests where the kubelet has reported them as infeasible."""
    views = [amounts((container.get("resources") or {}).get("requests"))]
    held = next((one for one in status.get("containerStatuses") or () if one["name"] == container["name"]), {})
    reported = [amounts(one) for one in (held.get("allocatedResources"), (held.get("resources") or {}).get("requests"))
                if one is not None]  # fmt: skip
    infeasible = any(
        one["type"] == "PodResizePending" and one["reason"] == "Infeasible" for one in status.get("conditions") or ()
    )
    views = reported if reported and infeasible else [*views, *reported]
    return {name: max(view.get(name, 0.0) for view in views) for view in views for name in view}


def _queue(given: Json) -> Queue:
    spec, meta = given.get("spec") or {}, given["metadata"]
    capability = spec.get("capability")
    return Queue(
        name=meta["name"],
        uid=meta.get("uid") or f"queues//{meta['name']}",
        creation=meta.get("creationTimestamp") or "",
        weight=spec.get("weight", 1),
        priority=spec.get("priority", 0),
        capability=amounts(capability) if capability else None,
        guarantee=amounts((spec.get("guarantee") or {}).get("resource")),
        open=((given.get("status") or {}).get("state") or "Open") == "Open",
    )


def _node(given: Json) -> Node:
    spec = given.get("spec") or {}
    taints: list[Json] = list(spec.get("taints") or ())
    if spec.get("unschedulable"):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    taints += [
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
        for condition in given["status"].get("conditions") or ()
        if condition["type"] == "Ready" and condition["status"] == "False"
    ]
    return Node(
        name=given["metadata"]["name"],
        labels=given["metadata"].get("labels") or {},
        taints=taints,
        alloc=amounts(given["status"].get("allocatable")),
    )
