"""What a Job and a pod say about an attempt: the records that are written for them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

from vcbatch.api import names
from vcbatch.api.gpus import is_gpu
from vcbatch.api.loose import listed, part
from vcbatch.api.messages import shorten
from vcbatch.api.phases import JobPhase
from vcbatch.api.pod import TERMINAL_PHASES, Pod, PodPhase
from vcbatch.api.pod_usage import add, pod_usage
from vcbatch.api.quantity import Quantity
from vcbatch.api.queue import DEFAULT
from vcbatch.api.timestamps import parse_time
from vcbatch.core.accounting.attempt import Attempt, AttemptState, PodRun
from vcbatch.core.job.causes import failure_of
from vcbatch.core.job.states import LIVE

Json = dict[str, Any]

_FRAMEWORKS: Final = ("pytorch", "tensorflow", "mpi", "ray", "hcclrank")
_LONGEST_REASON: Final = 128
_ENDS: Final = {
    JobPhase.COMPLETING: AttemptState.COMPLETED,
    JobPhase.COMPLETED: AttemptState.COMPLETED,
    JobPhase.FAILED: AttemptState.FAILED,
    JobPhase.TERMINATING: AttemptState.TERMINATED,
    JobPhase.TERMINATED: AttemptState.TERMINATED,
    JobPhase.ABORTING: AttemptState.ABORTED,
    JobPhase.ABORTED: AttemptState.ABORTED,
    JobPhase.RESTARTING: AttemptState.RESTARTED,
    JobPhase.PENDING: AttemptState.RESTARTED,
}
"""The phase that an attempt leaves its job in -> the state of the attempt."""


def attempt_of(job: Json) -> Attempt | None:
    """The open record of the job's current attempt; None where the job has ended, is suspended, or is being deleted."""
    metadata, status = part(job, "metadata"), part(job, "status")
    if metadata.get("deletionTimestamp") or _phase(status) not in LIVE:
        return None
    return _facts(job)


def closed_by(job: Json, decided: Json, *, now: datetime) -> Attempt | None:
    """The closed record of the current attempt, where a decision with that status ends it; None where it doesn't."""
    status = part(job, "status")
    if _phase(status) not in LIVE or _number(decided.get("version")) <= _number(status.get("version")):
        return None
    state = part(decided, "state")
    facts = _facts(job)
    return msgspec.structs.replace(
        facts,
        ended=max(now.timestamp(), facts.queued),
        state=_ENDS.get(_phase_of(state), AttemptState.UNKNOWN),
        reason=_text(state.get("reason")),
        restarts=_number(decided.get("retryCount")),
    )


def closed_by_deletion(job: Json, *, now: datetime) -> Attempt | None:
    """The closed record of the attempt that was current when the job was deleted; None where none was."""
    status = part(job, "status")
    if _phase(status) not in LIVE:
        return None
    facts = _facts(job)
    deleted = _time(part(job, "metadata").get("deletionTimestamp"))
    return msgspec.structs.replace(
        facts,
        ended=max(deleted if deleted is not None else now.timestamp(), facts.queued),
        state=AttemptState.DELETED,
        restarts=_number(status.get("retryCount")),
    )


def closed_unseen(stored: Attempt, job: Json | None, *, last_seen: float) -> Attempt:
    """The closed record of an attempt whose end was not recorded: as the job's status shows it, if the job exists and
    no other attempt followed; else Unknown, at `last_seen`, the last time at which the store was written."""
    end, state, reason, restarts = last_seen, AttemptState.UNKNOWN, "", stored.restarts
    if job is not None:
        status = part(job, "status")
        if _number(status.get("version")) == stored.attempt + 1:
            now = part(status, "state")
            state = _ENDS.get(_phase_of(now), AttemptState.UNKNOWN)
            end = _time(now.get("lastTransitionTime")) or last_seen
            reason, restarts = _text(now.get("reason")), _number(status.get("retryCount"))
    floor = stored.started if stored.started is not None else stored.queued
    return msgspec.structs.replace(stored, ended=max(end, floor), state=state, reason=reason, restarts=restarts)


def started_or_ended(pod: Pod) -> object:
    """The fields of a pod that its record is made from: where they are equal, so is the record."""
    return pod.status.start_time, pod.status.phase if pod.status.phase in TERMINAL_PHASES else "", pod.spec.node_name


