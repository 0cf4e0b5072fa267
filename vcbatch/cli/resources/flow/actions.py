"""`vcbatch jobflow suspend|resume|retry|cancel`: actions that a Command requests from the flow's controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from vcbatch.api.phases import Action, JobFlowPhase
from vcbatch.api.resources import JOBFLOWS
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.bus import request
from vcbatch.cli.base.fields import dig
from vcbatch.cli.base.names import flow_names
from vcbatch.cli.base.output import CliError, say
from vcbatch.cli.base.titles import title
from vcbatch.cli.resources.kinds import flow_phase
from vcbatch.core.jobflow.states import cell_of
from vcbatch.interfaces.api import Api

Json = dict[str, Any]


def _names(function: Any) -> Any:
    return click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=flow_names)(function)


@click.command("suspend")
@_names
@access_options
def suspend(names: Sequence[str], access: Access) -> int:
    """Suspend job flows and their jobs. No jobs are created until the flows are resumed."""
    return _ask(access, names, Action.ABORT_JOB, "suspended")


@click.command("resume")
@_names
@access_options
def resume(names: Sequence[str], access: Access) -> int:
    """Resume suspended job flows and their jobs."""
    return _ask(access, names, Action.RESUME_JOB, "resumed")


@click.command("retry")
@_names
@access_options
def retry(names: Sequence[str], access: Access) -> int:
    """Recreate the failed and terminated jobs of failed job flows from the current templates. Completed jobs are
    kept."""
    return _ask(access, names, Action.RESTART_JOB, "retried")


@click.command("cancel")
@_names
@access_options
def cancel(names: Sequence[str], access: Access) -> int:
    """Cancel all jobs of job flows. The jobs and their status are kept."""
    return _ask(access, names, Action.TERMINATE_JOB, "cancelled")


def _ask(access: Access, names: Sequence[str], action: Action, done: str) -> int:
    async def work(api: Api, name: str) -> None:
        flow = await api.get(JOBFLOWS, name, namespace=access.namespace)
        if action is Action.ABORT_JOB and _suspended(flow):
            say(f"{title(JOBFLOWS, name)} already suspended")
            return
        _refuse_in_vain(flow, name, action, done)
        await request(api, JOBFLOWS, name, action, namespace=access.namespace, at=access.namespace)
        say(f"{title(JOBFLOWS, name)} {done}")

    return access.each(names, work)


def _refuse_in_vain(flow: Json, name: str, action: Action, done: str) -> None:
    """Raise `CliError` for an action that the controller would reject."""
    phase = flow_phase(flow)
    if any(phase == known and cell_of(known, action) is None for known in JobFlowPhase):
        if action is Action.RESTART_JOB:
            raise CliError(f"jobflow {name} is {phase}; only failed flows can be retried")
        hint = f"To retry it: `vcbatch jobflow retry {name}`" if phase == JobFlowPhase.FAILED else ""
        raise CliError(f"jobflow {name} is {phase} and can't be {done}", hint=hint)
    if action is Action.RESUME_JOB and not _suspended(flow):
        raise CliError(f"jobflow {name} is {phase}, not suspended")


def _suspended(flow: Json) -> bool:
    return dig(flow, "status", "ledger", "suspended") is True
