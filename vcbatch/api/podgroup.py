"""The PodGroup (`scheduling.volcano.sh/v1beta1`): a gang, as the scheduler reads it. It has no status subresource."""

from __future__ import annotations

from pydantic import Field

from vcbatch.api.model import Json, Model, NetworkTopology, Object, ResourceList
from vcbatch.api.phases import PodGroupPhase as PodGroupPhase


class SubGroupPolicy(Model):
    name: str = ""
    network_topology: NetworkTopology | None = None
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    label_selector: Json | None = None
    match_label_keys: list[str] = Field(default_factory=list[str])


class PodGroupSpec(Model):
    min_member: int = 0
    min_task_member: dict[str, int] = Field(default_factory=dict[str, int])
    queue: str = ""
    priority_class_name: str = ""
    min_resources: ResourceList | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[SubGroupPolicy] = Field(default_factory=list[SubGroupPolicy])


class PodGroupCondition(Model):
    """One condition; there is at most one of each `type`. `transition_id` names the session that wrote it."""

    type: str = ""
    status: str = ""
    transition_id: str = ""
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(Model):
    phase: str = ""
    conditions: list[PodGroupCondition] = Field(default_factory=list[PodGroupCondition])
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(Object):
    spec: PodGroupSpec = Field(default_factory=PodGroupSpec)
    status: PodGroupStatus = Field(default_factory=PodGroupStatus)
