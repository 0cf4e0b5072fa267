"""The JobFlow controller: maps events to flows and builds the view for a decision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from vcbatch.api import names
from vcbatch.api.command import Command
from vcbatch.api.jobflow import JobFlow, JobFlowSpec
from vcbatch.api.loose import listed, part
from vcbatch.api.pod import Pod
from vcbatch.api.reasons import JobFlowReason
from vcbatch.api.resources import JOBFLOWS, JOBS
from vcbatch.core.jobflow import Child, JobFlowView, child_of, decide, flow_of, probed_jobs, wanted_probes
from vcbatch.core.machine import Create, Decision
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Json
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.apply import Applier, NotAppliedError
from vcbatch.runtime.caches.cache import Cache, Change, identity
from vcbatch.runtime.controllers.command import target_of
from vcbatch.runtime.controllers.controller import Controller, ControllerConfig
from vcbatch.runtime.controllers.departed import Departed
from vcbatch.runtime.controllers.job import PODS_OF_A_JOB, job_of_pod
from vcbatch.runtime.controllers.refusals import Refusals, Report
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.metrics.meter import Meter
from vcbatch.runtime.probes import Prober

_FLOW = "JobFlow that controls it"
_NAMES = "names of its jobs"
_TEMPLATES = "JobTemplates that it names"
_TARGET = "JobFlow that it is for"
_ASKED = "job that is asked"
_COUNTS_SECONDS = 1.0
"""Seconds of delay: the counts of a job's pods change all the time while it starts; a flow reports them, and no
decision depends on them."""
_PODS_SECONDS = 0.2
_REPORTED = {
    f"create {JOBS.kind}": Report(JobFlowReason.FAILED_CREATE),
    f"delete {JOBS.kind}": Report(JobFlowReason.FAILED_DELETE),
}
_target_of = target_of(JOBFLOWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFlowSources:
    """The caches that a flow's view is built from."""

    flows: Cache[Json]
    templates: Cache[Json]
    jobs: Cache[Json]
    pods: Cache[Pod]
    commands: Cache[Json]


