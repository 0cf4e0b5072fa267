"""Kubernetes' own workloads as the PodGroup controller reads them: what their pods' PodGroup takes from them."""

from __future__ import annotations

import msgspec

from vcbatch.api.meta import ObjectMeta, Wire
from vcbatch.api.resources import BATCH_JOBS, DAEMONSETS, REPLICASETS, STATEFULSETS

WORKLOADS = (REPLICASETS, STATEFULSETS, DAEMONSETS, BATCH_JOBS)
"""The kinds whose annotations count for the PodGroup of their pods. A Deployment's arrive with its ReplicaSets."""


class WorkloadSpec(Wire):
    replicas: int | None = None


class Workload(Wire):
    """A ReplicaSet, StatefulSet, DaemonSet or batch/v1 Job. Only the first two have `replicas`."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: WorkloadSpec = msgspec.field(default_factory=WorkloadSpec)

    @property
    def scaled_to_zero(self) -> bool:
        return self.spec.replicas == 0
