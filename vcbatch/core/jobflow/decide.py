"""The decision of one reconciliation of a JobFlow (volcano-sh/volcano `pkg/controllers/jobflow`).

The table gives the next phase; the actions on jobs follow from that phase and the ledger, so that a reconciliation that
is repeated, or was interrupted, continues where the last one stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from vcbatch.api.job import Action, JobPhase
from vcbatch.api.jobflow import JobFlowLedger, JobFlowPhase, MadeJob, RetainPolicy
from vcbatch.api.messages import command_issued
from vcbatch.api.reasons import JobFlowReason
from vcbatch.api.resources import JOBFLOWS, JOBS
from vcbatch.api.timestamps import format_time
from vcbatch.core.gc.ttl import flow_expiry
from vcbatch.core.jobflow.child import Child
from vcbatch.core.jobflow.commands import Inbox, read_inbox
from vcbatch.core.jobflow.graph import invalid
from vcbatch.core.jobflow.nodes import Jobs, Node, Standing, ends, jobs_of, nodes_of, skipped
from vcbatch.core.jobflow.orders import Orders, orders_of
from vcbatch.core.jobflow.remarks import Remark, joined, remarks_on
from vcbatch.core.jobflow.states import TABLE, Outlook, Verb
from vcbatch.core.jobflow.status import first_seen, status_of
from vcbatch.core.jobflow.template import job_body, version_of
from vcbatch.core.jobflow.view import JobFlowView
from vcbatch.core.machine import Create, Decision, Delete, Emit, EventType, ObjectRef, WriteStatus, ref_of

_GOING = (JobFlowPhase.PENDING, JobFlowPhase.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """The observed state, after a Command's changes of the ledger."""

    view: JobFlowView
    ledger: JobFlowLedger
    inbox: Inbox
    jobs: Jobs
    ended: Mapping[str, JobPhase]
    """The final phases of jobs that may have been deleted, by name."""
    nodes: Sequence[Node]
    """Empty where the flow's dependencies are invalid."""
    error: str
    """Why they are invalid; empty where they are valid."""
    phase: JobFlowPhase
    """The next phase."""

    @property
    def children(self) -> list[Child]:
        """The flow's jobs that count, in the flow's order; then those of entries that were removed from the flow."""
        mine = [node.job for node in self.nodes if node.child is not None]
        return [self.jobs.own[name] for name in (*mine, *sorted(self.jobs.own.keys() - set(mine)))]


def decide(view: JobFlowView, *, now: datetime) -> Decision:
    """The status that follows from the existing jobs, and the intents that they and the Commands require."""
    flow = view.flow
    if flow.metadata.deletion_timestamp:
        return Decision()  # its jobs are deleted with it, by the garbage collector
    context = _context(view)
    children = context.children
    orders = orders_of(flow, context.ledger, context.phase, children, view.orders)
    remarks = _remarks(context)
    ledger = _remembered(context, orders, now=now)
    status = status_of(
        view.status,
        children,
        [job.name for job in children if first_seen(view, job)],
        [node.job for node in context.nodes],
        {name: phase for name, phase in context.ended.items() if name not in context.jobs.leaving},
        phase=context.phase,
        message=joined(remarks),
        ledger=ledger,
        now=now,
    )
    expiry = flow_expiry(flow, finished=ledger.finished, now=now)
    write = WriteStatus(ref=ref_of(JOBFLOWS, flow), resource_version=flow.metadata.resource_version, status=status)
    return Decision(
        status=None if status == view.status else write,
        deletes=[
            *context.inbox.deletes,
            *orders.deletes,
            *_deletes(context),
            *([expiry.delete] if expiry.delete else []),
        ],
        creates=[*orders.creates, *_creates(context)],
        events=[replace(event, after=write) for event in _events(context, remarks)],
        requeue_at=now if context.inbox.more else expiry.due,
    )


def _context(view: JobFlowView) -> _Context:
    flow, ledger = view.flow, view.flow.status.ledger
    inbox = read_inbox(flow, view.commands, ledger)
    cell = inbox.order[1] if inbox.order is not None else TABLE[flow.phase][Action.SYNC_JOB]
    error, ended, jobs = invalid(flow), ends(view, ledger), jobs_of(view, ledger)
    nodes = [] if error else nodes_of(view, jobs, ended)
    if cell.verb is Verb.RETRY:
        ledger, ended = _discarding(view, ledger, ended, nodes)
        jobs = jobs_of(view, ledger)
        nodes = [] if error else nodes_of(view, jobs, ended)
    outlook = _outlook(view, ledger, jobs, nodes)
    held = bool(error) and inbox.order is None and flow.phase in _GOING
    phase = flow.phase if held else cell.then.decide(outlook)
    if cell.verb in (Verb.SUSPEND, Verb.RESUME) or phase is JobFlowPhase.TERMINATING:
        ledger = ledger.model_copy(update={"suspended": cell.verb is Verb.SUSPEND})
    if phase is JobFlowPhase.FAILED:
        nodes = skipped(nodes)
    return _Context(
        view=view, ledger=ledger, inbox=inbox, jobs=jobs, ended=ended, nodes=nodes, error=error, phase=phase
    )


