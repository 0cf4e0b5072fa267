"""Pods as controllers and the scheduler read them: reduced to the fields that a decision needs."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec

from vcbatch.api.meta import ObjectMeta, Wire


class PodPhase(StrEnum):
    """`status.phase` of a pod (Kubernetes core/v1)."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


TERMINAL_PHASES: Final = (PodPhase.SUCCEEDED, PodPhase.FAILED)
"""The final phases: all containers of the pod have ended for good."""


class ResourceRequirements(Wire):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class ContainerPort(Wire):
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class Container(Wire):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None


class Toleration(Wire):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class SchedulingGate(Wire):
    name: str = ""


class Volume(Wire):
    """Only the sources that restrict where a pod may run are read: every pod has a volume with its service account's
    token, which as decoded JSON is half of a pod's memory."""

    name: str = ""
    persistent_volume_claim: dict[str, Any] | None = None
    ephemeral: dict[str, Any] | None = None

    @property
    def claims(self) -> bool:
        """Whether it needs a PersistentVolume."""
        return self.persistent_volume_claim is not None or self.ephemeral is not None


class PodSpec(Wire):
    """`affinity`, `topology_spread_constraints` and `resource_claims` stay as decoded JSON: few pods have them, and
    they are compiled once per equivalence class."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: dict[str, Any] | None = None
    tolerations: list[Toleration] | None = None
    containers: list[Container] = msgspec.field(default_factory=list[Container])
    init_containers: list[Container] | None = None
    resources: ResourceRequirements | None = None
    overhead: dict[str, str | int | float] | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    topology_spread_constraints: list[dict[str, Any]] | None = None
    volumes: list[Volume] | None = None
    resource_claims: list[dict[str, Any]] | None = None
    restart_policy: str = "Always"
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None
    host_network: bool = False

    @property
    def side_by_side(self) -> list[Container]:
        """The containers that run at the same time: sidecars (init containers that restart, KEP-753), which start
        first, and the regular ones."""
        return [*(one for one in self.init_containers or () if one.restart_policy == "Always"), *self.containers]


class StateTerminated(Wire):
    exit_code: int = 0
    signal: int | None = None
    reason: str = ""
    message: str = ""
    finished_at: str | None = None


class StateWaiting(Wire):
    reason: str = ""
    message: str = ""


class ContainerState(Wire):
    terminated: StateTerminated | None = None
    waiting: StateWaiting | None = None


class ContainerStatus(Wire):
    """`allocated_resources` is what the kubelet has reserved for the container, `resources` what the container runs
    with. `Pod` drops both, and the pod-level ones, where they equal the spec: unless the pod is being resized."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState | None = None
    allocated_resources: dict[str, str | int | float] | None = None
    resources: ResourceRequirements | None = None


class PodCondition(Wire):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodStatus(Wire):
    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    start_time: str | None = None
    nominated_node_name: str = ""
    resource_claim_statuses: list[dict[str, Any]] | None = None
    allocated_resources: dict[str, str | int | float] | None = None
    resources: ResourceRequirements | None = None
    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Pod(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    def __post_init__(self) -> None:
        status = self.status
        if status.container_statuses and not _resizes(self.spec, status):
            status.allocated_resources = status.resources = None
            for one in (*status.container_statuses, *(status.init_container_statuses or ())):
                one.allocated_resources = one.resources = None

    @property
    def resize_infeasible(self) -> bool:
        """Whether the kubelet has reported that its node can never provide what the spec requests (KEP-1287)."""
        return _infeasible(self.status)


def _infeasible(status: PodStatus) -> bool:
    # Kubernetes uses the first condition of this type (component-helpers, IsPodResizeInfeasible).
    first = next((one for one in status.conditions or () if one.type == "PodResizePending"), None)
    return first is not None and first.reason == "Infeasible"


def _resizes(spec: PodSpec, status: PodStatus) -> bool:
    """Whether the pod or one of its containers uses other resources than its spec requests, or the spec doesn't
    count since its resize is infeasible."""
    pod_level = (status.allocated_resources, _requests(status.resources))
    if spec.resources is not None and any(held not in (None, _requests(spec.resources)) for held in pod_level):
        return True
    reported = [
        (one.name, held)
        for one in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
        for held in (one.allocated_resources, _requests(one.resources))
        if held is not None
    ]
    if not reported:
        return False
    if _infeasible(status):
        return True
    asked = {one.name: _requests(one.resources) or {} for one in (*spec.containers, *(spec.init_containers or ()))}
    return any(held != asked.get(name) for name, held in reported)


def _requests(resources: ResourceRequirements | None) -> dict[str, str | int | float] | None:
    return None if resources is None else resources.requests
