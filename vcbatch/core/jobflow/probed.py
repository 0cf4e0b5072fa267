"""What a flow has to probe before a decision: first the jobs, then their probes."""

from __future__ import annotations

from vcbatch.api.jobflow import JobFlowPhase
from vcbatch.api.jobflow import Probe as Wanted
from vcbatch.core.jobflow.child import Child
from vcbatch.core.jobflow.graph import invalid
from vcbatch.core.jobflow.nodes import being_probed, ends, jobs_of, nodes_of
from vcbatch.core.jobflow.probe import Probe
from vcbatch.core.jobflow.probing import questions
from vcbatch.core.jobflow.view import JobFlowView


def probed_jobs(view: JobFlowView) -> list[str]:
    """The UIDs of the jobs whose pods the view must contain."""
    return list(dict.fromkeys(target.uid for _, target in _waiting(view)))


def wanted_probes(view: JobFlowView) -> list[Probe]:
    """The probes whose results the view must contain, where there are any yet."""
    return questions(view, _waiting(view))


def _waiting(view: JobFlowView) -> list[tuple[Wanted, Child]]:
    flow, ledger = view.flow, view.flow.status.ledger
    going = flow.phase in (JobFlowPhase.PENDING, JobFlowPhase.RUNNING) and not ledger.suspended
    has_probes = any(entry.depends_on is not None and entry.depends_on.probe is not None for entry in flow.spec.entries)
    if not going or not has_probes or flow.metadata.deletion_timestamp or invalid(flow):
        return []
    nodes = nodes_of(view, jobs_of(view, ledger), ends(view, ledger))
    return list(being_probed(nodes))
