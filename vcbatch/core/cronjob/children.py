"""The jobs of a CronJob: which still run, how the others ended, and for which slots they were created."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from vcbatch.api import names
from vcbatch.api.batch_job import BatchJob
from vcbatch.api.cron import Calendar, Every
from vcbatch.api.cronjob import AnyCronJob, ObjectReference
from vcbatch.api.model import owner_of
from vcbatch.api.resources import Resource
from vcbatch.core.cronjob.kinds import (
    KUBERNETES,
    VOLCANO,
    AnyJob,
    Outcome,
    ended_at,
    kinds_of,
    outcome_of,
    read_time,
)
from vcbatch.core.cronjob.view import CronJobView
from vcbatch.core.machine import Json, ObjectRef, ref_of

_MINUTE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Children:
    """The jobs by state, each list from the oldest to the newest. Only `foreign` has jobs of other owners."""

    running: Sequence[AnyJob]
    """Unfinished jobs that aren't being deleted, suspended ones included, since an aborted job may be resumed. Jobs
    that a user created from the CronJob by hand are left out: no slot waits for them, and none replaces them."""
    ending: Sequence[AnyJob]
    """Unfinished jobs that are being deleted: their pods may still run."""
    completed: Sequence[AnyJob]
    failed: Sequence[AnyJob]
    """Failed or Terminated. Neither list has jobs that are being deleted."""
    own: Mapping[str, AnyJob]
    """All of the CronJob's jobs by name."""
    foreign: Mapping[str, AnyJob]
    """Jobs of other owners that have the name of a possible job of the CronJob, by name."""

    @property
    def last_slot(self) -> datetime | None:
        """The latest slot for which one of the jobs was created."""
        slots = [slot for slot in map(slot_of, self.own.values()) if slot is not None]
        return max(slots, default=None)

    @property
    def last_success(self) -> datetime | None:
        """When one of the jobs last completed."""
        ends = [ended_at(job) for job in self.own.values() if outcome_of(job) is Outcome.COMPLETED]
        return max((end for end in ends if end is not None), default=None)


def children_of(view: CronJobView) -> Children:
    """Sort the jobs by state. The owner is identified by the controller's UID, never by a name."""
    own: dict[str, AnyJob] = {}
    foreign: dict[str, AnyJob] = {}
    for job in sorted(view.jobs, key=_age):
        (own if is_controlled(job, view.cron_job) else foreign)[job.name] = job
    unfinished = [job for job in own.values() if outcome_of(job) is None and not _by_hand(job)]
    finished = [job for job in own.values() if outcome_of(job) is not None and not job.metadata.deletion_timestamp]
    return Children(
        running=[job for job in unfinished if not job.metadata.deletion_timestamp],
        ending=[job for job in unfinished if job.metadata.deletion_timestamp],
        completed=[job for job in finished if outcome_of(job) is Outcome.COMPLETED],
        failed=[job for job in finished if outcome_of(job) is Outcome.FAILED],
        own=own,
        foreign=foreign,
    )


def is_controlled(job: AnyJob, cron_job: AnyCronJob) -> bool:
    """Whether the CronJob with this UID created or adopted the job."""
    owner = job.metadata.controller_owner()
    return owner is not None and owner.kind == kinds_of(cron_job).cron_job.kind and owner.uid == cron_job.uid


def slot_of(job: AnyJob) -> datetime | None:
    """The slot for which the job was created; None for one that was created by hand."""
    annotation = (KUBERNETES if isinstance(job, BatchJob) else VOLCANO).slot
    return read_time(job.metadata.annotations.get(annotation))


def _by_hand(job: AnyJob) -> bool:
    return job.metadata.annotations.get(names.INSTANTIATE) == "manual"


def job_name(cron_job: AnyCronJob, slot: datetime, rule: Calendar | Every) -> str:
    """The job name that is unique for a slot: it ends in the slot in minutes since 1970, as in Kubernetes and Volcano.

    An interval below a minute uses seconds, since its jobs would share their names otherwise. Both leave 52 characters
    for a CronJob's name, and never collide until the year 2160: one has eight digits and the other ten.
    """
    seconds = int(slot.timestamp())
    short = isinstance(rule, Every) and rule.interval < _MINUTE
    return f"{cron_job.name}-{seconds if short else seconds // 60}"


def job_body(cron_job: AnyCronJob, slot: datetime, *, name: str, zone: tzinfo) -> Json:
    """The job of a slot. Of the template's metadata only labels and annotations are copied, as in Volcano."""
    template, kinds = cron_job.spec.job_template, kinds_of(cron_job)
    metadata: Json = {
        "name": name,
        "namespace": cron_job.namespace,
        "annotations": {**template.metadata.annotations, kinds.slot: _in_zone(slot, zone)},
        "ownerReferences": [owner_of(cron_job, kinds.cron_job)],
    }
    if template.metadata.labels:
        metadata["labels"] = dict(template.metadata.labels)
    return {
        "apiVersion": kinds.job.api_version,
        "kind": kinds.job.kind,
        "metadata": metadata,
        "spec": template.spec.dump(),
    }


def active_entry(job: AnyJob) -> ObjectReference:
    """The entry of a job in `status.active`."""
    resource = _resource_of(job)
    return ObjectReference(
        api_version=resource.api_version,
        kind=resource.kind,
        namespace=job.namespace,
        name=job.name,
        uid=job.uid,
        resource_version=job.metadata.resource_version,
    )


def job_ref(job: AnyJob) -> ObjectRef:
    return ref_of(_resource_of(job), job)


def _resource_of(job: AnyJob) -> Resource:
    return (KUBERNETES if isinstance(job, BatchJob) else VOLCANO).job


def _age(job: AnyJob) -> tuple[datetime, str]:
    """Sort key: oldest first, then by name among those of the same second."""
    return (read_time(job.metadata.creation_timestamp) or datetime.min.replace(tzinfo=UTC), job.name)


def _in_zone(slot: datetime, zone: tzinfo) -> str:
    """RFC 3339 as Go formats it."""
    text = slot.astimezone(zone).isoformat(timespec="seconds")
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text
