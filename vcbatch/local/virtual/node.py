"""Virtual nodes as Node objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from vcbatch._version import __version__
from vcbatch.api.names import ARCHITECTURE_LABEL, HOSTNAME_LABEL, OS_LABEL, VIRTUAL_NODE
from vcbatch.api.reasons import KubeletConditionReason
from vcbatch.api.resources import NODES
from vcbatch.api.timestamps import format_time

Json = dict[str, Any]

ADDRESS: Final = "10.0.0.1"
"""The address of every virtual node and every pod on it."""

OS, ARCHITECTURE = "linux", "amd64"
_DEFAULT_CAPACITY: Final[Mapping[str, str]] = {"pods": "110", "ephemeral-storage": "2Ti"}


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualNode:
    """A node to simulate: `capacity` by resource name, as quantities. The defaults of pods and ephemeral-storage are
    110 and 2Ti."""

    name: str
    capacity: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    taints: Sequence[Json] = ()

    @property
    def size(self) -> dict[str, str]:
        return {**_DEFAULT_CAPACITY, **self.capacity}

    @property
    def all_labels(self) -> dict[str, str]:
        return {**_labels(self.name), **self.labels, VIRTUAL_NODE: "true"}

    def object(self, now: datetime) -> Json:
        """The Node object, ready from the start."""
        return {
            "apiVersion": NODES.api_version,
            "kind": NODES.kind,
            "metadata": {"name": self.name, "labels": self.all_labels},
            "spec": {"taints": list(self.taints)} if self.taints else {},
            "status": {
                "capacity": self.size,
                "allocatable": self.size,
                "conditions": [_ready(now)],
                "addresses": _addresses(self.name),
                "nodeInfo": _node_info(self.name),
            },
        }

    def changes(self, node: Json) -> tuple[Json, Json]:
        """The labels and status fields in which the Node of an earlier start differs from this one; None removes an
        entry."""
        labels: Json = node["metadata"].get("labels") or {}
        status: Json = node.get("status") or {}
        found: Json = {}
        for key in ("capacity", "allocatable"):
            present: Json = status.get(key) or {}
            if present != self.size:
                found[key] = {**dict.fromkeys(present), **self.size}
        _, other = missing(node, None)
        return {key: value for key, value in self.all_labels.items() if labels.get(key) != value}, {**other, **found}


def missing(node: Json, now: datetime | None) -> tuple[Json, Json]:
    """The fields that a kubelet sets and the Node lacks: labels, and in the status addresses, nodeInfo, allocatable and
    (with `now`) the condition Ready."""
    name: str = node["metadata"]["name"]
    labels: Json = node["metadata"].get("labels") or {}
    status: Json = node.get("status") or {}
    found: Json = {}
    if now is not None and not any(each.get("type") == "Ready" for each in status.get("conditions") or ()):
        found["conditions"] = [_ready(now)]
    if not status.get("addresses"):
        found["addresses"] = _addresses(name)
    if not (status.get("nodeInfo") or {}).get("operatingSystem"):
        found["nodeInfo"] = _node_info(name)
    if status.get("capacity") and not status.get("allocatable"):
        found["allocatable"] = status["capacity"]
    return {key: value for key, value in _labels(name).items() if key not in labels}, found


def _labels(name: str) -> dict[str, str]:
    return {HOSTNAME_LABEL: name, OS_LABEL: OS, ARCHITECTURE_LABEL: ARCHITECTURE}


def _addresses(name: str) -> list[Json]:
    return [{"type": "InternalIP", "address": ADDRESS}, {"type": "Hostname", "address": name}]


def _node_info(name: str) -> Json:
    return {
        "machineID": name,
        "systemUUID": name,
        "bootID": name,
        "kernelVersion": "virtual",
        "osImage": "virtual",
        "containerRuntimeVersion": f"virtual://{__version__}",
        "kubeletVersion": f"v{__version__}",
        "kubeProxyVersion": "",
        "operatingSystem": OS,
        "architecture": ARCHITECTURE,
    }


def _ready(now: datetime) -> Json:
    return {
        "type": "Ready",
        "status": "True",
        "reason": KubeletConditionReason.KUBELET_READY,
        "message": "this node only pretends",
        "lastHeartbeatTime": format_time(now),
        "lastTransitionTime": format_time(now),
    }
