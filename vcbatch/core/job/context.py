"""The view of a job, sorted once for a reconciliation, with the ledger that the reconciliation updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from vcbatch.api.job import Action, Job, JobPhase
from vcbatch.core.job.budget import LONGEST_WAIT
from vcbatch.core.job.dependencies import Held
from vcbatch.core.job.ledger import Ledger, Loss, Part, read_ledger
from vcbatch.core.job.plan import Plan, plan_of
from vcbatch.core.job.plugin_trouble import NOTHING_BLOCKED, Blocked
from vcbatch.core.job.plugins import PluginSet, load
from vcbatch.core.job.roster import Roster, roster_of
from vcbatch.core.job.start import Hold, hold_of, see, waits_for_others
from vcbatch.core.job.view import JobView

_PHASES: Final[Mapping[str, JobPhase]] = {str(phase): phase for phase in JobPhase}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stimulus:
    """The action of this reconciliation and its cause. `reported`: an event is emitted even when nothing changes, since
    a user requested the action."""

    action: Action
    cause: str = ""
    reason: str = ""
    infrastructure: bool = False
    targets: tuple[Part, ...] = ()
    reported: bool = False


@dataclass(slots=True, kw_only=True)
class JobContext:
    """Everything that the decision reads. Only `ledger`, `losses`, `held`, `without_claims`, `blocked` and
    `plugin_errors` change during the decision."""

    view: JobView
    now: datetime
    plan: Plan
    roster: Roster
    ledger: Ledger
    plugins: PluginSet
    phase: JobPhase
    fresh: bool
    """The job has no phase yet, and never had one."""
    hold: Hold | None = None
    """Why the job may not start yet."""
    losses: list[Loss] = field(default_factory=list[Loss])
    held: Held = field(default_factory=Held)
    """The tasks that wait for others; set by a sync."""
    plugin_errors: list[str] = field(default_factory=list[str])
    """Why plugins left tasks without pods in this reconciliation."""
    without_claims: str = ""
    """Why wanted pods can't use the job's volumes; set by a sync."""
    blocked: Blocked = NOTHING_BLOCKED
    """The plugins' objects that can't be created; set by a sync."""

    @property
    def held_pending(self) -> bool:
        """Whether the job is Pending and may not start yet."""
        return self.hold is not None and self.phase is JobPhase.PENDING


def job_context(view: JobView, now: datetime) -> JobContext:
    """Sort the view. Where a user suspended the job through its status, the attempt ends."""
    plan = plan_of(view.job)
    context = JobContext(
        view=view,
        now=now,
        plan=plan,
        roster=roster_of(plan, view.pods),
        ledger=read_ledger(plan),
        plugins=load(plan),
        phase=_phase_of(view.job),
        fresh=not (view.job.status.state.phase or view.job.status.conditions),
    )
    _hold(context)
    context.ledger.drop_met_targets(context.roster)
    context.ledger.end_wait(now, longest=LONGEST_WAIT)
    if suspended_by_hand(view.job):
        context.ledger.end_attempt()
    return context


def _hold(context: JobContext) -> None:
    """Record what is seen of the jobs that this one depends on, and find out whether it may start. A job that has a
    PodGroup or pods started before it got these conditions."""
    view, ledger = context.view, context.ledger
    if not waits_for_others(view.job):
        return
    ledger.dependencies = see(view.job, ledger.dependencies, view.others, now=context.now)
    if view.pod_group is None and next(iter(context.roster.all()), None) is None:
        context.hold = hold_of(view.job, ledger.dependencies, view.others, now=context.now)


_SUSPENDABLE = frozenset({JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING, JobPhase.ABORTING, JobPhase.ABORTED})


def _logged_phase(job: Job) -> str:
    """The phase that the controller itself wrote last."""
    return job.status.conditions[-1].status if job.status.conditions else ""


def _phase_of(job: Job) -> JobPhase:
    """The phase that the controller wrote last. A phase that another client wrote is replaced, except for Aborted: it
    suspends a job, as AbortJob would, in the phases in which AbortJob is possible."""
    phase = job.phase
    logged = _PHASES.get(_logged_phase(job), phase)
    return JobPhase.ABORTED if phase is JobPhase.ABORTED and logged in _SUSPENDABLE else logged


def suspended_by_hand(job: Job) -> bool:
    """Whether a client wrote the phase Aborted into the status, as torchx does to cancel a job."""
    return _phase_of(job) is JobPhase.ABORTED and _logged_phase(job) != JobPhase.ABORTED
