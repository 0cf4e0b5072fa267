"""The entries of a flow, each with the job that was made of it and how that stands.

Whose a job is is told by its controller's UID, never by its name. That a job ended is remembered in the flow's status:
it isn't made again when somebody deletes it or its time to live is over. One that was deleted before it ended is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from vcbatch.api import names
from vcbatch.api.job import JobPhase
from vcbatch.api.jobflow import Flow, JobFlowLedger, Probe
from vcbatch.api.loose import part
from vcbatch.core.jobflow.child import Child
from vcbatch.core.jobflow.probing import unmet
from vcbatch.core.jobflow.view import JobFlowView


class Standing(StrEnum):
    """Where an entry is in its life."""

    WAITING = "Waiting"
    """For what it depends on."""
    DUE = "Due"
    """All it depends on is there."""
    NO_TEMPLATE = "NoTemplate"
    """Due, and its JobTemplate isn't there."""
    TAKEN = "Taken"
    """The name of its job is somebody else's."""
    LEAVING = "Leaving"
    """A job has to go before its own can be made."""
    MADE = "Made"
    """Its job isn't finished."""
    COMPLETED = "Completed"
    FAILED = "Failed"
    TERMINATED = "Terminated"
    UPSTREAM_FAILED = "UpstreamFailed"
    """Never made, since one that it depends on failed, or was never made for that."""
    SKIPPED = "Skipped"
    """Never made, since the flow is over."""

    @property
    def broken(self) -> bool:
        return self in (Standing.FAILED, Standing.TERMINATED)


_ENDS = {
    JobPhase.COMPLETED: Standing.COMPLETED,
    JobPhase.FAILED: Standing.FAILED,
    JobPhase.TERMINATED: Standing.TERMINATED,
}


