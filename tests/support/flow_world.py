"""One JobFlow, its templates and jobs: the cluster as seen by the JobFlow controller's decisions.

The test sets the states of jobs; `obey` executes Commands to jobs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.cron_world import Crash
from vcbatch.api.command import Command
from vcbatch.api.pod import Pod
from vcbatch.api.resources import COMMANDS, JOBFLOWS, JOBS, JOBTEMPLATES
from vcbatch.api.timestamps import format_time
from vcbatch.core.jobflow import (
    Child,
    JobFlowView,
    Probe,
    child_of,
    decide,
    flow_of,
    probed_jobs,
    wanted_probes,
)
from vcbatch.core.machine import Create, Decision, Delete, Emit, WriteStatus

Json = dict[str, Any]
START = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
FINISHED = ("Completed", "Failed", "Terminated")
_OBEYED = {"AbortJob": "Aborted", "ResumeJob": "Pending", "TerminateJob": "Terminated"}

__all__ = ["FINISHED", "START", "Crash", "FlowWorld", "entry"]


def entry(name: str, *targets: str, probe: Json | None = None, patch: Json | None = None) -> Json:
    """An entry of `spec.flows`."""
    depends = {"targets": list(targets)} | ({"probe": probe} if probe else {})
    return {"name": name} | ({"dependsOn": depends} if targets else {}) | ({"patch": patch} if patch else {})


class FlowWorld:
    """Deleted jobs are removed at once, or with `lingers` by `vanish`."""

    def __init__(self, *flows: Json, name: str = "f", templates: Iterable[str] | None = None, **spec: Any) -> None:
        self.now = START
        self.jobs: dict[str, Json] = {}
        self.made: list[str] = []
        """Names of all jobs ever created for the flow, in order."""
        self.commands: dict[str, Json] = {}
        self.departed: list[Child] = []
        self.events: list[Emit] = []
        self.pods: dict[str, list[Pod]] = {}
        self.answers: dict[Probe, bool] = {}
        self.asked: list[Probe] = []
        self.templates: dict[str, Json] = {}
        self.refusal = ""
        self.lingers = False
        self._serial = 0
        for template in templates if templates is not None else [each["name"] for each in flows]:
            self.template(template)
        self.flow: Json = {
            "apiVersion": JOBFLOWS.api_version,
            "kind": JOBFLOWS.kind,
            "metadata": {"name": name, "namespace": "ns", "uid": f"{name}-uid", "resourceVersion": "1"},
            "spec": {"flows": list(flows), **spec},
        }

    # State

    @property
    def status(self) -> Json:
        return self.flow.get("status", {})

    @property
    def phase(self) -> str:
        return self.status.get("state", {}).get("phase", "")

    @property
    def message(self) -> str:
        return self.status.get("state", {}).get("message", "")

    def phase_of(self, name: str) -> str:
        return self.jobs[name].get("status", {}).get("state", {}).get("phase", "")

    def reported(self, reason: str) -> list[str]:
        return [event.message for event in self.events if event.reason == reason]

    def view(self) -> JobFlowView:
        children = [child_of(job) for job in self.jobs.values()]
        orders = [Command.parse(each) for each in self.commands.values() if each["target"]["kind"] == "Job"]
        view = JobFlowView(
            flow=flow_of(self.flow),
            status=copy.deepcopy(self.status),
            jobs=children,
            departed=tuple(self.departed),
            templates=dict(self.templates),
            commands=[Command.parse(each) for each in self.commands.values() if each["target"]["kind"] == "JobFlow"],
            orders={
                job.uid: [each for each in orders if each.target and each.target.uid == job.uid] for job in children
            },
            answers=dict(self.answers),
            refusal=self.refusal,
        )
        pods = {uid: self.pods.get(uid, []) for uid in probed_jobs(view)}
        view = replace(view, pods=pods)
        self.asked = wanted_probes(view)
        return view

    # Operations

    def template(self, name: str, **spec: Any) -> None:
        """Create the JobTemplate, or change its spec."""
        stored = self.templates.get(name)
        generation = stored["metadata"]["generation"] + 1 if stored else 1
        metadata = {"name": name, "namespace": "ns", "uid": f"template-{name}", "generation": generation}
        tasks = [{"name": "w", "replicas": 1, "minAvailable": 1}]
        kind = {"apiVersion": JOBTEMPLATES.api_version, "kind": JOBTEMPLATES.kind}
        self.templates[name] = {**kind, "metadata": metadata, "spec": {"minAvailable": 1, "tasks": tasks, **spec}}

    def reconcile(self, *, writes: int | None = None) -> Decision:
        """Reconcile once; after `writes` writes the controller crashes (`Crash`)."""
        decision = decide(self.view(), now=self.now)
        budget = iter(range(writes)) if writes is not None else None
        for act in self._writes(decision):
            if budget is not None and next(budget, None) is None:
                self.departed.clear()
                raise Crash
            act()
        self.departed.clear()
        self.events += decision.events
        return decision

    def settle(self, reconciles: int = 30) -> None:
        """Reconcile until nothing is left to do, executing Commands in between."""
        for _ in range(reconciles):
            rests = self.reconcile().nothing_to_do
            if not self.obey() and rests:
                return
        raise AssertionError(f"it doesn't come to rest: {self.status}")

    def job_is(self, name: str, phase: str, **status: Any) -> None:
        """Set the job's phase."""
        self.now += timedelta(seconds=1)
        stored = self.jobs[name].setdefault("status", {})
        log = [each for each in stored.get("conditions", []) if each["status"] != phase]
        stored["conditions"] = [*log, {"status": phase, "lastTransitionTime": format_time(self.now)}]
        stored["state"] = {"phase": phase, "lastTransitionTime": format_time(self.now)}
        stored.update(status)

    def finish(self, *names: str, phase: str = "Completed") -> None:
        """End the jobs in this phase, and reconcile the flow until nothing is left to do."""
        for name in names:
            self.job_is(name, phase)
        self.settle()

    def vanish(self, name: str) -> None:
        """Remove the job, and let the controller observe that."""
        self.departed.append(child_of(self.jobs.pop(name)))

    def command(self, action: str, *, uid: str | None = None, name: str = "") -> None:
        """Create a user's Command for the flow."""
        self._serial += 1
        metadata = self.flow["metadata"]
        target = {"apiVersion": JOBFLOWS.api_version, "kind": JOBFLOWS.kind, "name": metadata["name"]}
        self.commands[name or f"user-{self._serial}"] = {
            "metadata": {
                "name": name or f"user-{self._serial}",
                "namespace": "ns",
                "uid": f"command-{self._serial}",
                "creationTimestamp": format_time(self.now),
            },
            "action": action,
            "target": {**target, "uid": uid if uid is not None else metadata["uid"]},
        }

    def obey(self) -> bool:
        """Execute the Commands to jobs, as the job controller does, and remove them."""
        orders = [name for name, each in self.commands.items() if each["target"]["kind"] == "Job"]
        for name in orders:
            order = self.commands.pop(name)
            job = self.jobs.get(order["target"]["name"])
            if job is None or job["metadata"]["uid"] != order["target"]["uid"]:
                continue
            phase, action = self.phase_of(job["metadata"]["name"]), order["action"]
            if (action == "ResumeJob") == (phase == "Aborted") and phase not in FINISHED:
                self.job_is(job["metadata"]["name"], _OBEYED[action])
        return bool(orders)

    def change(self, **spec: Any) -> None:
        """Change the flow's spec as a user."""
        self.flow = copy.deepcopy(self.flow)
        self.flow["spec"] |= spec
        self._renew(self.flow)

    def add_job(self, name: str, *, owner: str = "somebody", phase: str = "Running") -> None:
        """Create a job of that name that doesn't belong to the flow."""
        self._create(_job(name, owner))
        self.job_is(name, phase)

    # Execution of decisions

    def _writes(self, decision: Decision) -> Iterator[Callable[[], None]]:
        if decision.status is not None:
            yield lambda: self._write_status(decision.status)
        for delete in decision.deletes:
            yield lambda delete=delete: self._delete(delete)
        for create in decision.creates:
            yield lambda create=create: self._made(create)

    def _write_status(self, write: WriteStatus | None) -> None:
        assert write is not None
        self.flow = {**self.flow, "status": copy.deepcopy(write.status)}
        self._renew(self.flow)

    def _delete(self, delete: Delete) -> None:
        if delete.ref.resource == COMMANDS:
            self.commands.pop(delete.ref.name, None)
            return
        job = self.jobs.get(delete.ref.name)
        if job is None or job["metadata"]["uid"] != delete.ref.uid:
            return
        job["metadata"]["deletionTimestamp"] = format_time(self.now)
        if not self.lingers:
            self.vanish(delete.ref.name)

    def _made(self, create: Create) -> None:
        body = copy.deepcopy(create.body)
        name = body["metadata"]["name"]
        if create.resource == COMMANDS:
            self.commands.setdefault(name, {**body, "metadata": {**body["metadata"], "uid": self._uid("order")}})
            return
        stored = self.jobs.get(name)
        assert stored is None or _controller(stored) == _controller(body), "a name that is taken"
        if stored is None:
            self._create(body)
            self.made.append(name)

    def _create(self, body: Json) -> None:
        metadata = {**body["metadata"], "uid": self._uid("job"), "creationTimestamp": format_time(self.now)}
        self.jobs[body["metadata"]["name"]] = {**body, "metadata": metadata}

    def _renew(self, stored: Json) -> None:
        metadata = stored["metadata"]
        stored["metadata"] = {**metadata, "resourceVersion": str(int(metadata["resourceVersion"]) + 1)}

    def _uid(self, kind: str) -> str:
        self._serial += 1
        return f"{kind}-{self._serial}"


def _controller(job: Json) -> Sequence[str]:
    return [owner["uid"] for owner in job["metadata"].get("ownerReferences", ()) if owner.get("controller")]


def _job(name: str, owner: str) -> Json:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner, "controller": True}
    metadata = {"name": name, "namespace": "ns", "ownerReferences": [reference]}
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata, "spec": {}}
