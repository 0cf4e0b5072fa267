"""The kinds that have lists, and the columns of their tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from vcbatch.api import names
from vcbatch.api.messages import cause_of, origin_of, waits_until_gone
from vcbatch.api.phases import JobFlowPhase, JobPhase, QueueState
from vcbatch.api.pod_summary import summarise
from vcbatch.api.reasons import JobReason
from vcbatch.api.resources import CRONJOBS, HYPERNODES, JOBFLOWS, JOBTEMPLATES, PODS, QUEUES
from vcbatch.cli.base.fields import NONE, dig, name_of, number, objects, since, text, words
from vcbatch.cli.base.output import age
from vcbatch.cli.base.table import Cell
from vcbatch.cli.base.terminal import Tone
from vcbatch.cli.resources.columns import AGE, NAME, Column
from vcbatch.cli.resources.listing import Kind

Json = dict[str, Any]
Show = Callable[[Json, datetime], str | Cell]

_TONES: Final = {
    JobPhase.PENDING: Tone.WAITING,
    JobPhase.RESTARTING: Tone.WAITING,
    JobPhase.ABORTED: Tone.WAITING,
    JobPhase.RUNNING: Tone.GOOD,
    JobPhase.COMPLETED: Tone.GOOD,
    JobPhase.FAILED: Tone.BAD,
    JobPhase.TERMINATED: Tone.BAD,
    JobFlowPhase.SUCCEED: Tone.GOOD,
    QueueState.OPEN: Tone.GOOD,
    QueueState.CLOSED: Tone.BAD,
    QueueState.CLOSING: Tone.WAITING,
    "Succeeded": Tone.GOOD,
    "Ready": Tone.GOOD,
}
"""The tones of phases and states; other words have none."""

_EXPLAINED: Final = frozenset(
    {JobPhase.PENDING, JobPhase.ABORTED, JobPhase.FAILED, JobPhase.RESTARTING, JobPhase.TERMINATED}
)
_ENDING: Final = frozenset({JobPhase.ABORTING, JobPhase.COMPLETING, JobPhase.TERMINATING})
_TROUBLE: Final = frozenset(
    {
        JobReason.PLUGIN_ERROR,
        JobReason.POD_TERMINATING,
        JobReason.PVC_ERROR,
        JobReason.FAILED_CREATE,
        JobReason.OBJECTS_MISSING,
    }
)
"""Why a running job lacks pods."""
_AT_REQUEST: Final[dict[str, str]] = {JobPhase.ABORTED: "suspended", JobPhase.TERMINATED: "cancelled"}
"""The words for phases that a Command requested."""


def toned(word: str) -> Cell:
    """A phase or state in its tone."""
    return Cell(word, _TONES.get(word))


def at(*path: str, default: str = NONE) -> Show:
    """The content of a column: the text at a path."""
    return lambda obj, _: text(obj, *path) or default


def count(*path: str) -> Show:
    """The content of a column: the number at a path."""
    return lambda obj, _: str(number(obj, *path))


def _labels(obj: Json, _: datetime) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(words(obj, "metadata", "labels").items())) or NONE


# -- jobs -----------------------------------------------------------------------------------------------------------


def job_phase(job: Json) -> str:
    """The phase; Pending for a job that no controller has reconciled yet."""
    return text(job, "status", "state", "phase") or JobPhase.PENDING


def job_queue(job: Json) -> str:
    return text(job, "spec", "queue") or names.DEFAULT_QUEUE


def job_size(job: Json) -> int:
    """The number of pods in its spec."""
    return sum(number(task, "replicas") for task in objects(job, "spec", "tasks"))


def job_pods(job: Json) -> str:
    """Running and succeeded pods, of all."""
    return f"{number(job, 'status', 'running') + number(job, 'status', 'succeeded')}/{job_size(job)}"


def job_why(job: Json) -> str:
    """Why it is pending, lacks pods, or failed, in one line; empty for a job without problems."""
    phase, reason = job_phase(job), text(job, "status", "state", "reason")
    message = text(job, "status", "state", "message")
    held_up = (phase == JobPhase.RUNNING and reason in _TROUBLE) or (phase in _ENDING and waits_until_gone(message))
    if phase not in _EXPLAINED and not held_up:
        return ""
    if reason == JobReason.COMMAND_ISSUED and phase in _AT_REQUEST:
        return _AT_REQUEST[phase]
    return cause_of(origin_of(message or reason))


def short_why(job: Json) -> str:
    """The reason for a line of a list, where the job's name is in another column: a pod name at its beginning is
    shortened by the job's name."""
    name = re.escape(name_of(job))
    return re.sub(rf"(?:(?<=: )|^)(?:pod )?{name}-(?=[a-z0-9-]+-\d+\b)", "", job_why(job), count=1)


def out_of_retries(job: Json) -> bool:
    """Whether it failed because it had no retries left."""
    return text(job, "status", "state", "reason") == JobReason.RETRIES_EXHAUSTED


def job_restarts(job: Json) -> int:
    """The number of restarts. `status.retryCount` also counts resumes, and the restart that was no longer executed."""
    resumes = number(job, "status", "ledger", "resumes")
    return max(number(job, "status", "retryCount") - resumes - out_of_retries(job), 0)


# -- queues ---------------------------------------------------------------------------------------------------------


def queue_state(queue: Json) -> str:
    return text(queue, "status", "state") or QueueState.UNKNOWN


def _weight(queue: Json, _: datetime) -> str:
    return str(number(queue, "spec", "weight") or 1)


