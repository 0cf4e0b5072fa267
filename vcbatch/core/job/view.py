"""The snapshot on which a job is decided."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from vcbatch.api.command import Command
from vcbatch.api.defaults import default_job
from vcbatch.api.job import Job
from vcbatch.api.pod import Pod
from vcbatch.api.pod_references import Reference
from vcbatch.api.podgroup import PodGroup
from vcbatch.api.queue import Queue
from vcbatch.api.resources import Resource
from vcbatch.api.storage import Claim
from vcbatch.core.job.start import OtherJobs
from vcbatch.core.machine import Json

ChildKey = tuple[Resource, str]
"""A plugin's object: its resource type and its name in the job's namespace."""


def read_job(stored: Json) -> Job:
    """Parse a stored job and apply admission's defaults, which a job stored without admission lacks. Raises
    `MalformedObject`."""
    return Job.parse(default_job(stored))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job and everything that its decision reads. Decisions change nothing in it.

    Everything must be at least as new as `job`: in a snapshot with the job's present status and its pods of a minute
    ago, pods would seem lost. (Lists are consistent reads; each object that the controllers write enters the snapshot
    with the write.)
    """

    job: Job
    pods: Sequence[Pod] = ()
    """The pods whose controller is this job, by UID. Others are ignored."""
    departed: Sequence[Pod] = ()
    """The last observed states of pods of this job that were deleted since the last reconciliation: they may have the
    cause. Empty after a restart."""
    pod_group: PodGroup | None = None
    """The PodGroup `<job>-<uid>`."""
    children: Mapping[ChildKey, Json] = field(default_factory=dict[ChildKey, Json])
    """The existing objects of `vcbatch.core.job.wanted_children(job)`, as stored."""
    claims: Mapping[str, Claim] = field(default_factory=dict[str, Claim])
    """The claims in the job's namespace that its volumes refer to, by name."""
    queue: Queue | None = None
    """The queue that the job names; None where there is no such queue."""
    priority_classes: Mapping[str, int] = field(default_factory=dict[str, int])
    """The values of all PriorityClasses by name."""
    commands: Sequence[Command] = ()
    """Commands in the job's namespace whose target is a Job of its name."""
    absent: Collection[Reference] = ()
    """The objects of `vcbatch.core.job.wanted_references(job)` that don't exist according to the server. Objects that
    may not be read are left out."""
    others: OtherJobs = OtherJobs()  # noqa: RUF009 - frozen
    """The jobs that this one depends on."""
    awaited: bool = False
    """Whether another job waits for the end of this one, and has yet to record it."""
    refusal: str = ""
    """Why the last attempt to create a pod of this job failed, in the server's words; empty after a success."""
    claim_refusal: str = ""
    """The same for a claim."""
    child_refusal: str = ""
    """The same for an object of one of its plugins."""
    group_refusal: str = ""
    """The same for its PodGroup."""
