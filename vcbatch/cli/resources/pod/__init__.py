"""`vcbatch pod`: the pods of jobs."""

from __future__ import annotations

import click

from vcbatch.cli.base.lazy import Commands, LazyGroup

_COMMANDS: Commands = {
    "list": ("vcbatch.cli.resources.pod.listing:listing", "List the pods of jobs."),
    "get": ("vcbatch.cli.resources.lists:pod", "Show pods by name."),
    "describe": ("vcbatch.cli.resources.pod.describe", "Show details of a pod."),
}


@click.group("pod", cls=LazyGroup, commands_at=_COMMANDS)
def command() -> None:
    """Show the pods of jobs."""
