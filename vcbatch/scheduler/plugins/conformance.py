"""Protects the pods that the cluster itself needs from eviction."""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.api import names
from vcbatch.scheduler.framework.plugin import GangEviction, Plugin
from vcbatch.scheduler.model.objects import Task


class Conformance(Plugin):
    """Pods of the system's priority classes, and all pods in its namespace, are never victims."""

    VICTIMS_BY_STANDING = True
    KEEPS_VICTIMS = True

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> list[Task]:
        return unprotected(candidates)

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> list[Task]:
        return unprotected(candidates)

    def evictable(self, eviction: GangEviction, candidates: Sequence[Task]) -> Sequence[Task]:
        return unprotected(candidates)


def unprotected(candidates: Sequence[Task]) -> list[Task]:
    """The candidates that aren't pods of the system."""
    return [
        task
        for task in candidates
        if task.namespace != names.SYSTEM_NAMESPACE
        and task.pod.spec.priority_class_name not in names.SYSTEM_PRIORITY_CLASSES
    ]
