"""`vcbatch jobflow`: jobs in the order of a graph."""

from __future__ import annotations

import click

from vcbatch.cli.lazy import Commands, LazyGroup

_COMMANDS: Commands = {
    "list": ("vcbatch.cli.resources.lists:jobflows", "List flows."),
    "get": ("vcbatch.cli.resources.lists:jobflow", "Show flows by name."),
    "describe": ("vcbatch.cli.resources.flow.describe", "Show all that is known of one flow."),
    "graph": ("vcbatch.cli.resources.flow.graph", "Show which job comes after which."),
    "suspend": ("vcbatch.cli.resources.flow.actions:suspend", "Make nothing, and hold the jobs, until it is resumed."),
    "resume": ("vcbatch.cli.resources.flow.actions:resume", "Let suspended flows go on."),
    "retry": ("vcbatch.cli.resources.flow.actions:retry", "Make the jobs anew that failed."),
    "cancel": ("vcbatch.cli.resources.flow.actions:cancel", "End all jobs of flows."),
}


@click.group("jobflow", cls=LazyGroup, commands_at=_COMMANDS)
def command() -> None:
    """Show and steer flows of jobs."""