class JobFlowController:
    """Reconciles a flow when it, one of its jobs or templates, or a Command for it changes, and when the result of a
    probe changes."""

    def __init__(
        self,
        sources: JobFlowSources,
        prober: Prober,
        applier: Applier,
        recorder: Recorder,
        *,
        clock: Clock,
        random: Random,
        meter: Meter | None = None,
    ) -> None:
        self._sources = sources
        self._prober = prober
        self._specs: dict[str, tuple[object, JobFlowSpec]] = {}  # flow UID -> stored spec, parsed spec
        self._children: dict[str, tuple[Json, Child]] = {}  # job UID -> stored job, parsed job
        self._probed: dict[str, set[str]] = {}  # job UID -> UIDs of the flows that probe its pods
        self._departed: Departed[Child] = Departed()
        self._refusals = Refusals(JOBFLOWS, sources.flows, recorder, _REPORTED)
        self._tries: dict[str, int] = {}  # flow UID -> refused creations of jobs in a row
        self.controller = Controller(
            ControllerConfig(name="jobflow-controller"),
            self.decide,
            applier,
            clock=clock,
            random=random,
            meter=meter,
            carried_out=self._carried_out,
        )
        self._refusals.over = self.controller.queue.add  # the reported refusal is resolved
        prober.changed = self.controller.queue.add
        self._listen()

    def part(self) -> Part:
        return self.controller.part()

    # Events and the flows they affect

    def _listen(self) -> None:
        sources = self._sources
        sources.flows.add_index(_NAMES, _jobs_of)
        sources.flows.add_index(_TEMPLATES, _templates_of)
        sources.jobs.add_index(_FLOW, _flow_of)
        sources.pods.add_index(PODS_OF_A_JOB, job_of_pod)
        sources.commands.add_index(_TARGET, _target_of)
        sources.commands.add_index(_ASKED, _asked_of)
        sources.flows.listen(self._on_flow)
        sources.templates.listen(self._on_template)
        sources.jobs.listen(self._on_job)
        sources.pods.listen(self._on_pod)
        sources.commands.listen(self._on_command)

    def _on_flow(self, change: Change[Json]) -> None:
        if not change.keeps(_standing):
            self.controller.queue.add(identity(change.current).uid)

    def _on_template(self, change: Change[Json]) -> None:
        if change.keeps(_spec):
            return
        for flow in self._sources.flows.indexed(_TEMPLATES, identity(change.current).key):
            self.controller.queue.add(identity(flow).uid)

    def _on_job(self, change: Change[Json]) -> None:
        owners = {uid for held in (change.old, change.new) if held is not None for uid in _flow_of(held)}
        if change.new is None:
            self._on_job_gone(change.current, owners)
        if not owners:
            return
        for uid in owners:
            self.controller.queue.add_after(uid, _COUNTS_SECONDS if change.keeps(_progress) else 0.0)

    def _on_job_gone(self, job: Json, owners: Iterable[str]) -> None:
        who = identity(job)
        self._children.pop(who.uid, None)
        self._probed.pop(who.uid, None)
        for uid in owners:
            self._departed.add(uid, job["metadata"]["name"], child_of(job))
        for flow in self._sources.flows.indexed(_NAMES, who.key):  # another flow may have waited for the name
            self.controller.queue.add(identity(flow).uid)

    def _on_pod(self, change: Change[Pod]) -> None:
        if not self._probed:
            return
        for job in job_of_pod(change.current):
            for flow in self._probed.get(job, ()):
                self.controller.queue.add_after(flow, _PODS_SECONDS)

    def _on_command(self, change: Change[Json]) -> None:
        for key in _target_of(change.current):
            flow = self._sources.flows.by_key(key)
            if flow is not None:
                self.controller.queue.add(identity(flow).uid)
        if change.new is None:  # which Command a job gets next depends on those that exist
            for uid in _asked_of(change.current):
                job = self._sources.jobs.get(uid)
                for flow in _flow_of(job) if job is not None else ():
                    self.controller.queue.add(flow)

    # Decisions

    async def decide(self, uid: str, now: datetime) -> Decision | None:
        stored = self._sources.flows.get(uid)
        if stored is None:
            self._forget(uid)
            return None
        decision = decide(self._view(uid, stored), now=now)
        return replace(decision, creates=self._in_turn(uid, decision.creates))

    def _view(self, uid: str, stored: Json) -> JobFlowView:
        sources, flow = self._sources, self._flow(uid, stored)
        jobs = {identity(job).uid: job for job in sources.jobs.indexed(_FLOW, uid)}
        for key in _jobs_of(stored):
            namesake = sources.jobs.by_key(key)
            if namesake is not None:
                jobs[identity(namesake).uid] = namesake
        templates = {
            entry.name: sources.templates.by_key(f"{flow.namespace}/{entry.name}") for entry in flow.spec.flows
        }
        refusal = self._refusals.last(uid)
        view = JobFlowView(
            flow=flow,
            status=part(stored, "status"),
            jobs=[self._child(job) for job in jobs.values()],
            departed=self._departed.see(uid),
            templates={name: template for name, template in templates.items() if template is not None},
            commands=[Command.parse(item) for item in sources.commands.indexed(_TARGET, flow.key)],
            orders={
                job: [Command.parse(item) for item in sources.commands.indexed(_ASKED, job)]
                for job in jobs
                if sources.commands.count(_ASKED, job)
            },
            refusal=refusal[1] if refusal is not None else "",
        )
        return self._with_probes(uid, view)

    def _flow(self, uid: str, stored: Json) -> JobFlow:
        """The flow of that UID. Its spec is parsed when it changes, its status with each reconcile."""
        known = self._specs.get(uid)
        if known is not None and known[0] == stored.get("spec"):
            return flow_of(stored, known[1])
        flow = flow_of(stored)
        self._specs[uid] = (stored.get("spec"), flow.spec)
        return flow

    def _child(self, job: Json) -> Child:
        uid = job["metadata"]["uid"]
        known = self._children.get(uid)
        if known is None or known[0] is not job:
            known = self._children[uid] = (job, child_of(job))
        return known[1]

    def _with_probes(self, uid: str, view: JobFlowView) -> JobFlowView:
        probed = probed_jobs(view)
        for job in [job for job, flows in self._probed.items() if uid in flows and job not in probed]:
            self._unprobe(job, uid)
        for job in probed:
            self._probed.setdefault(job, set()).add(uid)
        if not probed:
            self._prober.want(uid, ())
            return view
        view = replace(view, pods={job: self._sources.pods.indexed(PODS_OF_A_JOB, job) for job in probed})
        self._prober.want(uid, wanted_probes(view))
        return replace(view, answers=self._prober.answers(uid))

    def _unprobe(self, job: str, flow: str) -> None:
        flows = self._probed[job]
        flows.discard(flow)
        if not flows:
            del self._probed[job]

    def _in_turn(self, uid: str, creates: Sequence[Create]) -> Sequence[Create]:
        """The creations in the order in which they are tried. A refused job prevents those after it from being tried,
        so each attempt starts with another job."""
        orders = [create for create in creates if create.resource != JOBS]
        jobs = [create for create in creates if create.resource == JOBS]
        first = self._tries.get(uid, 0) % len(jobs) if jobs else 0
        return [*orders, *jobs[first:], *jobs[:first]]

    def _carried_out(self, uid: str, refused: NotAppliedError | None) -> None:
        self._refusals.carried_out(uid, refused)
        if refused is None:
            self._tries.pop(uid, None)
            self._departed.written_down(uid)
        elif refused.part == f"create {JOBS.kind}":
            self._tries[uid] = self._tries.get(uid, 0) + 1

    def _forget(self, uid: str) -> None:
        self._prober.want(uid, ())
        for job in [job for job, flows in self._probed.items() if uid in flows]:
            self._unprobe(job, uid)
        self._departed.forget(uid)
        self._refusals.forget(uid)
        self._specs.pop(uid, None)
        self._tries.pop(uid, None)


