"""What the verbs of the table do to a job's objects, on paper."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from vcbatch.api.job import Action, JobPhase
from vcbatch.api.phases import QueueState
from vcbatch.api.resources import PODGROUPS
from vcbatch.core.job import children, kill, podgroup, volumes
from vcbatch.core.job.budget import Charge
from vcbatch.core.job.counts import Counts
from vcbatch.core.job.dependencies import held_back
from vcbatch.core.job.picture import Picture, Stimulus
from vcbatch.core.job.plugin_trouble import blocked_by_others
from vcbatch.core.job.roster import Member
from vcbatch.core.job.states import LIVE, Cell, Retain, Verb
from vcbatch.core.job.sync import compare
from vcbatch.core.machine import Create, Delete, Ensure, Mark, ref_of


@dataclass(slots=True, kw_only=True)
class Acts:
    """What a verb does, before it is known which phase follows."""

    marks: list[Mark] = field(default_factory=list[Mark])
    ensures: list[Ensure] = field(default_factory=list[Ensure])
    deletes: list[Delete] = field(default_factory=list[Delete])
    killed: list[Member] = field(default_factory=list[Member])
    missing: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    creates: list[Create] = field(default_factory=list[Create])


def perform(picture: Picture, cell: Cell, stimulus: Stimulus) -> Acts:
    """Carry the cell's verb out; the ledger learns of what it begins or ends."""
    ledger = picture.ledger
    match cell.verb:
        case Verb.SYNC:
            return _sync(picture)
        case Verb.TARGET:
            for part in stimulus.targets:
                ledger.aim(part)
            return _drain(picture)
        case Verb.DRAIN:
            return _drain(picture)
        case Verb.KILL:
            already = picture.phase is JobPhase.RESTARTING and ledger.restarting_job
            if cell.ends_attempt and not (already and stimulus.action is Action.RESTART_JOB):
                ledger.end_attempt()
                ledger.restarting_job = False
                if cell.charge is Charge.RESUME:
                    ledger.begin_resumed()
                elif cell.retain is Retain.NOTHING:
                    ledger.begin_anew()
            return kill_pods(picture, cell.retain)


def _sync(picture: Picture) -> Acts:
    acts = Acts()
    view = picture.view
    picture.held = held_back(picture.plan, picture.roster, picture.ledger)
    if view.queue is None and picture.phase is JobPhase.PENDING:
        return acts
    waits = picture.ledger.not_before is not None
    if waits and view.pod_group is None:
        return acts
    _claim(picture, acts)
    if picture.without_claims and view.pod_group is None:
        return acts
    picture.blocked = blocked_by_others(view.job, view.children, picture.plugins, now=picture.now)
    acts.ensures.extend(children.ensures(view, picture.plugins, blocked=picture.blocked.names))
    if picture.blocked and view.pod_group is None:
        return acts
    group = podgroup.ensure(
        picture.plan,
        view.pod_group,
        view.priority_classes,
        out=_out_of_the_gang(picture),
        closing=view.queue is not None and view.queue.status.state == QueueState.CLOSING,
    )
    if group is not None:
        acts.ensures.append(group)
    if podgroup.lets_create(view.pod_group):
        difference = compare(picture.plan, picture.roster, picture.ledger, held=picture.held.waiting)
        acts.killed, acts.missing = difference.superfluous, {} if waits else difference.missing
    if not acts.missing:
        picture.without_claims = ""  # nobody is kept waiting by it
    return acts


def _claim(picture: Picture, acts: Acts) -> None:
    """Name the job's claims, make those that are its own to make, and see whether all are there."""
    job, claims = picture.view.job, picture.view.claims
    named = volumes.name_claims(job)
    if named is not None:
        acts.marks.append(named)
    acts.ensures.extend(volumes.ensures(job, claims))
    picture.without_claims = volumes.trouble(job, claims) or (picture.view.claim_refusal if acts.ensures else "")


def _out_of_the_gang(picture: Picture) -> dict[str, int]:
    records, places = picture.ledger.tasks, picture.roster.places
    out: dict[str, int] = {}
    for name, members in places.items():
        settled = (records[name].done - members.keys()) | records[name].failed
        if name in picture.held.waiting:
            settled |= set(range(picture.plan.tasks[name].replicas)) - members.keys()
        out[name] = len(settled)
    return out


def _drain(picture: Picture) -> Acts:
    acts = Acts(killed=kill.doomed(picture.roster, picture.ledger))
    if picture.ledger.restarting_job:
        acts.deletes.extend(_delete_group(picture))
    return acts


def kill_pods(picture: Picture, retain: Retain) -> Acts:
    """Every pod but the retained ones is to go, and the PodGroup."""
    acts = Acts(killed=kill.whole_job(picture.roster, retain=retain))
    acts.deletes.extend(_delete_group(picture))
    return acts


def tidy(picture: Picture, acts: Acts, counts: Counts, phase: JobPhase) -> None:
    """The plugins' objects go with the last pod: until then it may still need the names of the others."""
    if phase is not JobPhase.RESTARTING and picture.ledger.restarting_job:
        picture.ledger.restarting_job = False
    if phase not in LIVE and counts.alive == 0:
        acts.deletes.extend(children.deletes(picture.view, picture.plugins))


def _delete_group(picture: Picture) -> Iterable[Delete]:
    group = picture.view.pod_group
    if group is not None and not group.metadata.deletion_timestamp:
        yield Delete(ref=ref_of(PODGROUPS, group))