QUEUE: Final = Kind(
    resource=QUEUES,
    word="queue",
    columns=(
        NAME,
        Column(name="STATE", cell=lambda queue, _: toned(queue_state(queue))),
        Column(name="PARENT", cell=at("spec", "parent")),
        Column(name="WEIGHT", cell=_weight, right=True),
        Column(name="RUNNING", cell=count("status", "running"), right=True),
        Column(name="INQUEUE", cell=count("status", "inqueue"), right=True),
        Column(name="PENDING", cell=count("status", "pending"), right=True),
        Column(name="COMPLETED", cell=count("status", "completed"), right=True, wide=True),
        Column(name="UNKNOWN", cell=count("status", "unknown"), right=True, wide=True),
        Column(name="PRIORITY", cell=count("spec", "priority"), right=True, wide=True),
        Column(
            name="RECLAIMABLE",
            cell=lambda queue, _: "no" if dig(queue, "spec", "reclaimable") is False else "yes",
            wide=True,
        ),
        AGE,
    ),
)

# -- flows, templates, CronJobs
# -----------------------------------------------------------------------------------------


def flow_phase(flow: Json) -> str:
    return text(flow, "status", "state", "phase") or JobFlowPhase.PENDING


def _flow_jobs(flow: Json, _: datetime) -> str:
    done = dig(flow, "status", "completedJobs")
    return f"{len(done) if isinstance(done, list) else 0}/{len(objects(flow, 'spec', 'flows'))}"


def _flow_why(flow: Json, _: datetime) -> str:
    return text(flow, "status", "state", "message")


JOBFLOW: Final = Kind(
    resource=JOBFLOWS,
    word="job flow",
    columns=(
        NAME,
        Column(name="PHASE", cell=lambda flow, _: toned(flow_phase(flow))),
        Column(name="DONE", cell=_flow_jobs),
        AGE,
        Column(name="RETAIN", cell=at("spec", "jobRetainPolicy", default="retain"), wide=True),
        Column(name="REASON", cell=_flow_why, flexible=True),
    ),
)

JOBTEMPLATE: Final = Kind(
    resource=JOBTEMPLATES,
    word="job template",
    columns=(
        NAME,
        Column(name="TASKS", cell=lambda template, _: _tasks(template), flexible=True),
        Column(name="QUEUE", cell=lambda template, _: job_queue(template)),
        Column(name="MIN", cell=count("spec", "minAvailable"), right=True, wide=True),
        AGE,
    ),
)


def _tasks(template: Json) -> str:
    tasks = objects(template, "spec", "tasks")
    return ", ".join(f"{text(task, 'name')} x{number(task, 'replicas')}" for task in tasks) or NONE


def _last(cron: Json, now: datetime) -> str:
    return since(cron, "status", "lastScheduleTime", now=now) if dig(cron, "status", "lastScheduleTime") else NONE


CRONJOB: Final = Kind(
    resource=CRONJOBS,
    word="cron job",
    columns=(
        NAME,
        Column(name="SCHEDULE", cell=at("spec", "schedule")),
        Column(name="TIME ZONE", cell=at("spec", "timeZone", default="UTC")),
        Column(
            name="SUSPENDED",
            cell=lambda cron, _: Cell("yes", Tone.WAITING) if dig(cron, "spec", "suspend") is True else "no",
        ),
        Column(name="ACTIVE", cell=lambda cron, _: str(len(objects(cron, "status", "active"))), right=True),
        Column(name="LAST RUN", cell=_last),
        AGE,
        Column(name="CONCURRENCY", cell=at("spec", "concurrencyPolicy", default="Allow"), wide=True),
    ),
)

# -- pods and nodes -------------------------------------------------------------------------------------------------


def _pod_ready(pod: Json, _: datetime) -> str:
    summary = summarise(pod)
    return f"{summary.ready}/{summary.containers}"


def pod_status(pod: Json) -> Cell:
    """The status in one word, as in kubectl."""
    word = summarise(pod).reason
    phase = text(pod, "status", "phase")
    return Cell(word, Tone.BAD if phase == "Failed" else _TONES.get(phase))


def _restarts(pod: Json, now: datetime) -> str:
    summary = summarise(pod)
    if not summary.restarts or summary.last_restart is None:
        return str(summary.restarts)
    return f"{summary.restarts} ({age(summary.last_restart, now)} ago)"


def _label(key: str) -> Show:
    return lambda obj, _: words(obj, "metadata", "labels").get(key, NONE)


POD: Final = Kind(
    resource=PODS,
    word="pod",
    columns=(
        NAME,
        Column(name="READY", cell=_pod_ready),
        Column(name="STATUS", cell=lambda pod, _: pod_status(pod)),
        Column(name="RESTARTS", cell=_restarts),
        AGE,
        Column(name="NODE", cell=at("spec", "nodeName")),
        Column(name="JOB", cell=_label(names.JOB_NAME), wide=True),
        Column(name="TASK", cell=_label(names.TASK_SPEC), wide=True),
        Column(name="QUEUE", cell=_label(names.QUEUE_NAME), wide=True),
        Column(name="IP", cell=at("status", "podIP"), wide=True),
    ),
)

HYPERNODE: Final = Kind(
    resource=HYPERNODES,
    word="HyperNode",
    columns=(
        NAME,
        Column(name="TIER", cell=count("spec", "tier"), right=True),
        Column(name="TIERNAME", cell=at("spec", "tierName")),
        Column(name="NODES", cell=count("status", "nodeCount"), right=True),
        Column(
            name="SOURCE",
            cell=lambda node, _: words(node, "metadata", "labels").get(names.NETWORK_TOPOLOGY_SOURCE, NONE),
        ),
        AGE,
        Column(name="LABELS", cell=_labels, wide=True, flexible=True),
    ),
)
