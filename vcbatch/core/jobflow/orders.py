"""The Commands of a flow to its jobs: they are suspended, resumed or terminated with it.

A Command is created while a job isn't in the desired state, under a name that follows from the job and the action, so
that it exists at most once. A Command that isn't needed any more is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from vcbatch.api import names
from vcbatch.api.command import Command
from vcbatch.api.job import Action, JobPhase
from vcbatch.api.jobflow import JobFlow, JobFlowLedger, JobFlowPhase
from vcbatch.api.resources import COMMANDS, JOBS
from vcbatch.core.jobflow.child import Child
from vcbatch.core.machine import Create, Delete, Json, ref_of

_ACTIONS: Final = (Action.ABORT_JOB, Action.RESUME_JOB, Action.TERMINATE_JOB)
_LIVE: Final = frozenset({JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING})
_SUSPENDED: Final = frozenset({JobPhase.ABORTING, JobPhase.ABORTED})
_ENDING: Final = frozenset({JobPhase.ABORTING, JobPhase.COMPLETING, JobPhase.TERMINATING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """`aborted`: the next value of the ledger's entry. `open`: the number of jobs that aren't yet in the desired
    state."""

    creates: tuple[Create, ...]
    deletes: tuple[Delete, ...]
    aborted: tuple[str, ...]
    open: int


def orders_of(
    flow: JobFlow,
    ledger: JobFlowLedger,
    phase: JobFlowPhase,
    jobs: Iterable[Child],
    there: Mapping[str, Sequence[Command]],
) -> Orders:
    """`there`: the Commands to each job that aren't executed yet, from any client, by the job's UID."""
    creates: list[Create] = []
    deletes: list[Delete] = []
    aborted: list[str] = []
    still_open = 0
    for job in jobs:
        sent = _sent(job, there.get(job.uid, ()))
        wanted = _wanted(ledger, phase, job)
        if wanted is Action.ABORT_JOB or (job.uid in ledger.aborted and (sent or job.phase in _SUSPENDED)):
            aborted.append(job.uid)
        if wanted is not None and wanted not in sent:
            creates.append(Create(resource=COMMANDS, body=_command(flow, job, wanted)))
        deletes += [_delete(command) for action, command in sent.items() if action is not wanted]
        still_open += wanted is not None or bool(sent) or job.phase in _ENDING
    return Orders(creates=tuple(creates), deletes=tuple(deletes), aborted=tuple(aborted), open=still_open)


def _sent(job: Child, commands: Sequence[Command]) -> dict[Action, Command]:
    """The flow's own Commands, which are identified by their names."""
    if not commands:
        return {}
    by_name = {names.flow_order_name(job.name, job.uid, action): action for action in _ACTIONS}
    return {by_name[command.name]: command for command in commands if command.name in by_name}


def _wanted(ledger: JobFlowLedger, phase: JobFlowPhase, job: Child) -> Action | None:
    if job.deleting:
        return None
    if phase is JobFlowPhase.TERMINATING:
        return Action.TERMINATE_JOB if job.phase in _LIVE else None
    if phase not in (JobFlowPhase.PENDING, JobFlowPhase.RUNNING):
        return None
    if ledger.suspended:
        return Action.ABORT_JOB if job.phase in _LIVE else None
    return Action.RESUME_JOB if job.uid in ledger.aborted and job.phase in _SUSPENDED else None


def _command(flow: JobFlow, job: Child, action: Action) -> Json:
    target = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": job.name, "uid": job.uid}
    return {
        "apiVersion": COMMANDS.api_version,
        "kind": COMMANDS.kind,
        "metadata": {
            "name": names.flow_order_name(job.name, job.uid, action),
            "namespace": flow.namespace,
            "ownerReferences": [{**target, "controller": True}],
        },
        "action": str(action),
        "target": target,
        "message": f"as JobFlow {flow.name} was asked",
    }


def _delete(command: Command) -> Delete:
    ref = ref_of(COMMANDS, command)
    return Delete(ref=ref)
