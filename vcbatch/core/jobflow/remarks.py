"""Messages about a flow: in `status.state.message`, and as an event when they are new there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from vcbatch.api.job import JobPhase
from vcbatch.api.jobflow import JobFlowLedger, JobFlowPhase
from vcbatch.api.messages import shorten
from vcbatch.api.reasons import JobFlowReason
from vcbatch.core.jobflow.nodes import Node, Standing
from vcbatch.core.jobflow.template import version_of
from vcbatch.core.jobflow.view import JobFlowView
from vcbatch.core.machine import EventType

_MOST_NAMED: Final = 5
_SUSPENDED: Final = frozenset({JobPhase.ABORTING, JobPhase.ABORTED})


@dataclass(frozen=True, slots=True)
class Remark:
    """One sentence, without its final period."""

    reason: JobFlowReason
    message: str
    type: EventType = EventType.WARNING


def joined(remarks: Sequence[Remark]) -> str:
    """All of them in one message."""
    return shorten("; ".join(remark.message for remark in remarks))


def remarks_on(view: JobFlowView, nodes: Sequence[Node], ledger: JobFlowLedger, phase: JobFlowPhase) -> list[Remark]:
    """The messages about a valid flow; empty where it progresses normally."""
    if phase is JobFlowPhase.SUCCEED:
        return []
    reported: list[Remark] = []
    if not nodes:
        reported.append(Remark(JobFlowReason.INVALID_FLOW, "spec.flows is empty: there is nothing to run"))
    if phase is JobFlowPhase.FAILED or any(node.standing.broken for node in nodes):
        reported.append(_on_failure(nodes))
    if phase in (JobFlowPhase.PENDING, JobFlowPhase.RUNNING):
        if ledger.suspended:
            reported.append(Remark(JobFlowReason.SUSPENDED, "suspended: no job is made", EventType.NORMAL))
        else:
            reported += _on_suspended_jobs(nodes, ledger)
        reported += _on_waiting(view, nodes)
    reported += _on_templates(view, nodes, ledger)
    return reported


def _on_failure(nodes: Sequence[Node]) -> Remark:
    """One sentence, so that it is emitted as one event."""
    parts = (
        _named(nodes, lambda node: node.standing is Standing.FAILED, "failed"),
        _named(nodes, lambda node: node.standing is Standing.TERMINATED, "terminated"),
        _named(nodes, lambda node: node.phase is JobPhase.ABORTED, "left suspended"),
        _named(nodes, lambda node: node.standing is Standing.UPSTREAM_FAILED, "never made for what they depend on"),
        _named(nodes, lambda node: node.standing is Standing.SKIPPED, "skipped"),
    )
    broken = any(node.standing.broken for node in nodes)
    message = ", ".join(filter(None, parts)) or "terminated by a Command"
    return Remark(JobFlowReason.JOB_FAILED if broken else JobFlowReason.TERMINATED, message)


def _on_suspended_jobs(nodes: Sequence[Node], ledger: JobFlowLedger) -> Iterator[Remark]:
    """Jobs that a user or a policy suspended while the flow continues: the flow doesn't resume them."""
    suspended = _named(nodes, lambda node: _is_suspended_alone(node, ledger), "waiting until these jobs are resumed")
    if suspended:
        yield Remark(JobFlowReason.JOB_SUSPENDED, f"{suspended} (suspended by themselves, not with the flow)")


def _is_suspended_alone(node: Node, ledger: JobFlowLedger) -> bool:
    child = node.child
    return child is not None and child.phase in _SUSPENDED and child.uid not in ledger.aborted and not child.deleting


def _on_waiting(view: JobFlowView, nodes: Sequence[Node]) -> Iterator[Remark]:
    lacking = _named(nodes, lambda node: node.standing is Standing.NO_TEMPLATE, "waiting for its JobTemplate")
    if lacking:
        yield Remark(JobFlowReason.TEMPLATE_NOT_FOUND, lacking)
    for node in [node for node in nodes if node.standing is Standing.TAKEN][:_MOST_NAMED]:
        text = f"{node.name} waits: a job {node.job} exists and isn't this flow's"
        yield Remark(JobFlowReason.FOREIGN_JOB, text)
    for node in [node for node in nodes if node.waits_for][:_MOST_NAMED]:
        yield Remark(JobFlowReason.PROBE_PENDING, f"{node.name} waits until {node.waits_for}", EventType.NORMAL)
    if view.refusal:
        yield Remark(JobFlowReason.FAILED_CREATE, shorten(f"a job isn't taken: {view.refusal}", limit=400))


def _on_templates(view: JobFlowView, nodes: Sequence[Node], ledger: JobFlowLedger) -> Iterator[Remark]:
    changed = _named(
        nodes,
        lambda node: node.standing is Standing.MADE and _changed(view, node, ledger),
        "made before the JobTemplate changed, and left as they are",
    )
    if changed:
        yield Remark(JobFlowReason.TEMPLATE_CHANGED, changed, EventType.NORMAL)


def _changed(view: JobFlowView, node: Node, ledger: JobFlowLedger) -> bool:
    made, template = ledger.jobs.get(node.job), view.templates.get(node.name)
    return made is not None and template is not None and bool(made.template) and made.template != version_of(template)


def _named(nodes: Sequence[Node], chosen: Callable[[Node], bool], what: str) -> str:
    """`failed: a, b`; empty where no node matches."""
    found = [node.name for node in nodes if chosen(node)]
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return f"{what}: {', '.join(found[:_MOST_NAMED])}{more}" if found else ""
