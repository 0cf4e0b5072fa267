"""`vcbatch job`: commands for jobs."""

from __future__ import annotations

import click

from vcbatch.cli.base.lazy import Commands, LazyGroup

_COMMANDS: Commands = {
    "list": ("vcbatch.cli.resources.job.listing:listing", "List jobs."),
    "get": ("vcbatch.cli.resources.job.listing:getting", "Show jobs by name."),
    "explain": ("vcbatch.cli.resources.job.explain", "Explain why a job is pending and how to unblock it."),
    "describe": ("vcbatch.cli.resources.job.describe", "Show details of a job."),
    "top": ("vcbatch.cli.resources.job.top", "Show resource requests and usage of jobs."),
    "suspend": ("vcbatch.cli.resources.job.actions:suspend", "Suspend jobs."),
    "resume": ("vcbatch.cli.resources.job.actions:resume", "Resume suspended jobs."),
    "requeue": ("vcbatch.cli.resources.job.requeue", "Move a job to the end of its queue, or resubmit a finished one."),
    "move": ("vcbatch.cli.resources.job.move", "Move a pending job to another queue."),
    "delete": ("vcbatch.cli.resources.job.actions:delete", "Delete jobs and their pods."),
    "cancel": ("vcbatch.cli.run.cancel", "Cancel jobs, keeping their records."),
    "exec": ("vcbatch.cli.exec.command", "Run a command in a pod of a job."),
    "logs": ("vcbatch.cli.logs.command", "Print the logs of a job's pods."),
}


@click.group("job", cls=LazyGroup, commands_at=_COMMANDS)
def command() -> None:
    """Manage jobs."""
