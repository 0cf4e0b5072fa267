"""The picture on which a job is decided."""

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
from vcbatch.core.machine import Json

ChildKey = tuple[Resource, str]
"""A plugin's object: its type and its name in the job's namespace."""


def read_job(stored: Json) -> Job:
    """The job with the defaults that admission fills in, of which one that was stored without it has none. Raises
    `MalformedObject`."""
    return Job.parse(default_job(stored))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job and everything that its decision reads. Nothing in it is changed by deciding.

    Everything must be at least as new as `job`: a picture that shows the job's status of now and its pods of a minute
    ago looks like lost pods. (Lists are consistent reads; each object of ours enters the picture with its write.)
    """

    job: Job
    pods: Sequence[Pod] = ()
    """The pods whose controller is this job, by UID. Others are ignored."""
    departed: Sequence[Pod] = ()
    """Pods of this job that went since the last look, as they were last: they may say why. None after a restart."""
    pod_group: PodGroup | None = None
    """The PodGroup `<job>-<uid>`."""
    children: Mapping[ChildKey, Json] = field(default_factory=dict[ChildKey, Json])
    """Of `vcbatch.core.job.wanted_children(job)`, those that exist, as they are stored."""
    claims: Mapping[str, Claim] = field(default_factory=dict[str, Claim])
    """By name, the claims in the job's namespace that its volumes are about."""
    queue: Queue | None = None
    """The queue that the job names; None where there is no such queue."""
    priority_classes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Value by name, of every PriorityClass."""
    commands: Sequence[Command] = ()
    """Commands in the job's namespace whose target is a Job of its name."""
    absent: Collection[Reference] = ()
    """Of `vcbatch.core.job.wanted_references(job)`, those of which the server says that they don't exist. What may not
    be read isn't among them."""
    refusal: str = ""
    """Why the last try to create a pod of this job failed, in the server's words; empty once a try went well."""
    claim_refusal: str = ""
    """The same of a claim."""
    child_refusal: str = ""
    """The same of an object of one of its plugins."""
    group_refusal: str = ""
    """The same of its PodGroup."""
