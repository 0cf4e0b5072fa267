"""`vcbatch queue`: what people do with queues."""

from __future__ import annotations

import click

from vcbatch.cli.lazy import Commands, LazyGroup

_COMMANDS: Commands = {
    "list": ("vcbatch.cli.resources.lists:queues", "List queues."),
    "get": ("vcbatch.cli.resources.lists:queue", "Show queues by name."),
    "tree": ("vcbatch.cli.resources.queue.tree", "Show who holds how much, as bars."),
}


@click.group("queue", cls=LazyGroup, commands_at=_COMMANDS)
def command() -> None:
    """Show and steer queues."""
