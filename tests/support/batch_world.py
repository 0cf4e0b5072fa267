"""One batch/v1 Job, its pods, a kubelet, and a controller that may crash between any two writes: the cluster as seen by
the decisions about the Job."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from vcbatch.api.batch_job import BatchJob
from vcbatch.api.names import COMPLETION_INDEX, POD_TRACKING
from vcbatch.api.pod import Pod
from vcbatch.api.resources import BATCH_JOBS, PODS
from vcbatch.api.timestamps import format_time
from vcbatch.core.batchjob import BatchJobView, decide
from vcbatch.core.machine import Create, Decision, Delete, Emit, Mark, WriteStatus
from vcbatch.runtime.apply import merge_diff

Json = dict[str, Any]
START = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)
UID = "job-uid"
LABELS = {"batch.kubernetes.io/controller-uid": UID}
_ENDED = ("Succeeded", "Failed")


class Crash(Exception):
    """The controller crashes."""


class Stale(Exception):
    """The object of a write has changed."""


class BatchWorld:
    """The controller observes its own writes to pods at once, and those of others only after `report`. Pods that it
    deletes end by `end`, as the kubelet reports it; a pod that was never started is removed at once."""

    def __init__(self, *, restart_policy: str = "Never", **spec: Any) -> None:
        self.now = START
        self.events: list[Emit] = []
        self.pods: dict[str, Json] = {}
        self.snapshot: dict[str, Json] = {}
        self.created: list[str] = []
        """Names of all pods ever created."""
        self.job_deleted = False
        self._serial = 0
        template = {
            "metadata": {"labels": LABELS},
            "spec": {"restartPolicy": restart_policy, "containers": [{"name": "main", "image": "img"}]},
        }
        self.job: Json = {
            "apiVersion": BATCH_JOBS.api_version,
            "kind": BATCH_JOBS.kind,
            "metadata": {"name": "j", "namespace": "ns", "uid": UID, "resourceVersion": "0"},
            "spec": {
                "parallelism": 1,
                "completions": 1,
                "completionMode": "NonIndexed",
                "suspend": False,
                "podReplacementPolicy": "TerminatingOrFailed",
                "selector": {"matchLabels": LABELS},
                "template": template,
                **spec,
            },
        }

    # State

    @property
    def status(self) -> Json:
        return self.job.get("status", {})

    @property
    def conditions(self) -> list[str]:
        """Types of the conditions that are true."""
        return [each["type"] for each in self.status.get("conditions", ()) if each["status"] == "True"]

    @property
    def ending(self) -> bool:
        """Whether it has failed or succeeded."""
        return bool({"FailureTarget", "SuccessCriteriaMet"} & set(self.conditions))

    @property
    def finished(self) -> str:
        return next((each for each in self.conditions if each in ("Complete", "Failed")), "")

    def reason(self, condition: str) -> str:
        return next(each["reason"] for each in self.status["conditions"] if each["type"] == condition)

    def active(self) -> list[str]:
        return [uid for uid, pod in self.pods.items() if is_active(pod)]

    def reported(self, reason: str) -> list[str]:
        return [event.message for event in self.events if event.reason == reason]

    def index(self, uid: str) -> int:
        return int(self.pods[uid]["metadata"]["annotations"][COMPLETION_INDEX])

    def view(self) -> BatchJobView:
        taken = {pod["metadata"]["name"] for pod in self.snapshot.values()}
        return BatchJobView(
            job=BatchJob.parse(self.job),
            pods=[msgspec.convert(pod, Pod) for pod in self.snapshot.values()],
            taken=taken.__contains__,
        )

    # Controller

    def reconcile(self, *, writes: int | None = None) -> Decision:
        """Decide, and execute the first `writes` writes (default: all). Raises `Crash` where some are left, and `Stale`
        where one is rejected."""
        decision = decide(self.view(), now=self.now)
        for number, write in enumerate(self._writes_of(decision)):
            if number == writes:
                raise Crash
            write()
        self.events.extend(decision.events)
        return decision

    def settle(self) -> Decision:
        """Reconcile with current data until nothing is left to do."""
        for _ in range(50):
            self.report()
            decision = self.reconcile()
            if decision.nothing_to_do:
                return decision
        raise AssertionError(f"it doesn't come to rest: {self.job}")

    def pass_time(self, **span: float) -> None:
        """Advance the time, and reconcile whenever a requeue is due."""
        end = self.now + timedelta(**span)
        while (due := self.settle().requeue_at) is not None and due <= end:
            assert due > self.now, "a look was asked for that changes nothing"
            self.now = due
        self.now = end
        self.settle()

    def report(self, uid: str | None = None) -> None:
        """The controller observes the current state of a pod; of all by default."""
        for each in [uid] if uid is not None else list({*self.pods, *self.snapshot}):
            if each in self.pods:
                self.snapshot[each] = copy.deepcopy(self.pods[each])
            else:
                self.snapshot.pop(each, None)

    # Other programs

    def end(self, uid: str, phase: str, *, code: int | None = None, condition: str = "") -> None:
        """End a container, by itself or because of a deletion."""
        pod = self.pods[uid]
        exit_code = code if code is not None else int(phase == "Failed")
        terminated = {"exitCode": exit_code, "finishedAt": format_time(self.now)}
        pod["status"] = {
            "phase": phase,
            "containerStatuses": [{"name": "main", "state": {"terminated": terminated}}],
            **({"conditions": [{"type": condition, "status": "True"}]} if condition else {}),
        }
        self._touch(pod)
        self._collect(uid)

    def start(self, uid: str, *, restarts: int = 0) -> None:
        pod = self.pods[uid]
        pod["spec"]["nodeName"] = "n"
        pod["status"] = {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": format_time(self.now)}],
            "containerStatuses": [{"name": "main", "restartCount": restarts, "state": {}}],
        }
        self._touch(pod)

    def delete(self, uid: str) -> None:
        """Delete a pod, as `kubectl delete pod` does."""
        metadata = self.pods[uid]["metadata"]
        if not metadata.get("deletionTimestamp"):
            metadata["deletionTimestamp"] = format_time(self.now)
            metadata["deletionGracePeriodSeconds"] = 0
            self._touch(self.pods[uid])
        self._collect(uid)

    def change(self, **spec: Any) -> None:
        self.job["spec"] |= spec
        self._touch(self.job)

    def add_pod(self, name: str, **metadata: Any) -> str:
        uid = f"uid-of-{name}"
        self.pods[uid] = {
            "metadata": {"name": name, "namespace": "ns", "uid": uid, "creationTimestamp": format_time(self.now)}
            | metadata,
            "spec": {},
            "status": {"phase": "Pending"},
        }
        self._touch(self.pods[uid])
        return uid

    # Execution of writes

    def _writes_of(self, decision: Decision) -> Iterator[Callable[[], None]]:
        if decision.status is not None:
            status = decision.status
            yield lambda: self._write_status(status)
        for mark in decision.marks:
            yield lambda mark=mark: self._mark(mark)
        for delete in decision.deletes:
            yield lambda delete=delete: self._delete(delete)
        for create in decision.creates:
            yield lambda create=create: self._create(create)

    def _write_status(self, write: WriteStatus) -> None:
        if write.resource_version != self.job["metadata"]["resourceVersion"]:
            raise Stale
        assert merge_diff(self.status, write.status), "a write that changes nothing"
        self.job["status"] = copy.deepcopy(write.status)
        self._touch(self.job)

    def _mark(self, mark: Mark) -> None:
        uid = mark.ref.uid
        pod = self.pods.get(uid)
        if pod is None or pod["metadata"]["resourceVersion"] != mark.version:
            self.report(uid)
            raise Stale
        for key, value in mark.patch["metadata"].items():
            if value is None:
                pod["metadata"].pop(key, None)
            else:
                pod["metadata"][key] = value
        self._touch(pod)
        self._collect(uid)
        self.report(uid)

    def _delete(self, delete: Delete) -> None:
        if delete.ref.resource == BATCH_JOBS:
            assert delete.propagation == "Foreground"
            self.job_deleted = True
        elif delete.ref.uid in self.pods:
            self.delete(delete.ref.uid)
            self.report(delete.ref.uid)
        else:
            self.report(delete.ref.uid)

    def _create(self, create: Create) -> None:
        assert create.resource == PODS
        body = copy.deepcopy(create.body)
        name = body["metadata"]["name"]
        holder = next((uid for uid, pod in self.pods.items() if pod["metadata"]["name"] == name), None)
        if holder is None:
            self._serial += 1
            holder = f"pod-{self._serial}"
            body["metadata"] |= {"uid": holder, "creationTimestamp": format_time(self.now)}
            body["status"] = {"phase": "Pending"}
            self._touch(body)
            self.pods[holder] = body
            self.created.append(name)
        self.report(holder)

    def _touch(self, obj: Json) -> None:
        self._serial += 1
        obj["metadata"]["resourceVersion"] = str(self._serial)

    def _collect(self, uid: str) -> None:
        """Remove a pod that is deleted, has ended or was never started, and has no finalizers."""
        pod = self.pods[uid]
        over = pod["status"].get("phase") in _ENDED or not pod["spec"].get("nodeName")
        if pod["metadata"].get("deletionTimestamp") and over and not pod["metadata"].get("finalizers"):
            del self.pods[uid]


def is_active(pod: Json) -> bool:
    return pod["status"].get("phase") not in _ENDED and not pod["metadata"].get("deletionTimestamp")


def is_tracked(pod: Json) -> bool:
    return POD_TRACKING in pod["metadata"].get("finalizers", ())
