"""One CronJob, its jobs, and a clock: the cluster as seen by the CronJob controller's decisions."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from vcbatch.api.cronjob import CronJob
from vcbatch.api.job import Job
from vcbatch.api.names import CRONJOB_SCHEDULED_TIMESTAMP
from vcbatch.api.resources import CRONJOBS, JOBS
from vcbatch.api.timestamps import format_time
from vcbatch.core.cronjob import CronJobView, decide
from vcbatch.core.machine import Decision, Delete, Emit, WriteStatus

Json = dict[str, Any]
START = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
TEMPLATE: Json = {"spec": {"minAvailable": 1, "tasks": [{"name": "w", "replicas": 1}]}}


def zone(name: str) -> tzinfo | None:
    return ZoneInfo(name) if name in ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo") else None


class Crash(Exception):
    """The controller crashes."""


class CronWorld:
    """Deleted jobs are removed at once, or with `lingers` by `vanish`, as in foreground deletion."""

    def __init__(self, *, now: datetime = START, name: str = "c", **spec: Any) -> None:
        self.now = now
        self.jobs: dict[str, Json] = {}
        self.made: list[str] = []
        """Names of all jobs that the controller ever created, in order."""
        self.events: list[Emit] = []
        self.lingers = False
        self.rescheduled_at: datetime | None = None
        self._serial = 0
        metadata = {"name": name, "namespace": "ns", "uid": "cron-uid", "creationTimestamp": format_time(now)}
        defaults = {"schedule": "* * * * *", "jobTemplate": TEMPLATE}
        self.cron_job: Json = {
            "apiVersion": CRONJOBS.api_version,
            "kind": CRONJOBS.kind,
            "metadata": {**metadata, "resourceVersion": "1"},
            "spec": {**defaults, **spec},
        }

    # State

    @property
    def status(self) -> Json:
        return self.cron_job.get("status", {})

    @property
    def active(self) -> list[str]:
        return [entry["name"] for entry in self.status.get("active", ())]

    @property
    def unfinished(self) -> list[str]:
        return [name for name, job in self.jobs.items() if _phase(job) not in _FINISHED]

    def reported(self, reason: str) -> list[str]:
        return [event.message for event in self.events if event.reason == reason]

    def view(self) -> CronJobView:
        return CronJobView(
            cron_job=CronJob.parse(self.cron_job),
            jobs=[Job.parse(job) for job in self.jobs.values()],
            zones=zone,
            rescheduled_at=self.rescheduled_at,
        )

    # Operations

    def reconcile(self, *, writes: int | None = None) -> Decision:
        """Decide, and execute the first `writes` writes (default: all). Raises `Crash` where some are left."""
        decision = decide(self.view(), now=self.now)
        for number, write in enumerate(self._writes_of(decision)):
            if number == writes:
                raise Crash
            write()
        self.events.extend(decision.events)
        return decision

    def settle(self) -> Decision:
        """Reconcile until nothing is left to do."""
        for _ in range(20):
            decision = self.reconcile()
            if decision.status is None and not decision.deletes and not decision.creates:
                return decision
        raise AssertionError(f"it doesn't come to rest: {self.cron_job}")

    def pass_time(self, **span: float) -> None:
        """Advance the time, and reconcile whenever a requeue is due."""
        end = self.now + timedelta(**span)
        while True:
            due = self.settle().requeue_at
            if due is None or due > end:
                break
            assert due > self.now, "a look was asked for that changes nothing"
            self.now = due
        self.now = end
        self.settle()

    def finish(self, name: str, phase: str = "Completed") -> None:
        self.jobs[name]["status"] = {"state": {"phase": phase, "lastTransitionTime": format_time(self.now)}}
        self._touch(self.jobs[name])

    def vanish(self, name: str) -> None:
        del self.jobs[name]

    def add_job(self, name: str, *, owner: str = "", slot: datetime | None = None, **metadata: Any) -> None:
        body: Json = {"metadata": {"name": name, "namespace": "ns", **metadata}}
        if owner:
            reference = {"apiVersion": CRONJOBS.api_version, "kind": "CronJob", "name": "c", "uid": owner}
            body["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
        if slot is not None:
            body["metadata"]["annotations"] = {CRONJOB_SCHEDULED_TIMESTAMP: format_time(slot)}
        self._store(body)

    def change(self, **spec: Any) -> None:
        if {"schedule", "timeZone"} & spec.keys():
            self.rescheduled_at = self.now
        self.cron_job["spec"] |= spec
        self._touch(self.cron_job)

    def _store(self, body: Json) -> None:
        body = copy.deepcopy(body)
        self._serial += 1
        body["metadata"] |= {"uid": f"job-{self._serial}", "creationTimestamp": format_time(self.now)}
        self._touch(body)
        self.jobs[body["metadata"]["name"]] = body

    def _touch(self, body: Json) -> None:
        self._serial += 1
        body["metadata"]["resourceVersion"] = str(self._serial)

    # Execution of writes

    def _writes_of(self, decision: Decision) -> Iterator[Callable[[], None]]:
        if decision.status is not None:
            status = decision.status
            yield lambda: self._write_status(status)
        for delete in decision.deletes:
            yield lambda delete=delete: self._delete(delete)
        for create in decision.creates:
            assert create.resource is JOBS
            yield lambda create=create: self._create(create.body)

    def _write_status(self, write: WriteStatus) -> None:
        assert write.resource_version == self.cron_job["metadata"]["resourceVersion"]
        assert self.cron_job.get("status") != write.status, "a write that changes nothing"
        self.cron_job["status"] = copy.deepcopy(write.status)
        self._touch(self.cron_job)

    def _delete(self, delete: Delete) -> None:
        job = self.jobs.get(delete.ref.name)
        if job is None or job["metadata"]["uid"] != delete.ref.uid:
            return
        assert not job["metadata"].get("deletionTimestamp"), "deleted twice"
        if self.lingers:
            job["metadata"]["deletionTimestamp"] = format_time(self.now)
            self._touch(job)
        else:
            self.vanish(delete.ref.name)

    def _create(self, body: Json) -> None:
        name = body["metadata"]["name"]
        if name not in self.jobs:
            self._store(body)
            self.made.append(name)


_FINISHED = ("Completed", "Failed", "Terminated")


def _phase(job: Json) -> str:
    return job.get("status", {}).get("state", {}).get("phase", "")
