"""`vcbatch jobtemplate`: the templates of jobs in flows."""

from __future__ import annotations

import click

from vcbatch.cli.base.lazy import Commands, LazyGroup

_COMMANDS: Commands = {
    "list": ("vcbatch.cli.resources.lists:jobtemplates", "List job templates."),
    "get": ("vcbatch.cli.resources.lists:jobtemplate", "Show job templates by name."),
    "describe": ("vcbatch.cli.resources.template.describe", "Show details of a job template."),
}


@click.group("jobtemplate", cls=LazyGroup, commands_at=_COMMANDS)
def command() -> None:
    """Show job templates."""
