"""The entries of a flow, each with its job and the job's state.

A job's owner is identified by its controller's UID, never by a name. The flow's status remembers finished jobs: such a
job isn't created again when it is deleted or its time to live expires. One that was deleted before it finished is.
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
    """The state of an entry."""

    WAITING = "Waiting"
    """It waits for its dependencies."""
    DUE = "Due"
    """Its dependencies are met."""
    NO_TEMPLATE = "NoTemplate"
    """Its dependencies are met, and its JobTemplate doesn't exist."""
    TAKEN = "Taken"
    """A job of another owner has the name of its job."""
    LEAVING = "Leaving"
    """Another job has to be deleted before its own can be created."""
    MADE = "Made"
    """Its job exists and isn't finished."""
    COMPLETED = "Completed"
    FAILED = "Failed"
    TERMINATED = "Terminated"
    UPSTREAM_FAILED = "UpstreamFailed"
    """Its job is never created, since a dependency failed or was itself never created for that reason."""
    SKIPPED = "Skipped"
    """Its job is never created, since the flow has ended."""

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
    """One entry. `child` is the job that counts for it; None also where the job is deleted and its end remembered."""

    flow: Flow
    job: str
    """The name of its job."""
    standing: Standing
    child: Child | None = None
    waits_for: str = ""
    """What a probe still waits for."""

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
    """The jobs of a view, sorted by role."""

    own: Mapping[str, Child]
    """The jobs that count, by name."""
    leaving: Mapping[str, Child]
    """The jobs that are being deleted or are to be discarded, by name."""
    foreign: Mapping[str, Child]


def jobs_of(view: JobFlowView, ledger: JobFlowLedger) -> Jobs:
    """Sort the jobs. A finished job that is being deleted counts while it exists, and afterwards through the ledger."""
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
    """The entries of a valid flow, in the order of the spec. `ended`: final phases of jobs that may have been
    deleted, by name."""
    first = [_with_job(view, entry, jobs, ended) for entry in view.flow.spec.entries]
    by_name = {node.name: node for node in first}
    broken = _downstream(first, by_name)
    return [
        _without_job(view, node, by_name, jobs.foreign, broken) if node.standing is Standing.WAITING else node
        for node in first
    ]


def skipped(nodes: Iterable[Node]) -> list[Node]:
    """The entries once the flow has ended: jobs that weren't created until now never are."""
    return [replace(node, standing=Standing.SKIPPED) if node.standing in _OPEN else node for node in nodes]


def ends(view: JobFlowView, ledger: JobFlowLedger) -> dict[str, JobPhase]:
    """The final phases of jobs that may have been deleted, by name."""
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
    """The entries without a job that depend, directly or not, on a failed one."""
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
    """None where the dependency is met; else what a probe waits for, empty where no probe applies."""
    if target.standing is Standing.COMPLETED:
        return None
    probe = entry.depends_on.probe if entry.depends_on is not None else None
    if probe is None or target.standing is not Standing.MADE or target.child is None:
        return ""
    return unmet(view, probe, target.child) or None


def being_probed(nodes: Sequence[Node]) -> Iterator[tuple[Probe, Child]]:
    """The probe of each waiting entry, with each of its targets that runs."""
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
