"""The effects of the table's verbs on a job's objects, computed without executing them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from vcbatch.api.job import Action, JobPhase
from vcbatch.api.phases import QueueState
from vcbatch.api.resources import PODGROUPS
from vcbatch.api.start_conditions import has_start_conditions
from vcbatch.core.job import children, kill, podgroup, volumes
from vcbatch.core.job.budget import Charge
from vcbatch.core.job.context import JobContext, Stimulus
from vcbatch.core.job.counts import Counts
from vcbatch.core.job.dependencies import held_back
from vcbatch.core.job.plugin_trouble import blocked_by_others
from vcbatch.core.job.roster import Member
from vcbatch.core.job.states import LIVE, Cell, Retain, Verb
from vcbatch.core.job.sync import compare
from vcbatch.core.machine import Create, Delete, Ensure, Mark, ref_of


@dataclass(slots=True, kw_only=True)
class Acts:
    """The effects of a verb, before the next phase is known."""

    marks: list[Mark] = field(default_factory=list[Mark])
    ensures: list[Ensure] = field(default_factory=list[Ensure])
    deletes: list[Delete] = field(default_factory=list[Delete])
    killed: list[Member] = field(default_factory=list[Member])
    missing: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    creates: list[Create] = field(default_factory=list[Create])


def perform(context: JobContext, cell: Cell, stimulus: Stimulus) -> Acts:
    """Compute the effects of the cell's verb; the ledger records what it starts or ends."""
    ledger = context.ledger
    match cell.verb:
        case Verb.SYNC:
            return _sync(context)
        case Verb.TARGET:
            for part in stimulus.targets:
                ledger.aim(part)
            return _drain(context)
        case Verb.DRAIN:
            return _drain(context)
        case Verb.KILL:
            already = context.phase is JobPhase.RESTARTING and ledger.restarting_job
            if cell.ends_attempt and not (already and stimulus.action is Action.RESTART_JOB):
                ledger.end_attempt()
                ledger.restarting_job = False
                if cell.charge is Charge.RESUME:
                    ledger.begin_resumed()
                elif cell.retain is Retain.NOTHING:
                    ledger.restart_all()
            return kill_pods(context, cell.retain)


def _sync(context: JobContext) -> Acts:
    acts = Acts()
    view = context.view
    context.held = held_back(context.plan, context.roster, context.ledger)
    if view.queue is None and context.phase is JobPhase.PENDING:
        return acts
    if context.held_pending:
        return acts
    context.ledger.released |= has_start_conditions(view.job.metadata.annotations)
    waits = context.ledger.not_before is not None
    if waits and view.pod_group is None:
        return acts
    _claim(context, acts)
    if context.without_claims and view.pod_group is None:
        return acts
    context.blocked = blocked_by_others(view.job, view.children, context.plugins, now=context.now)
    acts.ensures.extend(children.ensures(view, context.plugins, blocked=context.blocked.names))
    if context.blocked and view.pod_group is None:
        return acts
    group = podgroup.ensure(
        context.plan,
        view.pod_group,
        view.priority_classes,
        out=_out_of_the_gang(context),
        closing=view.queue is not None and view.queue.status.state == QueueState.CLOSING,
    )
    if group is not None:
        acts.ensures.append(group)
    if podgroup.lets_create(view.pod_group):
        difference = compare(context.plan, context.roster, context.ledger, held=context.held.waiting)
        acts.killed, acts.missing = difference.superfluous, {} if waits else difference.missing
    if not acts.missing:
        context.without_claims = ""  # no pod waits for it
    return acts


def _claim(context: JobContext, acts: Acts) -> None:
    """Name the job's claims, create its own ones, and check whether all exist."""
    job, claims = context.view.job, context.view.claims
    named = volumes.name_claims(job)
    if named is not None:
        acts.marks.append(named)
    acts.ensures.extend(volumes.ensures(job, claims))
    context.without_claims = volumes.trouble(job, claims) or (context.view.claim_refusal if acts.ensures else "")


def _out_of_the_gang(context: JobContext) -> dict[str, int]:
    records, places = context.ledger.tasks, context.roster.places
    out: dict[str, int] = {}
    for name, members in places.items():
        settled = (records[name].done - members.keys()) | records[name].failed
        if name in context.held.waiting:
            settled |= set(range(context.plan.tasks[name].replicas)) - members.keys()
        out[name] = len(settled)
    return out


def _drain(context: JobContext) -> Acts:
    acts = Acts(killed=kill.doomed(context.roster, context.ledger))
    if context.ledger.restarting_job:
        acts.deletes.extend(_delete_group(context))
    return acts


def kill_pods(context: JobContext, retain: Retain) -> Acts:
    """Delete every pod except the retained ones, and the PodGroup."""
    acts = Acts(killed=kill.whole_job(context.roster, retain=retain))
    acts.deletes.extend(_delete_group(context))
    return acts


def tidy(context: JobContext, acts: Acts, counts: Counts, phase: JobPhase) -> None:
    """Delete the plugins' objects together with the last pod: until then it may still need the names of the others."""
    if phase is not JobPhase.RESTARTING and context.ledger.restarting_job:
        context.ledger.restarting_job = False
    if phase not in LIVE and counts.alive == 0:
        acts.deletes.extend(children.deletes(context.view, context.plugins))


def _delete_group(context: JobContext) -> Iterable[Delete]:
    group = context.view.pod_group
    if group is not None and not group.metadata.deletion_timestamp:
        yield Delete(ref=ref_of(PODGROUPS, group))
