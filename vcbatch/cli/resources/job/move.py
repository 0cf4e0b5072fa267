"""`vcbatch job move`: move a job that doesn't run to another queue.

`spec.queue` of a job can't be changed, so the job is recreated under its own name. Between the deletion of the old job
and the creation of the new one it is stored as a JobTemplate in the same namespace. If the command is interrupted in
between, the same command continues from there: at any moment the server has the job in one form or the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from vcbatch.api.names import MOVING_JOB
from vcbatch.api.phases import JobPhase
from vcbatch.api.resources import JOBS, JOBTEMPLATES, QUEUES
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import name_of, number, objects, text, uid_of, words
from vcbatch.cli.base.names import job_names, queue_names
from vcbatch.cli.base.output import CliError, note, say
from vcbatch.cli.base.titles import title
from vcbatch.cli.resources.job.copies import manifest_of
from vcbatch.cli.resources.job.requeue import suspend
from vcbatch.cli.resources.kinds import job_queue
from vcbatch.core.waiting import phase_of
from vcbatch.interfaces.api import Api, ApiError, get_or_none
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.clock import BlockingClock

if TYPE_CHECKING:
    from vcbatch.api.queue import Queue

Json = dict[str, Any]

_PATIENCE: Final = 120.0
_LOOK: Final = 0.2
_LONGEST_NAME: Final = 253


@click.command("move")
@click.argument("name", shell_complete=job_names)
@click.argument("queue", shell_complete=queue_names)
@access_options
def command(name: str, queue: str, access: Access) -> int:
    """Move a pending or suspended job to another queue.

    The job is recreated in the target queue and starts from scratch. Running jobs are rejected; suspend them first.
    If the command is interrupted, run it again: until the move is complete, the job is kept in a JobTemplate.
    """
    say(access.once(lambda api: move(api, name, queue, namespace=access.namespace, clock=BlockingClock())))
    return 0


async def move(api: Api, name: str, queue: str, *, namespace: str, clock: Clock) -> str:
    """Move the job, or continue an interrupted move; returns the message for the user. Raises `CliError`,
    `ApiError`."""
    job = await get_or_none(api, JOBS, name, namespace=namespace)
    kept = await get_or_none(api, JOBTEMPLATES, kept_name(name), namespace=namespace)
    if kept is not None and not _moved(kept):
        raise CliError(
            f"jobtemplate {kept_name(name)} already exists", hint="Rename it; the name is reserved for moving the job."
        )
    source = job or kept
    if source is None:
        raise CliError(f'job "{name}" not found in namespace {namespace}', hint="Check the namespace (--namespace).")
    await _may_take(api, _manifest(source, name, queue, namespace))
    if job is not None and kept is not None and _moved(job) == _moved(kept):
        # The job was created by a move that was interrupted before its last step.
        await _forget(api, kept, namespace)
        kept = None
    if job is not None and kept is not None and _moved(kept) != uid_of(job):
        raise _another(name)
    if job is not None:
        if job_queue(job) == queue:
            if kept is not None:
                await _forget(api, kept, namespace)
            return f"{title(JOBS, name)} already in queue {queue}"
        _may_leave(job)
        await suspend(api, job, clock=clock)
        kept = kept or await _keep(api, job, namespace)
    if kept is None:
        raise AssertionError("either there is a job, which is kept by now, or it was kept before")
    await _deleted(api, kept, name, namespace, clock)
    await _made(api, kept, name, queue, namespace)
    await _forget(api, kept, namespace)
    return f"{title(JOBS, name)} moved to queue {queue}"


async def _made(api: Api, kept: Json, name: str, queue: str, namespace: str) -> None:
    try:
        await api.create(JOBS, _manifest(kept, name, queue, namespace), namespace=namespace)
    except ApiError as error:
        there = await get_or_none(api, JOBS, name, namespace=namespace) if error.already_exists else None
        if there is not None and _moved(there) == _moved(kept):
            return  # a response was lost
        if there is not None:
            raise _another(name) from error
        raise CliError(
            f"queue {queue} rejected the job: {error.sentence}",
            hint=f"The job is kept in jobtemplate {kept_name(name)}. To continue: `vcbatch job move {name} QUEUE`",
        ) from error


def _another(name: str) -> CliError:
    return CliError(
        f"another job {name} was created during the move",
        hint=f"The moved job is kept in jobtemplate {kept_name(name)}. Delete one of the two.",
    )


def kept_name(name: str) -> str:
    """The name of the JobTemplate that stores a job during its move."""
    return f"moving-{name}"[:_LONGEST_NAME]


def _may_leave(job: Json) -> None:
    name, phase = name_of(job), phase_of(job)
    owner = next((one for one in objects(job, "metadata", "ownerReferences") if one.get("controller")), None)
    if owner is not None:
        kind = f"{text(owner, 'kind').lower()} {text(owner, 'name')}"
        raise CliError(
            f"job {name} is managed by {kind}, which would recreate it in its queue",
            hint=f"Change the queue of its owner: kubectl edit {kind}",
        )
    if phase.finished:
        raise CliError(
            f"job {name} is {phase}; only pending and suspended jobs can be moved",
            hint=f"To resubmit it to another queue: vcbatch job requeue {name} --queue QUEUE",
        )
    running = number(job, "status", "running")
    if phase is JobPhase.ABORTING or (phase in (JobPhase.PENDING, JobPhase.ABORTED) and not running):
        return
    raise CliError(
        f"job {name} is {phase} with {running} running pods; only pending and suspended jobs can be moved",
        hint=f"To move it: `vcbatch job suspend {name}`, then move it. It starts from scratch.",
    )


async def _may_take(api: Api, manifest: Json) -> None:
    """Raise for what admission would reject, before anything is changed."""
    from vcbatch.api.job import Job
    from vcbatch.api.queue import Queue
    from vcbatch.api.validate import job_errors, sentence

    queues = [Queue.parse(queue) for queue in (await api.list(QUEUES)).items]
    known = _Queues({queue.name: queue for queue in queues})
    errors = job_errors(Job.parse(manifest), known)
    if errors:
        queue = manifest["spec"]["queue"]
        hint = "List queues with `vcbatch queue tree`. The job was not changed."
        raise CliError(f"queue {queue} rejected the job: {sentence(errors)}", hint=hint)


class _Queues:
    """The lookup of admission rules with the existing queues. All other objects count as existing, as they did for the
    old job."""

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self._queues = queues

    def queue(self, name: str) -> Queue | None:
        return self._queues.get(name)

    def queues(self) -> Sequence[Queue]:
        return list(self._queues.values())

    def has_priority_class(self, name: str) -> bool:
        return True

    def has_time_zone(self, name: str) -> bool:
        return True


async def _keep(api: Api, job: Json, namespace: str) -> Json:
    """Store the job's manifest in a JobTemplate and return that."""
    manifest = manifest_of(job)
    metadata: Json = {**manifest["metadata"], "name": kept_name(name_of(job))}
    metadata["annotations"] = {**metadata.get("annotations", {}), MOVING_JOB: uid_of(job)}
    template: Json = {
        "apiVersion": JOBTEMPLATES.api_version,
        "kind": JOBTEMPLATES.kind,
        "metadata": metadata,
        "spec": manifest["spec"],
    }
    note(f"saving job {name_of(job)} to jobtemplate {metadata['name']}")
    return await api.create(JOBTEMPLATES, template, namespace=namespace)


