"""A cluster whose nodes have cards that pods share."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from tests.unit.scheduler.cluster import Cluster, Json
from vcbatch.api.config_map import ConfigMap
from vcbatch.api.node import Node
from vcbatch.api.pod import Pod
from vcbatch.api.resources import CONFIGMAPS, NODES, PODS
from vcbatch.scheduler import CycleResult, Policy, build_policy
from vcbatch.scheduler.snapshot.card_usage import CardUsage


def policy(**arguments: Any) -> Policy:
    given_ = {f"deviceshare.{name}": value for name, value in arguments.items()}
    plugins = [{"name": "gang"}, {"name": "predicates"}, {"name": "deviceshare", "arguments": given_}]
    return build_policy({"actions": "enqueue, allocate", "tiers": [{"plugins": plugins}]})


class Cards(Cluster):
    """Nodes say what cards they have; pods learn with their binding which they got."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(policy(**arguments))
        self.notes: dict[str, Json] = {}

    def vgpus(self, name: str, *records: str, event: str = "ADDED", **capacity: str) -> None:
        notes = {"volcano.sh/node-vgpu-register": "".join(f"{record}:" for record in records)}
        self._node(name, notes, capacity, event)

    def gpus(self, name: str, *, number: int, memory: int, unhealthy: str = "", event: str = "ADDED") -> None:
        capacity = {"volcano.sh/gpu-number": str(number), "volcano.sh/gpu-memory": str(memory)}
        self._node(name, {"volcano.sh/gpu-unhealthy-ids": unhealthy} if unhealthy else {}, capacity, event)

    def npus(
        self,
        name: str,
        chips: list[Json] | str,
        *,
        word: str = "Ascend310P",
        resource: str = "",
        offered: int = 100,
        event: str = "ADDED",
    ) -> None:
        """`chips` are the records of the node's register, or its text."""
        text = chips if isinstance(chips, str) else json.dumps(chips)
        capacity = {resource or f"huawei.com/{word}": str(offered)}
        self._node(name, {f"hami.io/node-register-{word}": text}, capacity, event)

    def _node(self, name: str, notes: Json, capacity: Json, event: str) -> None:
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "100", **capacity}
        if not capacity:
            amounts["volcano.sh/vgpu-number"] = "100"
        raw = {
            "metadata": {"name": name, "uid": f"node-{name}", "annotations": notes, "labels": {}},
            "status": {"allocatable": amounts, "capacity": amounts},
        }
        self.scheduler.apply(NODES, event, msgspec.convert(raw, Node))

    def sharers(
        self, gang: str, size: int, *limits: Json, sidecar: Json | None = None, labels: Json | None = None, **notes: str
    ) -> None:
        """A gang whose pods' containers and side-car have these limits, without the prefix of their names, which may be
        left out where it is `volcano.sh`. So may that of the annotations that are known here."""
        containers = [{"name": f"c{i}", "resources": _limits(limit)} for i, limit in enumerate(limits)]
        inits = [{"name": "s", "restartPolicy": "Always", "resources": _limits(sidecar)}] if sidecar else []
        self.gang(gang, 0, minimum=size)
        for index in range(size):
            name = f"{gang}-worker-{index}"
            raw: Json = {
                "metadata": {
                    "name": name,
                    "namespace": "ns",
                    "uid": f"pod-{name}",
                    "labels": labels or {},
                    "annotations": {
                        "scheduling.k8s.io/group-name": gang,
                        **{_NOTES.get(key, key): value for key, value in notes.items()},
                    },
                },
                "spec": {"schedulerName": "volcano", "containers": containers, "initContainers": inits},
                "status": {"phase": "Pending"},
            }
            self.pods[name] = raw
            self.scheduler.apply(PODS, "ADDED", msgspec.convert(raw, Pod))

    def cycle(self, *, after: float = 2.0) -> CycleResult:
        result = super().cycle(after=after)
        for bind in result.binds:
            self.notes[bind.name] = dict(bind.annotations or {})
            self.pods[bind.name]["metadata"]["annotations"].update(bind.annotations or {})
            self.change(bind.name, phase="Running")
        return result

    def uuids(self, pod: str) -> list[str]:
        ids = self.notes[pod]["volcano.sh/vgpu-ids-new"]
        return [record.split(",")[0] for part in ids.split(";") for record in part.split(":") if record]

    @property
    def usage(self) -> CardUsage:
        """That of the first family."""
        return self.scheduler._state.memory["deviceshare"].usage[0]

    @property
    def opened(self) -> bool:
        """Whether a cycle has looked at cards yet."""
        return "deviceshare" in self.scheduler._state.memory

    def config(self, text: str) -> None:
        raw = {
            "metadata": {"name": "volcano-vgpu-device-config", "namespace": "kube-system"},
            "data": {"device-config.yaml": text},
        }
        self.scheduler.apply(CONFIGMAPS, "ADDED", msgspec.convert(raw, ConfigMap))


def _limits(given: Json) -> Json:
    return {"limits": {_resource(key): str(value) for key, value in given.items()}}


def _resource(key: str) -> str:
    return key if "/" in key else f"volcano.sh/{key.replace('_', '-')}"


_NOTES = {
    "use_type": "nvidia.com/use-gputype",
    "not_type": "nvidia.com/nouse-gputype",
    "use_uuid": "volcano.sh/vgpu-use-gpuuuid",
    "not_uuid": "volcano.sh/vgpu-nouse-gpuuuid",
    "mode": "volcano.sh/vgpu-mode",
    "policy": "volcano.sh/vgpu-podgroup-policy",
}


def card(uuid: str, *, places: int = 10, memory: int = 16000, kind: str = "NVIDIA-V100", mode: str = "") -> str:
    return f"{uuid},{places},{memory},{kind},true,{mode}"
