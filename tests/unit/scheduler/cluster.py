"""A scheduler and the little world it lives in, built and changed in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from vcbatch.api.node import Node
from vcbatch.api.pod import Pod
from vcbatch.api.resources import NODES, PODGROUPS, PODS, PRIORITYCLASSES, QUEUES, Resource
from vcbatch.api.scheduling import PodGroupView, PriorityClassView, QueueView
from vcbatch.scheduler import CycleResult, Policy, Scheduler

Json = dict[str, Any]
START = datetime(2026, 6, 1, tzinfo=UTC)


class Cluster:
    """Objects are kept as mappings and sent as the API server would send them; `cycle` lets two seconds pass and
    plays the API server: binds and PodGroup statuses are stored and come back as events."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.scheduler = Scheduler(policy)
        self.now = START
        self.pods: dict[str, Json] = {}
        self.groups: dict[str, Json] = {}
        self.queue("default")

    def _send(self, resource: Resource, kind: type[msgspec.Struct], event: str, raw: Json) -> None:
        self.scheduler.apply(resource, event, msgspec.convert(raw, kind))

    def node(self, name: str, *, event: str = "ADDED", **given: Any) -> None:
        """A node; keywords are its resources, `labels`, `taints`, `unschedulable` and `ready`."""
        labels = {"kubernetes.io/hostname": name, **given.pop("labels", {})}
        spec = {"taints": given.pop("taints", None), "unschedulable": given.pop("unschedulable", False)}
        ready = given.pop("ready", "True")
        amounts = {"cpu": "8", "memory": "32Gi", "pods": "20", **{k.replace("_", "/"): v for k, v in given.items()}}
        status = {"allocatable": amounts, "conditions": [{"type": "Ready", "status": ready}]}
        meta = {"name": name, "uid": f"node-{name}", "labels": labels}
        self._send(NODES, Node, event, {"metadata": meta, "spec": spec, "status": status})

    def queue(self, name: str, *, state: str = "Open", event: str = "ADDED", **spec: Any) -> None:
        meta = {"name": name, "uid": f"queue-{name}", "annotations": spec.pop("annotations", None)}
        status = {"state": state, "allocated": spec.pop("allocated", None)}
        self._send(QUEUES, QueueView, event, {"metadata": meta, "spec": spec, "status": status})

    def priority(self, name: str, value: int) -> None:
        meta = {"name": name, "uid": f"class-{name}"}
        self._send(PRIORITYCLASSES, PriorityClassView, "ADDED", {"metadata": meta, "value": value})

    def gang(self, name: str, size: int, *, minimum: int | None = None, phase: str = "Inqueue", **given: Any) -> None:
        """A PodGroup with so many pods of one kind. `pod` is merged into their spec, `labels`, `annotations` and
        `created` are the PodGroup's; other keywords go into its spec; `cpu` is what each pod asks for."""
        pod, cpu = given.pop("pod", {}), given.pop("cpu", "1")
        raw = {
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": f"group-{name}",
                "creationTimestamp": given.pop("created", f"2026-05-01T00:00:{len(self.groups):02}Z"),
                "labels": given.pop("labels", {}),
                "annotations": given.pop("annotations", {}),
            },
            "spec": {"minMember": size if minimum is None else minimum, "queue": "default", **given},
            "status": {"phase": phase},
        }
        self.groups[name] = raw
        self._send(PODGROUPS, PodGroupView, "ADDED", raw)
        for index in range(size):
            self.pod(name, index, cpu=cpu, **pod)

    def report_group(self, name: str) -> None:
        """The PodGroup changed, as `groups` has it now."""
        self._send(PODGROUPS, PodGroupView, "MODIFIED", self.groups[name])

    def pod(
        self,
        gang: str,
        index: int,
        *,
        cpu: str | None = "1",
        role: str = "worker",
        part: int | None = None,
        notes: Json | None = None,
        labels: Mapping[str, str] | None = None,
        owner: Json | None = None,
        **spec: Any,
    ) -> None:
        """One pod; `notes` are annotations, `labels` are added, `owner` controls it, the rest goes to its spec."""
        name = f"{gang}-{role}-{index}"
        requests = {"cpu": cpu, "memory": "1Gi"} if cpu else {}
        raw: Json = {
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": f"pod-{name}",
                "labels": {"gang": gang, **({} if part is None else {"part": str(part)}), **(labels or {})},
                "ownerReferences": [{**owner, "controller": True}] if owner else None,
                "annotations": {"scheduling.k8s.io/group-name": gang, "volcano.sh/task-spec": role, **(notes or {})},
            },
            "spec": {
                "schedulerName": "volcano",
                "containers": [{"name": "main", "resources": {"requests": requests}}],
                **spec,
            },
            "status": {"phase": "Pending"},
        }
        self.pods[name] = raw
        self._send(PODS, Pod, "ADDED", raw)

    def change(self, pod: str, *, phase: str | None = None, deleting: bool = False, node: str | None = None) -> None:
        """Something happened to a pod."""
        raw = self.pods[pod]
        if phase is not None:
            raw["status"] = {"phase": phase}
        if deleting:
            raw["metadata"]["deletionTimestamp"] = "2026-06-01T00:00:00Z"
        if node is not None:
            raw["spec"]["nodeName"] = node
        self._send(PODS, Pod, "MODIFIED", raw)

    def delete(self, pod: str) -> None:
        self._send(PODS, Pod, "DELETED", self.pods.pop(pod))

    def delete_gang(self, name: str) -> None:
        for pod in [p for p in self.pods if p.startswith(f"{name}-")]:
            self.delete(pod)
        self._send(PODGROUPS, PodGroupView, "DELETED", self.groups.pop(name))

    def cycle(self, *, after: float = 2.0) -> CycleResult:
        self.now += timedelta(seconds=after)
        result = self.scheduler.cycle(self.now)
        for update in result.podgroup_updates:
            raw = self.groups[update.name]
            raw["status"] = dict(update.status)
            notes = raw["metadata"].setdefault("annotations", {})
            notes |= update.annotations or {}
            raw["metadata"]["annotations"] = {key: value for key, value in notes.items() if value is not None}
            self._send(PODGROUPS, PodGroupView, "MODIFIED", raw)
        for bind in result.binds:
            self.change(bind.name, node=bind.node)
        return result

    def run(self, gang: str) -> None:
        """Every pod of the gang that has a node starts."""
        for name, raw in list(self.pods.items()):
            if name.startswith(f"{gang}-") and raw["spec"].get("nodeName"):
                self.change(name, phase="Running")

    def condition(self, gang: str, kind: str) -> Json | None:
        """A condition of the PodGroup as stored."""
        conditions = self.groups[gang]["status"].get("conditions") or ()
        return next((c for c in conditions if c["type"] == kind), None)

    def placed(self, gang: str) -> dict[str, str]:
        """The nodes of the gang's pods."""
        return {
            name: raw["spec"]["nodeName"]
            for name, raw in self.pods.items()
            if name.startswith(f"{gang}-") and raw["spec"].get("nodeName")
        }