def _manifest(source: Json, name: str, queue: str, namespace: str) -> Json:
    """The manifest of the job to create; one from a stored template names the UID of the old job in an annotation."""
    manifest = manifest_of(source, name=name, queue=queue)
    manifest["metadata"]["namespace"] = namespace
    if uid := _moved(source):
        manifest["metadata"].setdefault("annotations", {})[MOVING_JOB] = uid
    return manifest


def _moved(obj: Json) -> str:
    """The UID of the job that the object replaces; empty where it replaces none."""
    return words(obj, "metadata", "annotations").get(MOVING_JOB, "")


async def _deleted(api: Api, kept: Json, name: str, namespace: str, clock: Clock) -> None:
    """Delete the stored job, and wait until it and its pods are deleted. Another job of its name isn't touched."""
    uid = _moved(kept)
    try:
        await api.delete(JOBS, name, namespace=namespace, uid=uid, propagation="Foreground")
    except ApiError as error:
        if not (error.not_found or error.conflict):
            raise
    deadline = clock.monotonic() + _PATIENCE
    while (there := await get_or_none(api, JOBS, name, namespace=namespace)) is not None and uid_of(there) == uid:
        if clock.monotonic() > deadline:
            raise CliError(
                f"job {name} is still being deleted after {_PATIENCE:.0f} s",
                hint=f"Its pods are still terminating. Run the command again later; "
                f"the job is kept in jobtemplate {kept_name(name)}.",
            )
        await clock.sleep(_LOOK)


async def _forget(api: Api, kept: Json, namespace: str) -> None:
    await api.delete(JOBTEMPLATES, name_of(kept), namespace=namespace, uid=uid_of(kept))
