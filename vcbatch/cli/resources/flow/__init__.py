"""`vcbatch jobflow`: graphs of jobs."""

from __future__ import annotations

import click

from vcbatch.cli.base.lazy import Commands, LazyGroup

_COMMANDS: Commands = {
    "list": ("vcbatch.cli.resources.lists:jobflows", "List job flows."),
    "get": ("vcbatch.cli.resources.lists:jobflow", "Show job flows by name."),
    "describe": ("vcbatch.cli.resources.flow.describe", "Show details of a job flow."),
    "graph": ("vcbatch.cli.resources.flow.graph", "Show the dependency graph of a job flow."),
    "suspend": ("vcbatch.cli.resources.flow.actions:suspend", "Suspend job flows and their jobs."),
    "resume": ("vcbatch.cli.resources.flow.actions:resume", "Resume suspended job flows."),
    "retry": ("vcbatch.cli.resources.flow.actions:retry", "Recreate the failed jobs of job flows."),
    "cancel": ("vcbatch.cli.resources.flow.actions:cancel", "Cancel all jobs of job flows."),
}


@click.group("jobflow", cls=LazyGroup, commands_at=_COMMANDS)
def command() -> None:
    """Manage job flows."""
