"""`vcctl job` and the programs for jobs."""

from __future__ import annotations

import msgspec

from vcbatch.api import names
from vcbatch.api.loose import part
from vcbatch.api.phases import Action
from vcbatch.api.resources import EVENTS, JOBS
from vcbatch.cli.base.bus import request
from vcbatch.cli.base.output import note, say
from vcbatch.cli.base.terminal import clean
from vcbatch.cli.vcctl.access import once, required
from vcbatch.cli.vcctl.columns import NOTHING, Column, table
from vcbatch.cli.vcctl.flags import Given
from vcbatch.cli.vcctl.words import local_date
from vcbatch.interfaces.api import Api, ApiError, Json


def run(given: Given) -> int:
    """Submit a job from flags or from a file."""
    from vcbatch.cli.vcctl.job_from_flags import from_file, from_flags

    return _submitted(given, from_file(given) if given.text("filename") else from_flags(given))


def submit(given: Given) -> int:
    """`vsub`."""
    from vcbatch.cli.vcctl.job_from_flags import from_words

    return _submitted(given, from_words(given))


def _submitted(given: Given, job: Json) -> int:
    namespace = job["metadata"]["namespace"]

    async def work(api: Api) -> Json:
        return await api.create(JOBS, job, namespace=namespace)

    created = part(once(given, work), "metadata").get("name")
    say(f"run job {clean(str(created))} successfully")
    return 0


# Read commands -------------------------------------------------------------------------------------------------------


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    creationTimestamp: str | None = None  # noqa: N815 - the name in JSON
    labels: dict[str, str] | None = None


class _Task(msgspec.Struct):
    replicas: int = 0


class _Spec(msgspec.Struct, rename="camel"):
    queue: str = ""
    scheduler_name: str = ""
    tasks: list[_Task] | None = None


class _State(msgspec.Struct):
    phase: str = ""


class _Status(msgspec.Struct, rename="camel"):
    state: _State = msgspec.field(default_factory=_State)
    min_available: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    unknown: int = 0
    retry_count: int = 0


class ListedJob(msgspec.Struct):
    """The fields of a job for a line of the list."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_NAMESPACE = Column(title="Namespace", gap=3)
_COLUMNS = (
    Column(title="Name", gap=3),
    Column(title="Creation", width=15),
    Column(title="Phase", width=12),
    Column(title="JobType", width=12),
    Column(title="Replicas", width=12),
    Column(title="Min", width=6),
    Column(title="Pending", width=10),
    Column(title="Running", width=10),
    Column(title="Succeeded", width=12),
    Column(title="Failed", width=10),
    Column(title="Unknown", width=12),
    Column(title="RetryCount", width=10, title_gap=0),
)
_BATCH = "Batch"


def list_jobs(given: Given) -> int:
    """Print the jobs of a namespace, or of all."""
    everywhere = given.on("all-namespaces")

    async def work(api: Api) -> list[ListedJob]:
        namespace = None if everywhere else given.text("namespace")
        return list((await api.list(JOBS, namespace=namespace, model=ListedJob)).items)

    jobs = once(given, work)
    if not jobs:
        say(NOTHING)
        return 0
    # Rows that are filtered out count for the widths, as in Volcano.
    unseen = [[job.metadata.namespace, job.metadata.name] if everywhere else [job.metadata.name] for job in jobs]
    rows = [_row(job, everywhere=everywhere) for job in jobs if _wanted(job, given)]
    say(table((_NAMESPACE, *_COLUMNS) if everywhere else _COLUMNS, rows, unseen=unseen))
    return 0


def _wanted(job: ListedJob, given: Given) -> bool:
    queue = given.text("queue") if "queue" in given.values else ""
    scheduler = given.text("scheduler")
    return (
        (not queue or job.spec.queue == queue)
        and (not scheduler or job.spec.scheduler_name == scheduler)
        and given.text("selector") in job.metadata.name
    )


def _row(job: ListedJob, *, everywhere: bool) -> list[str | int]:
    status = job.status
    return [
        *([job.metadata.namespace] if everywhere else ()),
        job.metadata.name,
        local_date(job.metadata.creationTimestamp),
        status.state.phase,
        (job.metadata.labels or {}).get(names.JOB_TYPE) or _BATCH,
        sum(task.replicas for task in job.spec.tasks or ()),
        status.min_available,
        status.pending,
        status.running,
        status.succeeded,
        status.failed,
        status.unknown,
        status.retry_count,
    ]


def show(given: Given) -> int:
    """`vjobs`: one job by its name, or all."""
    return _viewed(given, given.text("name")) if given.text("name") else list_jobs(given)


def view(given: Given) -> int:
    """Print a job in full, with its events."""
    missing = "job name (specified by --name or -N) is mandatory to view a particular job"
    return _viewed(given, required(given, "name", missing))


def _viewed(given: Given, name: str) -> int:
    from vcbatch.cli.vcctl.job_view import events_text, job_text

    namespace = given.text("namespace")

    async def work(api: Api) -> tuple[Json, list[Json]]:
        job = await api.get(JOBS, name, namespace=namespace)
        about = f"involvedObject.kind={JOBS.kind},involvedObject.name={name}"
        try:
            events = await api.list(EVENTS, namespace=namespace, field_selector=about)
        except ApiError as error:
            note(f"events can't be read: {error}")
            return job, []
        return job, list(events.items)

    job, events = once(given, work)
    say(job_text(job) + events_text(events), end="")
    return 0


# Write commands ------------------------------------------------------------------------------------------------------


def suspend(given: Given) -> int:
    return _asked(given, Action.ABORT_JOB, "suspend")


def resume(given: Given) -> int:
    return _asked(given, Action.RESUME_JOB, "resume")


def _asked(given: Given, action: Action, verb: str) -> int:
    name, namespace = _name(given, verb), given.text("namespace")
    once(given, lambda api: request(api, JOBS, name, action, namespace=namespace, at=namespace))
    return 0


def delete(given: Given) -> int:
    return _deleted(given, "delete")


def cancel(given: Given) -> int:
    """`vcancel`."""
    return _deleted(given, "cancel")


def _deleted(given: Given, verb: str) -> int:
    name, namespace = _name(given, verb), given.text("namespace")
    once(given, lambda api: api.delete(JOBS, name, namespace=namespace))
    say(f"{verb} job {name} successfully")
    return 0


def _name(given: Given, verb: str) -> str:
    return required(given, "name", f"job name is mandatory to {verb} a particular job")
