"""`vcbatch cronjob`: jobs on a schedule."""

from __future__ import annotations

import click

from vcbatch.cli.lazy import Commands, LazyGroup

_COMMANDS: Commands = {
    "list": ("vcbatch.cli.resources.lists:cronjobs", "List schedules."),
    "get": ("vcbatch.cli.resources.lists:cronjob", "Show schedules by name."),
}


@click.group("cronjob", cls=LazyGroup, commands_at=_COMMANDS)
def command() -> None:
    """Show and steer jobs on a schedule."""
