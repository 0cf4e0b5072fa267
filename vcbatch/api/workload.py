"""Kubernetes' own workloads as the PodGroup controller reads them: the fields from which it derives a PodGroup."""

from __future__ import annotations

import msgspec

from vcbatch.api.meta import ObjectMeta, Wire
from vcbatch.api.resources import BATCH_JOBS, DAEMONSETS, REPLICASETS, STATEFULSETS

WORKLOADS = (REPLICASETS, STATEFULSETS, DAEMONSETS, BATCH_JOBS)
"""The kinds whose annotations count for the PodGroup of their pods. A Deployment's arrive with its ReplicaSets."""


_ENDS = ("Complete", "Failed")


class WorkloadSpec(Wire):
    replicas: int | None = None
    completions: int | None = None
    parallelism: int | None = None


class WorkloadCondition(Wire):
    type: str = ""
    status: str = ""


class WorkloadStatus(Wire):
    succeeded: int | None = None
    failed_indexes: str | None = None
    conditions: list[WorkloadCondition] | None = None


class Workload(Wire):
    """A ReplicaSet, StatefulSet, DaemonSet or batch/v1 Job. Only the first two have `replicas`; only a Job has
    `completions`, `parallelism` and the status fields."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: WorkloadSpec = msgspec.field(default_factory=WorkloadSpec)
    status: WorkloadStatus = msgspec.field(default_factory=WorkloadStatus)

    @property
    def scaled_to_zero(self) -> bool:
        return self.spec.replicas == 0

    @property
    def goes_on(self) -> bool:
        """Whether it may create another pod: it isn't being deleted, isn't scaled to zero, and no condition says that
        it has ended (`Complete` and `Failed` of a batch/v1 Job)."""
        ended = any(one.type in _ENDS and one.status == "True" for one in self.status.conditions or ())
        return not (self.metadata.deletion_timestamp or self.scaled_to_zero or ended)
