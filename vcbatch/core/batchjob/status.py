"""The status that a reconciliation writes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from vcbatch.api.batch_job import BatchJob, ConditionType
from vcbatch.api.pod import Pod
from vcbatch.api.resources import BATCH_JOBS
from vcbatch.api.timestamps import format_time
from vcbatch.core.batchjob.ledger import Ledger
from vcbatch.core.machine import Json, WriteStatus, ref_of
from vcbatch.core.workload.pods import is_active, is_ready, is_terminating


class StatusDraft:
    """Starts from the stored status and, as Kubernetes does, leaves out fields that are zero."""

    def __init__(self, job: BatchJob, *, now: datetime) -> None:
        self._job = job
        self._now = format_time(now)
        self._stored = job.status.dump()
        self._draft = dict(self._stored)

    @property
    def start_time(self) -> str:
        """As on the wire; empty while the Job isn't started or is suspended."""
        return self._draft.get("startTime") or ""

    def start(self) -> None:
        """The Job starts or resumes now."""
        self._draft["startTime"] = self._now

    def pause(self) -> None:
        """The Job is suspended: its active time restarts at the resume."""
        self._draft.pop("startTime", None)

    def count(self, pods: Sequence[Pod]) -> None:
        """Set the counts of existing pods."""
        active = [pod for pod in pods if is_active(pod)]
        self._set("active", len(active))
        self._draft["ready"] = sum(map(is_ready, active))
        self._draft["terminating"] = sum(map(is_terminating, pods))

    def book(self, ledger: Ledger) -> None:
        """Set the counts of ended pods."""
        self._set("succeeded", ledger.succeeded)
        self._set("failed", ledger.failed)
        uncounted = {"succeeded": list(ledger.succeeded_uids), "failed": list(ledger.failed_uids)}
        self._draft["uncountedTerminatedPods"] = {key: uids for key, uids in uncounted.items() if uids}
        if self._job.indexed:
            self._set("completedIndexes", str(ledger.completed))
        if self._job.counts_per_index:
            self._draft["failedIndexes"] = str(ledger.failed_indexes)

    def put_condition(self, kind: ConditionType, reason: str, message: str, *, status: str = "True") -> bool:
        """Set a condition and return whether it changed. A condition that never was true isn't written as false."""
        conditions: list[Json] = list(self._draft.get("conditions") or ())
        entry = {"type": kind.value, "status": status, "reason": reason, "message": message}
        for place, held in enumerate(conditions):
            if held.get("type") == kind:
                if all(held.get(key) == value for key, value in entry.items()):
                    return False
                conditions[place] = {**entry, "lastProbeTime": self._now, "lastTransitionTime": self._now}
                break
        else:
            if status == "False":
                return False
            conditions.append({**entry, "lastProbeTime": self._now, "lastTransitionTime": self._now})
        self._draft["conditions"] = conditions
        return True

    def complete(self) -> None:
        """The Job is completed now."""
        self._draft["completionTime"] = self._now

    def write(self) -> WriteStatus | None:
        """None where nothing changed."""
        if self._draft == self._stored:
            return None
        version = self._job.metadata.resource_version
        return WriteStatus(ref=ref_of(BATCH_JOBS, self._job), resource_version=version, status=self._draft)

    def _set(self, key: str, value: int | str) -> None:
        if value:
            self._draft[key] = value
        else:
            self._draft.pop(key, None)
