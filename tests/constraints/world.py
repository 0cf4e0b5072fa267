"""The objects of one world, written in few words."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from vcbatch.api.quantity import decimal_text, milli_text, parse_quantity

Json = dict[str, Any]
Lists = dict[str, list[Json]]

GANG = "new"
"""The gang whose start is kept back."""
KEY = f"default/{GANG}"
CREATED = "2026-05-01T00:00:{:02}Z"


def amount_of(quantity: object) -> int:
    """In thousandths."""
    return parse_quantity(str(quantity)).milli()


def quantity(milli: int) -> str:
    """The opposite; whole amounts without a suffix."""
    return milli_text(milli) if milli % 1000 else decimal_text(milli // 1000)


class World:
    """Lists of objects by kind, as `vcbatch.scheduler.simulation.world.World.read` takes them, and a policy."""

    def __init__(self, policy: str = "") -> None:
        self.lists: Lists = {}
        self.policy = policy
        self._made = 0
        self.queue("default")

    def copy(self) -> World:
        """Another one with equal objects."""
        return copy.deepcopy(self)

    def add(self, key: str, raw: Json) -> Json:
        """An object of this kind."""
        self.lists.setdefault(key, []).append(raw)
        return raw

    def find(self, key: str, name: str) -> Json:
        """The object of this name."""
        return next(raw for raw in self.lists[key] if raw["metadata"]["name"] == name)

    def remove(self, key: str, name: str) -> None:
        self.lists[key] = [raw for raw in self.lists[key] if raw["metadata"]["name"] != name]

    def node(self, name: str, *, labels: Mapping[str, str] | None = None, taints: Any = None, **amounts: Any) -> Json:
        """Amounts by name; `/` and `-` are written `__` and `_`."""
        given = {key.replace("__", "/").replace("_", "-"): str(value) for key, value in amounts.items()}
        allocatable = {"cpu": "8", "memory": "64Gi", "pods": "110", **given}
        meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
        status = {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]}
        return self.add("nodes", {"metadata": meta, "spec": {"taints": taints}, "status": status})

    def queue(self, name: str, *, state: str = "Open", **spec: Any) -> Json:
        return self.add("queues", {"metadata": {"name": name}, "spec": spec, "status": {"state": state}})

    def gang(
        self,
        name: str,
        size: int,
        requests: Mapping[str, Any],
        *,
        on: str = "",
        queue: str = "default",
        phase: str = "",
        notes: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        group: Mapping[str, Any] | None = None,
        group_notes: Mapping[str, str] | None = None,
        ports: Sequence[int] = (),
        pods: int | None = None,
        **spec: Any,
    ) -> list[Json]:
        """A PodGroup and its pods, each asking for these amounts: running on the node `on`, else pending. `group` goes
        into the PodGroup's spec, other keywords into that of the pods."""
        self._made += 1
        created = CREATED.format(self._made)
        meta = {"name": name, "namespace": "default", "creationTimestamp": created, "annotations": group_notes or {}}
        self.add(
            "podGroups",
            {
                "metadata": meta,
                "spec": {"minMember": size, "queue": queue, **(group or {})},
                "status": {"phase": phase or ("Running" if on else "Inqueue")},
            },
        )
        made: list[Json] = []
        for index in range(size if pods is None else pods):
            container: Json = {"name": "c", "image": "x", "resources": {"requests": dict(requests)}}
            if ports:
                container["ports"] = [{"containerPort": port, "hostPort": port} for port in ports]
            pod_meta = {
                "name": f"{name}-{index}",
                "namespace": "default",
                "creationTimestamp": created,
                "labels": dict(labels or {}),
                "annotations": {"scheduling.k8s.io/group-name": name, **(notes or {})},
            }
            pod_spec: Json = {"containers": [container], **copy.deepcopy(spec)}
            if on:
                pod_spec["nodeName"] = on
            status = {"phase": "Running", "startTime": created} if on else {"phase": "Pending"}
            made.append(self.add("pods", {"metadata": pod_meta, "spec": pod_spec, "status": status}))
        return made

    def pods_of(self, gang: str) -> list[Json]:
        return [
            pod
            for pod in self.lists.get("pods", ())
            if pod["metadata"]["annotations"].get("scheduling.k8s.io/group-name") == gang
        ]

    def end(self, gang: str) -> None:
        """The gang has ended, and its pods are gone."""
        gone = {pod["metadata"]["name"] for pod in self.pods_of(gang)}
        self.lists["pods"] = [pod for pod in self.lists["pods"] if pod["metadata"]["name"] not in gone]
        self.remove("podGroups", gang)