def _discarding(
    view: JobFlowView, ledger: JobFlowLedger, ended: Mapping[str, JobPhase], nodes: Sequence[Node]
) -> tuple[JobFlowLedger, Mapping[str, JobPhase]]:
    """Drop the records of failed and terminated jobs; such a job that still exists is to be deleted."""
    broken = [node for node in nodes if node.standing.broken]
    forgotten = {node.job for node in broken}
    uids = [node.child.uid for node in broken if node.child is not None]
    uids += [job.uid for job in view.departed if job.name in forgotten]
    changed = ledger.model_copy(update={"discarded": [*ledger.discarded, *uids]})
    return changed, {name: phase for name, phase in ended.items() if name not in forgotten}


def _outlook(view: JobFlowView, ledger: JobFlowLedger, jobs: Jobs, nodes: Sequence[Node]) -> Outlook:
    ending = orders_of(view.flow, ledger, JobFlowPhase.TERMINATING, jobs.own.values(), view.orders).open
    return Outlook(
        phase=view.flow.phase,
        total=len(nodes),
        running=sum(node.phase is JobPhase.RUNNING for node in nodes),
        completed=sum(node.standing is Standing.COMPLETED for node in nodes),
        broken=sum(node.standing.broken for node in nodes),
        ending=ending + len(jobs.leaving),
    )


def _remarks(context: _Context) -> list[Remark]:
    if context.error:
        return [Remark(JobFlowReason.INVALID_FLOW, context.error)]
    return remarks_on(context.view, context.nodes, context.ledger, context.phase)


def _remembered(context: _Context, orders: Orders, *, now: datetime) -> JobFlowLedger:
    """The next ledger, without entries that are no longer needed."""
    there = {job.uid for job in (*context.view.jobs, *context.view.departed)}
    mine = {node.job for node in context.nodes}
    known = {name: made for name, made in context.view.flow.status.ledger.jobs.items() if name in mine}
    entries = {
        "jobs": known | {job.name: _made(context, job) for job in context.children},
        "suspended": context.ledger.suspended and context.phase is not JobFlowPhase.SUCCEED,
        "aborted": list(orders.aborted),
        "discarded": [uid for uid in context.ledger.discarded if uid in there],
        "commands": context.inbox.remembered(),
        "finished": _finished(context, now),
    }
    return JobFlowLedger.model_validate({key: value for key, value in entries.items() if value})


def _finished(context: _Context, now: datetime) -> str:
    """When the flow reached its present end; empty while it continues."""
    if context.phase not in (JobFlowPhase.SUCCEED, JobFlowPhase.FAILED):
        return ""
    known = context.view.flow.status.ledger.finished
    return known if known and context.phase is context.view.flow.phase else format_time(now)


def _made(context: _Context, job: Child) -> MadeJob:
    """Record the JobTemplate of a job when the job is first observed, since the job doesn't have its version."""
    known = context.view.flow.status.ledger.jobs.get(job.name)
    if known is not None and known.uid == job.uid:
        return known
    template = next((context.view.templates.get(node.name) for node in context.nodes if node.job == job.name), None)
    return MadeJob(uid=job.uid, template=version_of(template)) if template is not None else MadeJob(uid=job.uid)


def _deletes(context: _Context) -> Iterator[Delete]:
    flow = context.view.flow
    policy_deletes = context.phase is JobFlowPhase.SUCCEED and flow.spec.job_retain_policy == RetainPolicy.DELETE
    for job in (*context.jobs.leaving.values(), *(context.children if policy_deletes else ())):
        if not job.deleting:
            ref = ObjectRef(resource=JOBS, namespace=flow.namespace, name=job.name, uid=job.uid)
            yield Delete(ref=ref)


def _creates(context: _Context) -> Iterator[Create]:
    if context.phase not in _GOING or context.ledger.suspended:
        return
    for node in context.nodes:
        if node.standing is Standing.DUE:
            body = job_body(context.view.flow, node.flow, context.view.templates[node.name], name=node.job)
            yield Create(resource=JOBS, body=body)


def _events(context: _Context, remarks: Sequence[Remark]) -> Iterator[Emit]:
    flow, ref = context.view.flow, ref_of(JOBFLOWS, context.view.flow)
    for why in context.inbox.rejected:
        yield Emit(ref=ref, type=EventType.WARNING, reason=JobFlowReason.COMMAND_REJECTED, message=why)
    if context.inbox.order is not None:
        text = command_issued(action=context.inbox.order[0])
        yield Emit(ref=ref, type=EventType.NORMAL, reason=JobFlowReason.COMMAND_ISSUED, message=text)
    for job in context.children:
        if first_seen(context.view, job):
            text = f"create a job named {job.name}!"
            yield Emit(ref=ref, type=EventType.NORMAL, reason=JobFlowReason.CREATED, message=text)
    for remark in remarks:
        if remark.message not in flow.status.state.message and remark.reason is not JobFlowReason.FAILED_CREATE:
            yield Emit(ref=ref, type=remark.type, reason=remark.reason, message=remark.message)