def _standing(flow: Json) -> tuple[object, ...]:
    """The fields of a flow that its decision depends on. The rest of its status is written by this controller."""
    metadata, status = flow["metadata"], part(flow, "status")
    phase, kept = part(status, "state").get("phase"), part(metadata, "annotations").get(names.TTL_AFTER_FINISHED)
    return metadata.get("deletionTimestamp"), kept, flow.get("spec"), phase, status.get("ledger")


def _spec(template: Json) -> object:
    return template.get("spec")


def _progress(job: Json) -> tuple[object, ...]:
    """The fields of a job that its flow's decision depends on, apart from the counts of its pods."""
    metadata, status = job["metadata"], part(job, "status")
    phase = part(status, "state").get("phase")
    return phase, bool(metadata.get("deletionTimestamp")), tuple(_flow_of(job)), status.get("runningDuration")


def _flow_of(job: Json) -> Iterable[str]:
    for owner in job["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner.get("kind") == JOBFLOWS.kind:
            yield owner.get("uid", "")


def _jobs_of(flow: Json) -> Iterable[str]:
    metadata = flow["metadata"]
    for name in _entries(flow):
        yield f"{metadata.get('namespace', '')}/{names.flow_job_name(metadata['name'], name)}"


def _templates_of(flow: Json) -> Iterable[str]:
    for name in _entries(flow):
        yield f"{flow['metadata'].get('namespace', '')}/{name}"


def _entries(flow: Json) -> Iterable[str]:
    for entry in listed(part(flow, "spec"), "flows"):
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            yield entry["name"]


def _asked_of(command: Json) -> Iterable[str]:
    target = command.get("target") or {}
    if target.get("kind") == JOBS.kind and target.get("uid"):
        yield target["uid"]
