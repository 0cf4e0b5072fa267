"""The columns of a list of jobs, and its order. At 80 columns the table without `-o wide` doesn't wrap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from vcbatch.api.duration import MalformedDuration, human, parse_duration
from vcbatch.api.gpus import is_gpu
from vcbatch.api.loose import part
from vcbatch.api.messages import read_wait
from vcbatch.api.names import USER
from vcbatch.api.phases import JobPhase
from vcbatch.api.pod_usage import Amounts, add, pod_usage
from vcbatch.api.quantity import NANO
from vcbatch.api.resources import JOBS
from vcbatch.cli.base.fields import dig, moment, name_of, number, objects, text, uid_of, words
from vcbatch.cli.resources.columns import AGE, NAME, Column
from vcbatch.cli.resources.kinds import (
    at,
    count,
    job_phase,
    job_pods,
    job_queue,
    job_restarts,
    job_why,
    short_why,
    toned,
)
from vcbatch.cli.resources.listing import Kind
from vcbatch.core.waiting import phase_of

Json = dict[str, Any]

NO_USER: Final = "-"


def user_of(job: Json) -> str:
    """The user who created the job; `-` where no admission recorded it."""
    return words(job, "metadata", "annotations").get(USER) or NO_USER


def job_gpus(job: Json) -> int:
    """The GPUs that all its pods request, whatever their vendor."""
    total: Amounts = {}
    for task in objects(job, "spec", "tasks"):
        add(total, pod_usage(part(part(task, "template"), "spec")), times=number(task, "replicas"))
    return sum(amount.nano // NANO for name, amount in total.items() if is_gpu(name))


def job_elapsed(job: Json, now: datetime) -> str:
    """How long it has been Running, all attempts together, in kubectl's format; empty where it never was. The time in
    other phases doesn't count, so that a job that waits isn't taken for a slow one."""
    log = objects(job, "status", "conditions")
    running = job_phase(job) == JobPhase.RUNNING
    if not running and not any(text(entry, "status") == JobPhase.RUNNING for entry in log):
        return ""
    span = timedelta(seconds=number(job, "status", "ledger", "ranSeconds"))
    if running and (since := moment(job, "status", "state", "lastTransitionTime")) is not None:
        span += max(now - since, timedelta())
    elif not running and dig(job, "status", "ledger") is None:
        span = _logged(job, log)
    return human(span) if span >= timedelta(seconds=1) else "<1s"


def _logged(job: Json, log: list[Json]) -> timedelta:
    """The time between the phase Running and the next one, for jobs of controllers that don't keep the sum; that of
    `runningDuration` where the phases have no times."""
    for entry, following in pairwise(log):
        began, ended = moment(entry, "lastTransitionTime"), moment(following, "lastTransitionTime")
        if text(entry, "status") == JobPhase.RUNNING and began is not None and ended is not None:
            return max(ended - began, timedelta())
    try:
        return parse_duration(text(job, "status", "runningDuration"))
    except MalformedDuration:
        return timedelta()


def job_reason(job: Json) -> str:
    """Why it is pending, lacks pods or failed, as one word of the closed vocabularies `WaitReason` and `JobReason`;
    empty for a job without problems."""
    if not job_why(job):
        return ""
    waits, _ = read_wait(text(job, "status", "state", "message"))
    return waits or text(job, "status", "state", "reason")


def job_message(job: Json) -> str:
    """The sentence to the reason, without the reason itself."""
    why, reason = short_why(job), job_reason(job)
    return "" if why == reason else why.removeprefix(f"{reason}: ")


def job_order(job: Json) -> tuple[int, float, str]:
    """The key by which jobs are listed: running ones, then pending, suspended and finished ones; of each the newest
    first."""
    phase = job_phase(job)
    if phase == JobPhase.PENDING:
        group = 1
    elif phase in (JobPhase.ABORTED, JobPhase.ABORTING):
        group = 2
    else:
        group = 3 if phase_of(job).finished else 0
    created = moment(job, "metadata", "creationTimestamp")
    return group, -created.timestamp() if created is not None else 0.0, name_of(job)


JOB: Final = Kind(
    resource=JOBS,
    word="job",
    order=job_order,
    columns=(
        replace(NAME, flexible=True, middle=True),
        Column(name="PHASE", cell=lambda job, _: toned(job_phase(job))),
        Column(name="PODS", cell=lambda job, _: job_pods(job)),
        Column(name="GPUS", cell=lambda job, _: str(job_gpus(job)), right=True),
        Column(name="QUEUE", cell=lambda job, _: job_queue(job), flexible=True, middle=True, least=6),
        Column(name="USER", cell=lambda job, _: user_of(job), flexible=True, middle=True, least=5),
        Column(name="ELAPSED", cell=lambda job, now: job_elapsed(job, now) or NO_USER),
        replace(AGE, wide=True),
        Column(name="MIN", cell=count("spec", "minAvailable"), wide=True, right=True),
        Column(name="FAILED", cell=count("status", "failed"), wide=True, right=True),
        Column(name="RESTARTS", cell=lambda job, _: str(job_restarts(job)), wide=True, right=True),
        Column(name="PRIORITY", cell=at("spec", "priorityClassName"), wide=True),
        Column(name="REASON", cell=lambda job, _: job_reason(job), flexible=True, least=8),
        Column(name="MESSAGE", cell=lambda job, _: job_message(job), wide=True, flexible=True),
    ),
)


def with_nodes(nodes: Mapping[str, int]) -> Kind:
    """The kind with the column NODES for `-o wide`: the number of nodes that a job's pods are on, by the job's UID."""

    def shown(job: Json, _: datetime) -> str:
        return str(nodes.get(uid_of(job), 0))

    column = Column(name="NODES", cell=shown, wide=True, right=True)
    after = next(at for at, one in enumerate(JOB.columns) if one.name == "PODS") + 1
    return replace(JOB, columns=(*JOB.columns[:after], column, *JOB.columns[after:]))