_OPEN = frozenset({Standing.WAITING, Standing.DUE, Standing.NO_TEMPLATE, Standing.TAKEN, Standing.LEAVING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One entry. `child` is the job that counts for it; None also where the job is gone and its end remembered."""

    flow: Flow
    job: str
    """The name of its job."""
    standing: Standing
    child: Child | None = None
    waits_for: str = ""
    """What a probe has to find yet."""

    @property
    def name(self) -> str:
        return self.flow.name

    @property
    def phase(self) -> JobPhase | None:
        """The job's phase."""
        if self.child is not None:
            return self.child.phase
        return next((phase for phase, standing in _ENDS.items() if standing is self.standing), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """The jobs of a view, sorted out."""

    own: Mapping[str, Child]
    """By name, those that count."""
    leaving: Mapping[str, Child]
    """By name, those on their way out: being deleted, or discarded."""
    foreign: Mapping[str, Child]


def jobs_of(view: JobFlowView, ledger: JobFlowLedger) -> Jobs:
    """One that finished and is being deleted counts as long as it is there, and after that by memory."""
    own: dict[str, Child] = {}
    leaving: dict[str, Child] = {}
    foreign: dict[str, Child] = {}
    discarded = frozenset(ledger.discarded)
    for job in view.jobs:
        if job.flow != view.flow.uid:
            foreign[job.name] = job
        elif job.uid in discarded or (job.deleting and not job.phase.finished):
            leaving[job.name] = job
        else:
            own[job.name] = job
    return Jobs(own=own, leaving=leaving, foreign=foreign)


def nodes_of(view: JobFlowView, jobs: Jobs, ended: Mapping[str, JobPhase]) -> list[Node]:
    """The entries of a flow that is an order, as they are listed. `ended`: how jobs ended that may be gone, by name."""
    first = [_with_job(view, entry, jobs, ended) for entry in view.flow.spec.entries]
    by_name = {node.name: node for node in first}
    broken = _downstream(first, by_name)
    return [
        _without_job(view, node, by_name, jobs.foreign, broken) if node.standing is Standing.WAITING else node
        for node in first
    ]


def skipped(nodes: Iterable[Node]) -> list[Node]:
    """The same once the flow is over: what isn't made by now never is."""
    return [replace(node, standing=Standing.SKIPPED) if node.standing in _OPEN else node for node in nodes]


def ends(view: JobFlowView, ledger: JobFlowLedger) -> dict[str, JobPhase]:
    """How jobs ended that may be gone, by name."""
    found: dict[str, JobPhase] = {}
    conditions = part(view.status, "conditions")
    for name in (names.flow_job_name(view.flow.name, entry.name) for entry in view.flow.spec.entries):
        phase = next((phase for phase in _ENDS if phase == part(conditions, name).get("phase")), None)
        if phase is not None:
            found[name] = phase
    discarded = frozenset(ledger.discarded)
    found.update({job.name: job.phase for job in view.departed if job.phase.finished and job.uid not in discarded})
    return found


def _with_job(view: JobFlowView, entry: Flow, jobs: Jobs, ended: Mapping[str, JobPhase]) -> Node:
    name = names.flow_job_name(view.flow.name, entry.name)
    child = jobs.own.get(name)
    if child is not None:
        return Node(flow=entry, job=name, standing=_ENDS.get(child.phase, Standing.MADE), child=child)
    if name in jobs.leaving:
        return Node(flow=entry, job=name, standing=Standing.LEAVING)
    if name in ended:
        return Node(flow=entry, job=name, standing=_ENDS[ended[name]])
    return Node(flow=entry, job=name, standing=Standing.WAITING)


def _downstream(nodes: Sequence[Node], by_name: Mapping[str, Node]) -> frozenset[str]:
    """The entries without a job that depend on a broken one, by way of others or not."""
    dependants: dict[str, list[Node]] = {}
    for node in nodes:
        for target in _targets(node.flow):
            dependants.setdefault(target, []).append(node)
    reached: set[str] = set()
    at = [node.name for node in nodes if node.standing.broken]
    while at:
        for node in dependants.get(at.pop(), ()):
            if node.name not in reached and by_name[node.name].standing is Standing.WAITING:
                reached.add(node.name)
                at.append(node.name)
    return frozenset(reached)


def _without_job(
    view: JobFlowView, node: Node, by_name: Mapping[str, Node], foreign: Mapping[str, Child], broken: frozenset[str]
) -> Node:
    if node.name in broken:
        return replace(node, standing=Standing.UPSTREAM_FAILED)
    for target in _targets(node.flow):
        trouble = _unsatisfied(view, node.flow, by_name[target])
        if trouble is not None:
            return replace(node, waits_for=trouble)
    if node.job in foreign:
        return replace(node, standing=Standing.LEAVING if foreign[node.job].deleting else Standing.TAKEN)
    return replace(node, standing=Standing.DUE if node.name in view.templates else Standing.NO_TEMPLATE)


def _unsatisfied(view: JobFlowView, entry: Flow, target: Node) -> str | None:
    """None where the target is satisfied; else what a probe waits for, empty where no probe is at work."""
    if target.standing is Standing.COMPLETED:
        return None
    probe = entry.depends_on.probe if entry.depends_on is not None else None
    if probe is None or target.standing is not Standing.MADE or target.child is None:
        return ""
    return unmet(view, probe, target.child) or None


def being_probed(nodes: Sequence[Node]) -> Iterator[tuple[Probe, Child]]:
    """The probe of each entry that waits, with each of its targets that runs."""
    by_name = {node.name: node for node in nodes}
    for node in nodes:
        probe = node.flow.depends_on.probe if node.flow.depends_on is not None else None
        if node.standing is not Standing.WAITING or probe is None:
            continue
        for target in map(by_name.__getitem__, _targets(node.flow)):
            if target.standing is Standing.MADE and target.child is not None:
                yield probe, target.child


def _targets(entry: Flow) -> Sequence[str]:
    return entry.depends_on.targets if entry.depends_on is not None else ()
