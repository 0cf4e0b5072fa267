"""`vcbatch cronjob`: scheduled jobs."""

from __future__ import annotations

import click

from vcbatch.cli.base.lazy import Commands, LazyGroup

_COMMANDS: Commands = {
    "list": ("vcbatch.cli.resources.lists:cronjobs", "List cron jobs."),
    "get": ("vcbatch.cli.resources.lists:cronjob", "Show cron jobs by name."),
    "describe": ("vcbatch.cli.resources.cron.describe", "Show details of a cron job."),
    "preview": ("vcbatch.cli.resources.cron.preview", "Show the next scheduled runs."),
    "suspend": ("vcbatch.cli.resources.cron.actions:suspend", "Suspend cron jobs."),
    "resume": ("vcbatch.cli.resources.cron.actions:resume", "Resume suspended cron jobs."),
    "trigger": ("vcbatch.cli.resources.cron.actions:trigger", "Create a job from a cron job now."),
}


@click.group("cronjob", cls=LazyGroup, commands_at=_COMMANDS)
def command() -> None:
    """Manage cron jobs."""