def run_of(pod: Pod, job_uid: str, *, deleted_at: float | None = None) -> PodRun | None:
    """The record of a pod of that job; None for a pod that hasn't started, or has no attempt. `deleted_at` is when it
    was found to be deleted."""
    annotations = pod.metadata.annotations or {}
    attempt = annotations.get(names.JOB_VERSION, "")
    started = _time(pod.status.start_time)
    if started is None or not attempt.isdecimal():
        return None
    index = annotations.get(names.TASK_INDEX) or pod.metadata.name.rpartition("-")[2]
    finished = pod.status.phase in TERMINAL_PHASES
    failure = failure_of(pod) if pod.status.phase == PodPhase.FAILED else None
    ended = _finished_at(pod) if finished else None
    if ended is None:
        ended = deleted_at
    usage = _requests(_requested(pod))
    return PodRun(
        uid=pod.metadata.uid,
        job_uid=job_uid,
        attempt=int(attempt),
        pod=pod.metadata.name,
        task=annotations.get(names.TASK_SPEC, ""),
        index=int(index) if index.isdecimal() else 0,
        node=pod.spec.node_name,
        milli_cpu=usage.milli_cpu,
        memory=usage.memory,
        gpus=sum(usage.gpus.values()),
        created=_time(pod.metadata.creation_timestamp),
        started=started,
        ended=None if ended is None else max(ended, started),
        failed=failure is not None,
        exit_code=next(iter(failure.exit_codes), None) if failure is not None else 0 if finished else None,
    )


class _Requests(msgspec.Struct, frozen=True):
    milli_cpu: int
    memory: int
    gpus: dict[str, int]


def _facts(job: Json) -> Attempt:
    metadata, spec, status = part(job, "metadata"), part(job, "spec"), part(job, "status")
    tasks, requested = _tasks(spec)
    version = _number(status.get("version"))
    submitted = _time(metadata.get("creationTimestamp")) or 0.0
    queued = submitted
    if version:  # the attempt before has ended with the phase's last transition, or earlier
        queued = _time(part(status, "state").get("lastTransitionTime")) or submitted
    resource_version = str(metadata.get("resourceVersion") or "")
    return Attempt(
        job_uid=str(metadata.get("uid") or ""),
        attempt=version,
        namespace=str(metadata.get("namespace") or ""),
        job=str(metadata.get("name") or ""),
        user=str(part(metadata, "annotations").get(names.USER) or ""),
        queue=str(spec.get("queue") or DEFAULT),
        priority_class=str(spec.get("priorityClassName") or ""),
        frameworks=tuple(name for name in _FRAMEWORKS if name in part(spec, "plugins")),
        tasks=tasks,
        milli_cpu=requested.milli_cpu,
        memory=requested.memory,
        gpus=requested.gpus,
        submitted=submitted,
        queued=queued,
        restarts=_number(status.get("retryCount")),
        observed=int(resource_version) if resource_version.isdecimal() else 0,
    )


def _tasks(spec: Json) -> tuple[dict[str, int], _Requests]:
    """The number of pods of each task, and the requests of all."""
    tasks: dict[str, int] = {}
    total: dict[str, Quantity] = {}
    for position, task in enumerate(listed(spec, "tasks")):
        replicas = _number(task.get("replicas"))
        tasks[str(task.get("name") or names.default_task_name(position))] = replicas
        add(total, pod_usage(_with_requests(part(part(task, "template"), "spec"))), times=replicas)
    return tasks, _summary(total)


def _with_requests(pod_spec: Json) -> Json:
    """The part of a template that requests resources: a limit counts as a request where there is none, as the API
    server sets it in pods."""
    changed: Json = {"overhead": pod_spec.get("overhead")}
    for key in ("containers", "initContainers"):
        changed[key] = [
            {
                "restartPolicy": each.get("restartPolicy"),
                "resources": {
                    "requests": part(part(each, "resources"), "limits") | part(part(each, "resources"), "requests")
                },
            }
            for each in listed(pod_spec, key)
        ]
    return changed


def _requested(pod: Pod) -> bytes:
    spec = pod.spec
    return msgspec.json.encode(
        {
            "overhead": spec.overhead,
            "containers": [{"resources": one.resources} for one in spec.containers],
            "initContainers": [
                {"resources": one.resources, "restartPolicy": one.restart_policy} for one in spec.init_containers or ()
            ],
        }
    )


@lru_cache(maxsize=4096)
def _requests(encoded: bytes) -> _Requests:
    """The requests of a pod. Cached, since the pods of a task are equal."""
    return _summary(pod_usage(msgspec.json.decode(encoded)))


def _summary(usage: Mapping[str, Quantity]) -> _Requests:
    return _Requests(
        milli_cpu=usage["cpu"].milli() if "cpu" in usage else 0,
        memory=usage["memory"].value() if "memory" in usage else 0,
        gpus={name: amount.value() for name, amount in sorted(usage.items()) if is_gpu(name) and amount.nano},
    )


def _finished_at(pod: Pod) -> float | None:
    """When the last of its containers ended."""
    states = [one.state.terminated for one in pod.status.container_statuses or () if one.state is not None]
    times = [_time(state.finished_at) for state in states if state is not None]
    return max((time for time in times if time is not None), default=None)


def _phase(status: Json) -> JobPhase:
    return _phase_of(part(status, "state"))


def _phase_of(state: Json) -> JobPhase:
    try:
        return JobPhase(state.get("phase") or "")
    except ValueError:
        return JobPhase.PENDING


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _text(value: object) -> str:
    return shorten(value, limit=_LONGEST_REASON) if isinstance(value, str) else ""


def _time(text: object) -> float | None:
    try:
        return parse_time(text).timestamp() if isinstance(text, str) and text else None
    except ValueError:
        return None
