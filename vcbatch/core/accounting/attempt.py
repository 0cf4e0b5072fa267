"""The record of an attempt and of each of its pods, and how two observations of one are merged.

Records are written from observations that can come twice, late, or from two leaders. Merging is idempotent, and doesn't
depend on the order of observations, except where a later version of the job corrects an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

MOST_NODES: Final = 64
"""The maximum of node names in a record; `node_count` counts all."""


class AttemptState(StrEnum):
    """The state of an attempt: Pending and Running while its record is open, else how it ended."""

    PENDING = "Pending"
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    TERMINATED = "Terminated"
    ABORTED = "Aborted"
    RESTARTED = "Restarted"
    """Another attempt followed."""
    DELETED = "Deleted"
    """The job was deleted before the attempt ended."""
    UNKNOWN = "Unknown"
    """The attempt ended while no controllers ran, or its end couldn't be stored."""


OPEN: Final = frozenset({AttemptState.PENDING, AttemptState.RUNNING})


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a job. Times are seconds since the epoch; None where unknown or not reached."""

    job_uid: str
    attempt: int
    """The job's `status.version` during the attempt."""
    namespace: str
    job: str
    user: str = ""
    queue: str = ""
    priority_class: str = ""
    frameworks: tuple[str, ...] = ()
    """The job plugins of training frameworks."""
    tasks: dict[str, int] = {}
    """Task -> number of pods."""
    milli_cpu: int = 0
    """The requests of all pods of the job."""
    memory: int = 0
    gpus: dict[str, int] = {}
    submitted: float = 0.0
    """When the job was created."""
    queued: float = 0.0
    """When the attempt began to wait: the creation of the job, or the end of the attempt before."""
    admitted: float | None = None
    """When the first of its pods was created."""
    started: float | None = None
    """When the first of its pods started on its node."""
    ended: float | None = None
    """None while the record is open."""
    state: str = AttemptState.PENDING
    reason: str = ""
    exit_code: int | None = None
    """That of the first pod that failed; 0 for a completed attempt; None where unknown."""
    exit_codes: dict[str, int] = {}
    """Task -> the exit code of its first pod that failed."""
    failed_pod: str = ""
    """The first pod that failed."""
    nodes: tuple[str, ...] = ()
    node_count: int = 0
    pods: int = 0
    """The number of pods that started, replacements included."""
    restarts: int = 0
    """The job's `status.retryCount` when the attempt ended."""
    cpu_seconds: float = 0.0
    memory_byte_seconds: float = 0.0
    gpu_seconds: float = 0.0
    observed: int = 0
    """The resourceVersion of the job that the record was made from."""

    @property
    def open(self) -> bool:
        return self.ended is None

    @property
    def gpu_count(self) -> int:
        """The GPUs that the job requests."""
        return sum(self.gpus.values())

    def waited(self, now: float) -> float:
        """Seconds until its first pod started, or until its end, or `now`."""
        return max((self.started if self.started is not None else self.ended or now) - self.queued, 0.0)

    def elapsed(self, now: float) -> float:
        """Seconds from the start of its first pod to its end, or to `now`."""
        return 0.0 if self.started is None else max((now if self.ended is None else self.ended) - self.started, 0.0)


class PodRun(msgspec.Struct, frozen=True, kw_only=True):
    """One pod of an attempt, from its start on its node."""

    uid: str
    job_uid: str
    attempt: int
    pod: str
    task: str = ""
    index: int = 0
    node: str = ""
    milli_cpu: int = 0
    memory: int = 0
    gpus: int = 0
    created: float | None = None
    started: float | None = None
    ended: float | None = None
    failed: bool = False
    exit_code: int | None = None


def merged_attempt(stored: Attempt | None, seen: Attempt) -> Attempt:
    """The record after another observation. The one from the newer version of the job counts, so that a replica that
    lost its Lease can't overwrite what the leader wrote; of one version, the closed one. The earliest times of both
    count."""
    if stored is None:
        return seen
    newer = (seen.observed, not seen.open) >= (stored.observed, not stored.open)
    kept, other = (seen, stored) if newer else (stored, seen)
    return msgspec.structs.replace(
        kept,
        user=kept.user or other.user,
        queued=min(kept.queued, other.queued),
        admitted=_earliest(kept.admitted, other.admitted),
        started=_earliest(kept.started, other.started),
    )


def merged_run(stored: PodRun | None, seen: PodRun) -> PodRun:
    """The record of a pod after another observation. The earliest times count: the end that the kubelet reported
    precedes the one at which the pod was found to be deleted."""
    if stored is None:
        return seen
    failed = seen if seen.failed else stored
    return msgspec.structs.replace(
        stored,
        node=stored.node or seen.node,
        created=_earliest(stored.created, seen.created),
        started=_earliest(stored.started, seen.started),
        ended=_earliest(stored.ended, seen.ended),
        failed=failed.failed,
        exit_code=failed.exit_code if failed.exit_code is not None else stored.exit_code,
    )


def with_totals(attempt: Attempt, runs: Iterable[PodRun], *, now: float) -> Attempt:
    """The record with what follows from its pods: usage (requests × time), start, nodes, exit codes. The time of a pod
    ends with the attempt, or at `now` while it is open. `runs` are as they were when the attempt ended: pods that are
    killed because of its end aren't failures."""
    end = now if attempt.ended is None else attempt.ended
    ordered = sorted(runs, key=lambda run: (run.task, run.index, run.uid))
    cpu = memory = gpu = 0.0
    for run in ordered:
        seconds = _seconds(run, end)
        cpu += run.milli_cpu * seconds / 1000
        memory += run.memory * seconds
        gpu += run.gpus * seconds
    failures = sorted(
        (run for run in ordered if run.failed),
        key=lambda run: (end if run.ended is None else run.ended, run.task, run.index),
    )
    codes: dict[str, int] = {}
    for run in failures:
        if run.exit_code is not None:
            codes.setdefault(run.task, run.exit_code)
    nodes = sorted({run.node for run in ordered if run.node})
    started = _earliest(attempt.started, *(run.started for run in ordered))
    state = attempt.state
    if attempt.open:
        state = AttemptState.PENDING if started is None else AttemptState.RUNNING
    completed = state == AttemptState.COMPLETED
    return msgspec.structs.replace(
        attempt,
        admitted=_earliest(attempt.admitted, *(run.created for run in ordered)),
        started=started,
        state=state,
        exit_code=0 if completed else next((run.exit_code for run in failures if run.exit_code is not None), None),
        exit_codes=codes,
        failed_pod=failures[0].pod if failures else "",
        nodes=tuple(nodes[:MOST_NODES]),
        node_count=len(nodes),
        pods=sum(1 for run in ordered if run.started is not None),
        cpu_seconds=cpu,
        memory_byte_seconds=memory,
        gpu_seconds=gpu,
    )


def _seconds(run: PodRun, end: float) -> float:
    if run.started is None:
        return 0.0
    return max(min(end if run.ended is None else run.ended, end) - run.started, 0.0)


def _earliest(*times: float | None) -> float | None:
    return min((time for time in times if time is not None), default=None)
