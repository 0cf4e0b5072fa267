"""`vcbatch job`: what people do with jobs."""

from __future__ import annotations

import click

from vcbatch.cli.lazy import Commands, LazyGroup

_COMMANDS: Commands = {
    "list": ("vcbatch.cli.resources.job.listing:listing", "List jobs."),
    "get": ("vcbatch.cli.resources.job.listing:getting", "Show jobs by name."),
    "explain": ("vcbatch.cli.resources.job.explain", "Say why a job waits, and what would let it start."),
    "describe": ("vcbatch.cli.resources.job.describe", "Show all that is known of one job."),
    "logs": ("vcbatch.cli.logs.command", "Show what the pods of a job print."),
}


@click.group("job", cls=LazyGroup, commands_at=_COMMANDS)
def command() -> None:
    """Show and steer jobs."""
