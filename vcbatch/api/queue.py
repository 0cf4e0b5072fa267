"""The Queue (`scheduling.volcano.sh/v1beta1`, cluster-scoped): a share of the cluster's resources and its limits."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from vcbatch.api import names
from vcbatch.api.model import Model, Object, ResourceList
from vcbatch.api.phases import QueueState as QueueState

ROOT = names.ROOT_QUEUE
DEFAULT = names.DEFAULT_QUEUE


class DequeueStrategy(StrEnum):
    """How a job at the head of the queue that doesn't fit affects those behind it: `fifo` blocks them."""

    FIFO = "fifo"
    TRAVERSE = "traverse"


class Guarantee(Model):
    resource: ResourceList = Field(default_factory=dict[str, str | int | float])


class NodeGroupAffinity(Model):
    required_during_scheduling_ignored_during_execution: list[str] = Field(default_factory=list[str])
    preferred_during_scheduling_ignored_during_execution: list[str] = Field(default_factory=list[str])


class Affinity(Model):
    node_group_affinity: NodeGroupAffinity | None = None
    node_group_anti_affinity: NodeGroupAffinity | None = None


class Cluster(Model):
    """A cluster to which jobs may be forwarded."""

    name: str = ""
    weight: int = 0
    capacity: ResourceList = Field(default_factory=dict[str, str | int | float])


class QueueSpec(Model):
    weight: int = 0
    capability: ResourceList = Field(default_factory=dict[str, str | int | float])
    reclaimable: bool | None = None
    extend_clusters: list[Cluster] = Field(default_factory=list[Cluster])
    guarantee: Guarantee = Field(default_factory=Guarantee)
    affinity: Affinity | None = None
    type: str = ""
    parent: str = ""
    deserved: ResourceList = Field(default_factory=dict[str, str | int | float])
    priority: int = 0
    dequeue_strategy: str = ""


class Reservation(Model):
    nodes: list[str] = Field(default_factory=list[str])
    resource: ResourceList = Field(default_factory=dict[str, str | int | float])


class QueueStatus(Model):
    """Counts are PodGroups by phase; `allocated` is the usage of their pods."""

    state: str = ""
    unknown: int = 0
    pending: int = 0
    running: int = 0
    inqueue: int = 0
    completed: int = 0
    reservation: Reservation | None = None
    allocated: ResourceList = Field(default_factory=dict[str, str | int | float])


class Queue(Object):
    spec: QueueSpec = Field(default_factory=QueueSpec)
    status: QueueStatus = Field(default_factory=QueueStatus)
