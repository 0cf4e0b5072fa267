"""apps/v1 as the controllers of local mode read it: reduced to the fields that a decision needs."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from vcbatch.api.meta import ObjectMeta, Wire
from vcbatch.api.model import Json


class StrategyType(StrEnum):
    """How the pods of a Deployment, StatefulSet or DaemonSet are replaced by those of a new template."""

    ROLLING_UPDATE = "RollingUpdate"
    RECREATE = "Recreate"
    """Deployments only."""
    ON_DELETE = "OnDelete"
    """StatefulSets and DaemonSets only."""


class PodManagement(StrEnum):
    """Whether a StatefulSet's pods are created and deleted one after the other or all at once."""

    ORDERED_READY = "OrderedReady"
    PARALLEL = "Parallel"


class Retention(StrEnum):
    """Whether a StatefulSet's claims are retained or deleted."""

    RETAIN = "Retain"
    DELETE = "Delete"


class Condition(Wire):
    """A condition of a Deployment or a ReplicaSet; the latter's has no `last_update_time`."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_update_time: str | None = None
    last_transition_time: str | None = None


class RollingUpdate(Wire):
    """Numbers of pods, or percentages of `replicas` such as `25%`. `partition` is a StatefulSet's."""

    max_surge: int | str | None = None
    max_unavailable: int | str | None = None
    partition: int | None = None


class Strategy(Wire):
    type: str = StrategyType.ROLLING_UPDATE
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(Wire):
    replicas: int | None = None
    selector: Json | None = None
    template: Json = msgspec.field(default_factory=dict[str, Any])
    strategy: Strategy = msgspec.field(default_factory=Strategy)
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    progress_deadline_seconds: int | None = None
    paused: bool = False


class DeploymentStatus(Wire):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    collision_count: int = 0
    conditions: list[Condition] | None = None


class Deployment(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: DeploymentSpec = msgspec.field(default_factory=DeploymentSpec)
    status: DeploymentStatus = msgspec.field(default_factory=DeploymentStatus)


class ReplicaSetSpec(Wire):
    replicas: int | None = None
    selector: Json | None = None
    template: Json = msgspec.field(default_factory=dict[str, Any])
    min_ready_seconds: int = 0


class ReplicaSetStatus(Wire):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    terminating_replicas: int = 0
    conditions: list[Condition] | None = None


class ReplicaSet(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ReplicaSetSpec = msgspec.field(default_factory=ReplicaSetSpec)
    status: ReplicaSetStatus = msgspec.field(default_factory=ReplicaSetStatus)

    @property
    def size(self) -> int:
        """The number of wanted pods."""
        return 1 if self.spec.replicas is None else self.spec.replicas


class Ordinals(Wire):
    start: int = 0


class ClaimRetention(Wire):
    when_deleted: str = Retention.RETAIN
    when_scaled: str = Retention.RETAIN


class StatefulSetSpec(Wire):
    replicas: int | None = None
    service_name: str = ""
    selector: Json | None = None
    template: Json = msgspec.field(default_factory=dict[str, Any])
    volume_claim_templates: list[Json] | None = None
    pod_management_policy: str = PodManagement.ORDERED_READY
    update_strategy: Strategy = msgspec.field(default_factory=Strategy)
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    ordinals: Ordinals | None = None
    persistent_volume_claim_retention_policy: ClaimRetention | None = None


class StatefulSetStatus(Wire):
    observed_generation: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int = 0


class StatefulSet(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: StatefulSetSpec = msgspec.field(default_factory=StatefulSetSpec)
    status: StatefulSetStatus = msgspec.field(default_factory=StatefulSetStatus)


class ControllerRevision(Wire):
    """One earlier or present template of a StatefulSet or DaemonSet; `data` is a patch of its spec."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    data: Json = msgspec.field(default_factory=dict[str, Any])
    revision: int = 0
