"""Which fields of a stored object are mutable.

The rule for jobs is generated from this table, as is `docs/mutability.md`, and a test changes every field and compares.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from vcbatch.api.resources import CRONJOBS, HYPERNODES, JOBFLOWS, JOBS, PODGROUPS, QUEUES, Resource


class Change(StrEnum):
    """Whether a change is allowed."""

    YES = "yes"
    CHECKED = "if the result is valid"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a kind's spec, or an annotation. `path`: names joined by dots, `[*]` for every entry of a list."""

    path: str
    change: Change
    effect: str
    """The effect of a change, or an alternative where it isn't allowed."""


FILLED_CLAIM_NAME: Final = "volumes[*].volumeClaimName"
"""May change only together with a `volumeClaim`: the controller sets it there, as Volcano's does."""

_NEW_JOB: Final = "create a new job"
_NEXT_CYCLE: Final = "takes effect in the next scheduling cycle"
_NEXT_SLOT: Final = "takes effect at the next scheduled run; existing jobs are not changed"

FIELDS: Final[dict[Resource, tuple[Field, ...]]] = {
    JOBS: (
        Field("minAvailable", Change.CHECKED, "0 to the sum of replicas; changes the minimum of the gang"),
        Field(
            "priorityClassName",
            Change.CHECKED,
            "must exist; applies to the gang and to new pods",
        ),
        Field("tasks[*].replicas", Change.CHECKED, "pods are created, or deleted from the highest index"),
        Field("tasks[*].minAvailable", Change.CHECKED, "0 to the task's replicas"),
        Field(FILLED_CLAIM_NAME, Change.YES, "beside a volumeClaim only, where Volcano's controller fills it in"),
        Field("tasks", Change.NO, "tasks can't be added, removed or renamed; " + _NEW_JOB),
        Field("tasks[*].name", Change.NO, _NEW_JOB),
        Field("tasks[*].template", Change.NO, _NEW_JOB),
        Field("tasks[*].policies", Change.NO, _NEW_JOB),
        Field("tasks[*].topologyPolicy", Change.NO, _NEW_JOB),
        Field("tasks[*].maxRetry", Change.NO, _NEW_JOB),
        Field("tasks[*].dependsOn", Change.NO, _NEW_JOB),
        Field("tasks[*].partitionPolicy", Change.NO, _NEW_JOB),
        Field("schedulerName", Change.NO, _NEW_JOB),
        Field("queue", Change.NO, _NEW_JOB),
        Field("volumes", Change.NO, _NEW_JOB),
        Field("policies", Change.NO, _NEW_JOB),
        Field("plugins", Change.NO, _NEW_JOB),
        Field("runningEstimate", Change.NO, "nothing reads it"),
        Field("maxRetry", Change.NO, _NEW_JOB),
        Field("ttlSecondsAfterFinished", Change.NO, "delete the job"),
        Field("minSuccess", Change.NO, _NEW_JOB),
        Field("networkTopology", Change.NO, _NEW_JOB),
    ),
    QUEUES: (
        Field("weight", Change.YES, _NEXT_CYCLE),
        Field("capability", Change.CHECKED, "fits above and below; not of `root`"),
        Field("deserved", Change.CHECKED, "between guarantee and capability, fits above and below; not of `root`"),
        Field("guarantee", Change.CHECKED, "at most deserved, fits above and below; not of `root`"),
        Field("reclaimable", Change.YES, _NEXT_CYCLE),
        Field("parent", Change.CHECKED, "exists, isn't below this queue, isn't too deep, holds no pods of its own"),
        Field("priority", Change.YES, _NEXT_CYCLE),
        Field("dequeueStrategy", Change.YES, _NEXT_CYCLE),
        Field("affinity", Change.YES, _NEXT_CYCLE),
        Field("extendClusters", Change.YES, "nothing acts on it"),
        Field("type", Change.YES, "nothing acts on it"),
    ),
    PODGROUPS: (
        Field("queue", Change.CHECKED, "exists, is Open, allows the namespace"),
        Field("minMember", Change.YES, _NEXT_CYCLE),
        Field("minTaskMember", Change.YES, _NEXT_CYCLE),
        Field("priorityClassName", Change.YES, _NEXT_CYCLE),
        Field("minResources", Change.YES, _NEXT_CYCLE),
        Field("networkTopology", Change.YES, _NEXT_CYCLE),
        Field("subGroupPolicy", Change.YES, _NEXT_CYCLE),
    ),
    JOBFLOWS: (
        Field("flows", Change.CHECKED, "must have no cycle; existing jobs are not changed"),
        Field("jobRetainPolicy", Change.YES, "takes effect when the flow ends"),
    ),
    CRONJOBS: (
        Field("schedule", Change.CHECKED, _NEXT_SLOT),
        Field("timeZone", Change.CHECKED, _NEXT_SLOT),
        Field("startingDeadlineSeconds", Change.YES, _NEXT_SLOT),
        Field("concurrencyPolicy", Change.YES, _NEXT_SLOT),
        Field("suspend", Change.YES, _NEXT_SLOT),
        Field("jobTemplate", Change.CHECKED, _NEXT_SLOT),
        Field("successfulJobsHistoryLimit", Change.YES, "takes effect when the next job ends"),
        Field("failedJobsHistoryLimit", Change.YES, "takes effect when the next job ends"),
    ),
    HYPERNODES: (
        Field("tier", Change.YES, _NEXT_CYCLE),
        Field("tierName", Change.YES, _NEXT_CYCLE),
        Field("members", Change.CHECKED, "at least one; patterns must be valid"),
    ),
}
"""Every field of the specs. Metadata is mutable, as long as the annotations of vcbatch are valid."""


def changeable(resource: Resource) -> tuple[str, ...]:
    """The paths of the mutable fields."""
    return tuple(field.path for field in FIELDS[resource] if field.change is not Change.NO)


def table(resource: Resource) -> str:
    """The fields of a kind as a Markdown table."""
    lines = ["| Field | May change | |", "|---|---|---|"]
    lines += [f"| `spec.{field.path}` | {field.change} | {field.effect} |" for field in FIELDS[resource]]
    return "\n".join(lines) + "\n"
