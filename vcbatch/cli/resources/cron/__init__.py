"""`vcbatch cronjob`: jobs on a schedule."""

from __future__ import annotations

import click

from vcbatch.cli.lazy import Commands, LazyGroup

_COMMANDS: Commands = {
    "list": ("vcbatch.cli.resources.lists:cronjobs", "List schedules."),
    "get": ("vcbatch.cli.resources.lists:cronjob", "Show schedules by name."),
    "describe": ("vcbatch.cli.resources.cron.describe", "Show all that is known of one schedule."),
    "preview": ("vcbatch.cli.resources.cron.preview", "Say when it starts jobs next."),
    "suspend": ("vcbatch.cli.resources.cron.actions:suspend", "Start nothing until it is resumed."),
    "resume": ("vcbatch.cli.resources.cron.actions:resume", "Start jobs again."),
    "trigger": ("vcbatch.cli.resources.cron.actions:trigger", "Start a job of it now."),
}


@click.group("cronjob", cls=LazyGroup, commands_at=_COMMANDS)
def command() -> None:
    """Show and steer jobs on a schedule."""
