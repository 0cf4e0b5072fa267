"""`vcbatch job`: what people do with jobs."""

from __future__ import annotations

import click

from vcbatch.cli.lazy import Commands, LazyGroup

_COMMANDS: Commands = {
    "list": ("vcbatch.cli.resources.job.listing:listing", "List jobs."),
    "get": ("vcbatch.cli.resources.job.listing:getting", "Show jobs by name."),
    "explain": ("vcbatch.cli.resources.job.explain", "Say why a job waits, and what would let it start."),
    "describe": ("vcbatch.cli.resources.job.describe", "Show all that is known of one job."),
    "top": ("vcbatch.cli.resources.job.top", "Show what jobs ask for and use."),
    "suspend": ("vcbatch.cli.resources.job.actions:suspend", "Stop jobs until they are resumed."),
    "resume": ("vcbatch.cli.resources.job.actions:resume", "Let suspended jobs go on."),
    "requeue": ("vcbatch.cli.resources.job.requeue", "Put a job back to the end of its queue, or run it again."),
    "move": ("vcbatch.cli.resources.job.move", "Move a waiting job to another queue."),
    "delete": ("vcbatch.cli.resources.job.actions:delete", "Delete jobs with their pods."),
    "cancel": ("vcbatch.cli.run.cancel", "End jobs, and keep what is known of them."),
    "exec": ("vcbatch.cli.exec.command", "Run a command in a pod of a job."),
    "logs": ("vcbatch.cli.logs.command", "Show what the pods of a job print."),
}


@click.group("job", cls=LazyGroup, commands_at=_COMMANDS)
def command() -> None:
    """Show and steer jobs."""
