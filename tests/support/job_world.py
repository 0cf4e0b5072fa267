"""A simulation without I/O for the job controller: objects in dictionaries, decisions executed write by write.

It simulates the API server (UIDs, resourceVersions, graceful deletion, garbage collection by owner), a scheduler that
admits every gang, and nodes that interpret a pod's command. Execution of a decision can stop after any of its writes,
as in a crash.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from vcbatch.api import names
from vcbatch.api.command import Command
from vcbatch.api.defaults import default_job
from vcbatch.api.job import JobPhase
from vcbatch.api.pod import Pod
from vcbatch.api.pod_references import Reference
from vcbatch.api.podgroup import PodGroup
from vcbatch.api.queue import Queue
from vcbatch.api.resources import COMMANDS, JOBS, PERSISTENTVOLUMECLAIMS, PODGROUPS, PODS, QUEUES, Resource
from vcbatch.api.storage import Claim
from vcbatch.api.timestamps import format_time
from vcbatch.core.job import (
    JobView,
    OtherJobs,
    awaits,
    decide,
    other_jobs,
    read_job,
    wanted_children,
    wanted_claims,
    wanted_references,
)
from vcbatch.core.machine import Create, Decision, Delete, Emit, Ensure, Mark, WriteStatus, strip_unchanged

Json = dict[str, Any]
Key = tuple[Resource, str]

START = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
_SLEEP = re.compile(r"sleep (\d+)")
_EXIT = re.compile(r"exit (\d+)")


def job_object(
    name: str = "j",
    *,
    tasks: list[Json] | None = None,
    uid: str = "",
    **spec: Any,
) -> Json:
    """A job from a user; `tasks` defaults to one task `w` of two pods."""
    metadata: Json = {"name": name, "namespace": "ns"}
    if uid:
        metadata["uid"] = uid
    return {
        "apiVersion": JOBS.api_version,
        "kind": "Job",
        "metadata": metadata,
        "spec": {"tasks": tasks if tasks is not None else [task("w", 2)], **spec},
    }


def task(name: str, replicas: int, command: str = "sleep 1000", **spec: Any) -> Json:
    """A task whose pods run `command` and never restart in place."""
    container = {
        "name": "main",
        "image": "img",
        "command": ["sh", "-c", command],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return {"name": name, "replicas": replicas, "template": template, **spec}


@dataclass
class World:
    """One namespace. `objects` are the stored ones by resource and name."""

    namespace: str = "ns"
    now: datetime = START
    objects: dict[Key, Json] = field(default_factory=dict)
    events: list[Emit] = field(default_factory=list)
    created: list[Json] = field(default_factory=list)
    """Every pod ever created, in order."""
    deleted_by_us: list[str] = field(default_factory=list)
    writes: int = 0
    status_history: list[Json] = field(default_factory=list)
    priority_classes: dict[str, int] = field(default_factory=dict)
    last_phases: dict[str, JobPhase] = field(default_factory=dict)
    """The last phases of deleted jobs by UID, as far as the controller has seen them."""
    absent: set[Reference] = field(default_factory=set)
    """Missing objects that pods may refer to; all others exist."""
    lets_in: bool = True
    binds: bool = True
    refusal: str = ""
    """The error with which the server rejects the creation of pods; empty: it accepts them."""
    claim_refusal: str = ""
    """The same for PersistentVolumeClaims."""
    group_refusal: str = ""
    """The same for PodGroups."""
    child_refusal: str = ""
    """The same for the objects of job plugins."""
    crash_at: int | None = None
    """The controller crashes once instead of its write of this number (counted from 0 over all reconciles)."""
    crashes: int = 0
    on_create: Callable[[Json], None] | None = None
    """Called with each pod just before it is created."""
    _tried: int = 0
    _serial: int = 0

    def __post_init__(self) -> None:
        self.put_queue("default")

    # API server

    def put_queue(self, name: str) -> None:
        self.put(QUEUES, {"metadata": {"name": name}, "spec": {"weight": 1}, "status": {"state": "Open"}})

    def put(self, resource: Resource, body: Json) -> Json:
        """Store a new object."""
        stored = copy.deepcopy(body)
        metadata = stored.setdefault("metadata", {})
        if resource.namespaced:
            metadata.setdefault("namespace", self.namespace)
        metadata.setdefault("uid", f"uid-{self._next()}")
        metadata["creationTimestamp"] = format_time(self.now)
        metadata["resourceVersion"] = str(self._next())
        stored.setdefault("apiVersion", resource.api_version)
        stored.setdefault("kind", resource.kind)
        assert (resource, metadata["name"]) not in self.objects, f"{resource.kind} {metadata['name']} exists"
        self.objects[resource, metadata["name"]] = stored
        return stored

    def submit(self, job: Json) -> Json:
        """Store a job with the defaults of admission."""
        return self.put(JOBS, default_job(job))

    def command(self, action: str, *, target: Json, name: str | None = None) -> Json:
        reference = {
            "apiVersion": target["apiVersion"],
            "kind": target["kind"],
            "name": target["metadata"]["name"],
            "uid": target["metadata"]["uid"],
            "controller": True,
        }
        body = {"metadata": {"name": name or f"cmd-{self._next()}"}, "action": action, "target": reference}
        return self.put(COMMANDS, body)

    def change(self, resource: Resource, name: str, change: Callable[[Json], None]) -> None:
        stored = self.objects[resource, name]
        change(stored)
        stored["metadata"]["resourceVersion"] = str(self._next())

    def remove(self, resource: Resource, name: str) -> None:
        """Remove the object and its dependents at once."""
        gone = self.objects.pop((resource, name), None)
        if gone is None:
            return
        uid = gone["metadata"]["uid"]
        for key, stored in list(self.objects.items()):
            if any(owner.get("uid") == uid for owner in stored["metadata"].get("ownerReferences") or ()):
                self.remove(*key)

    def delete_pod(self, name: str) -> None:
        """Request the deletion of a pod, as a user or an eviction does."""
        pod = self.objects[PODS, name]
        pod["metadata"].setdefault("deletionTimestamp", format_time(self.now))

    def all(self, resource: Resource) -> list[Json]:
        return [stored for (kind, _), stored in self.objects.items() if kind == resource]

    def job(self, name: str = "j") -> Json:
        return self.objects[JOBS, name]

    def phase(self, name: str = "j") -> str:
        return self.job(name).get("status", {}).get("state", {}).get("phase", "")

    def pods(self) -> dict[str, Json]:
        return {pod["metadata"]["name"]: pod for pod in self.all(PODS)}

    def _next(self) -> int:
        self._serial += 1
        return self._serial

    # Controller

    def view(self, name: str = "j") -> JobView:
        job = read_job(self.job(name))
        group = self.objects.get((PODGROUPS, names.pod_group_name(job.name, job.uid)))
        wanted = wanted_children(job)
        claims = [msgspec.convert(claim, Claim) for claim in self.all(PERSISTENTVOLUMECLAIMS)]
        queue = self.objects.get((QUEUES, job.spec.queue))
        return JobView(
            job=job,
            pods=[msgspec.convert(pod, Pod) for pod in self.all(PODS)],
            pod_group=PodGroup.parse(group) if group else None,
            children={key: self.objects[key] for key in wanted if key in self.objects},
            claims={claim.metadata.name: claim for claim in claims if claim.metadata.name in wanted_claims(job)},
            absent=[one for one in wanted_references(job, wanted) if one in self.absent],
            queue=Queue.parse(queue) if queue else None,
            priority_classes=self.priority_classes,
            others=OtherJobs(other_jobs(job, lambda name: self.objects.get((JOBS, name))), self.last_phases),
            awaited=any(awaits(other, name=job.name, uid=job.uid) for other in self.all(JOBS)),
            refusal=self.refusal,
            claim_refusal=self.claim_refusal,
            child_refusal=self.child_refusal,
            group_refusal=self.group_refusal,
            commands=[
                Command.parse(command)
                for command in self.all(COMMANDS)
                if command["target"]["kind"] == "Job" and command["target"]["name"] == name
            ],
        )

    def reconcile(self, name: str = "j", *, writes: int | None = None) -> Decision:
        """Decide, and execute the first `writes` writes (default: all)."""
        decision = decide(self.view(name), now=self.now)
        for number, write in enumerate(self.writes_of(decision)):
            if writes is not None and number >= writes:
                return decision
            self._tried += 1
            if self.crash_at is not None and self._tried > self.crash_at:
                self.crash_at = None
                self.crashes += 1
                return decision
            write()
        self.events.extend(decision.events)
        return decision

    def writes_of(self, decision: Decision) -> Iterator[Callable[[], None]]:
        """The writes of a decision, in the fixed order."""
        if decision.status is not None:
            status = decision.status
            yield lambda: self._write_status(status)
        for mark in decision.marks:
            yield lambda mark=mark: self._mark(mark)
        for ensure in decision.ensures:
            yield lambda ensure=ensure: self._ensure(ensure)
        for delete in decision.deletes:
            yield lambda delete=delete: self._delete(delete)
        for create in decision.creates:
            yield lambda create=create: self._create(create)

    def settle(self, name: str = "j", *, most: int = 50) -> None:
        """Reconcile until nothing is left to do."""
        for _ in range(most):
            before = self.writes, self.crashes
            self.reconcile(name)
            if (self.writes, self.crashes) == before or (JOBS, name) not in self.objects:
                return
        raise AssertionError(f"job {name} doesn't come to rest: {self.job(name).get('status')}")

    def _write_status(self, write: WriteStatus) -> None:
        stored = self.objects[write.ref.resource, write.ref.name]
        assert stored["metadata"]["uid"] == write.ref.uid
        assert stored["metadata"]["resourceVersion"] == write.resource_version
        assert stored.get("status") != write.status, "a write that changes nothing"
        msgspec.json.encode(write.status)
        stored["status"] = copy.deepcopy(write.status)
        stored["metadata"]["resourceVersion"] = str(self._next())
        self.status_history.append(copy.deepcopy(write.status))
        self.writes += 1

    def _mark(self, mark: Mark) -> None:
        stored = self.objects.get((mark.ref.resource, mark.ref.name))
        if stored is not None and stored["metadata"]["uid"] == mark.ref.uid:
            _merge(stored, mark.patch)
            stored["metadata"]["resourceVersion"] = str(self._next())
            self.writes += 1

    def _ensure(self, ensure: Ensure) -> None:
        key = (ensure.resource, ensure.body["metadata"]["name"])
        stored = self.objects.get(key)
        if stored is None:
            refusals = {PERSISTENTVOLUMECLAIMS: self.claim_refusal, PODGROUPS: self.group_refusal}
            if refusals.get(ensure.resource):
                return
            body = ensure.body
            if ensure.keys is not None:
                made = dict.fromkeys((ensure.keys.private, *ensure.keys.public), f"made-{self.writes}")
                body = {**body, "data": {**body["data"], **made}}
            self.put(ensure.resource, body)
            self.writes += 1
            return
        assert _controller(stored) == _controller(ensure.body), f"{key} belongs to somebody else"
        patch = strip_unchanged(stored=stored, decided=ensure.update)
        if patch:
            _merge(stored, patch)
            self.writes += 1

    def _delete(self, delete: Delete) -> None:
        key = (delete.ref.resource, delete.ref.name)
        stored = self.objects.get(key)
        if stored is None or stored["metadata"]["uid"] != delete.ref.uid:
            return
        self.writes += 1
        if delete.ref.resource is PODS:
            stored["metadata"].setdefault("deletionTimestamp", format_time(self.now))
            self.deleted_by_us.append(delete.ref.uid)
        else:
            self.remove(*key)

    def _create(self, create: Create) -> None:
        key = (create.resource, create.body["metadata"]["name"])
        if key in self.objects:
            assert _controller(self.objects[key]) == _controller(create.body)
            return
        if self.refusal:
            return
        if self.on_create is not None:
            self.on_create(create.body)
        stored = self.put(create.resource, create.body)
        stored["status"] = {"phase": "Pending"}
        self.created.append(stored)
        self.writes += 1

    # Scheduler and nodes

    def step(self, *, seconds: float = 0.5) -> None:
        """Run the scheduler and the nodes once, and advance the time."""
        self.now += timedelta(seconds=seconds)
        self.schedule()
        self.run_nodes()

    def schedule(self) -> None:
        """Admit gangs, and start each gang with enough pods."""
        for group in self.all(PODGROUPS):
            status = group.setdefault("status", {})
            if not status.get("phase"):
                status["phase"] = "Inqueue" if self.lets_in else "Pending"
            name = group["metadata"]["name"]
            members = [
                pod
                for pod in self.all(PODS)
                if pod["metadata"].get("annotations", {}).get(names.GROUP_NAME) == name
                and not pod["metadata"].get("deletionTimestamp")
            ]
            if not self.binds or len(members) < group["spec"].get("minMember", 1):
                continue
            for pod in members:
                if pod["status"]["phase"] == "Pending":
                    self.start_pod(pod)
                    status["phase"] = "Running"

    def start_pod(self, pod: Json) -> None:
        pod["spec"]["nodeName"] = "node-1"
        started = {"name": "main", "ready": True, "state": {"running": {"startedAt": format_time(self.now)}}}
        pod["status"] = {"phase": "Running", "startTime": self.now.isoformat(), "containerStatuses": [started]}

    def run_nodes(self) -> None:
        """End pods whose command has finished, and remove deleted ones."""
        for name, pod in self.pods().items():
            if pod["metadata"].get("deletionTimestamp"):
                self.remove(PODS, name)
            elif pod["status"]["phase"] == "Running":
                script = pod["spec"]["containers"][0].get("command", ["", "", ""])[-1]
                sleep, code = _SLEEP.search(script), _EXIT.search(script)
                lasts = timedelta(seconds=int(sleep[1]) if sleep else 0)
                if datetime.fromisoformat(pod["status"]["startTime"]) + lasts <= self.now:
                    self.end_pod(name, int(code[1]) if code else 0)

    def end_pod(self, name: str, code: int, **terminated: Any) -> None:
        """Let a pod's only container exit with this code."""
        pod = self.objects[PODS, name]
        ended = {"exitCode": code, "finishedAt": format_time(self.now), **terminated}
        pod["status"]["phase"] = "Failed" if code else "Succeeded"
        pod["status"]["containerStatuses"] = [{"name": "main", "state": {"terminated": ended}}]

    def evict(self, name: str) -> None:
        """Evict a pod: it fails and is being deleted."""
        self.end_pod(name, 143)
        pod = self.objects[PODS, name]
        pod["status"]["conditions"] = [
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        ]
        self.delete_pod(name)

    def run(self, name: str = "j", *, until: Callable[[], bool], most: int = 400) -> list[str]:
        """Run the simulation until the condition is true; returns the observed phases without repetitions."""
        saw: list[str] = []
        for _ in range(most):
            before = len(self.status_history)
            self.settle(name)
            for status in self.status_history[before:]:
                if not saw or saw[-1] != status["state"]["phase"]:
                    saw.append(status["state"]["phase"])
            if until():
                return saw
            self.step()
        raise AssertionError(f"not reached, saw {saw}; status {self.job(name).get('status')}")


def _controller(body: Json) -> str:
    owners = body["metadata"].get("ownerReferences") or ()
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


def _merge(target: Json, patch: Json) -> None:
    """Apply a merge patch in place (RFC 7386)."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = copy.deepcopy(value)
