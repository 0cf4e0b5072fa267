"""`vcbatch queue`: what people do with queues."""

from __future__ import annotations

import click

from vcbatch.cli.lazy import Commands, LazyGroup

_COMMANDS: Commands = {
    "list": ("vcbatch.cli.resources.lists:queues", "List queues."),
    "get": ("vcbatch.cli.resources.lists:queue", "Show queues by name."),
    "describe": ("vcbatch.cli.resources.queue.describe", "Show all that is known of one queue."),
    "tree": ("vcbatch.cli.resources.queue.tree", "Show who holds how much, as bars."),
    "open": ("vcbatch.cli.resources.queue.actions:open_", "Let queues take jobs."),
    "close": ("vcbatch.cli.resources.queue.actions:close", "Let queues take no more jobs."),
    "create": ("vcbatch.cli.resources.queue.actions:create", "Make a queue."),
    "delete": ("vcbatch.cli.resources.queue.delete:delete", "Delete queues that nothing is in, or drain them first."),
}


@click.group("queue", cls=LazyGroup, commands_at=_COMMANDS)
def command() -> None:
    """Show and steer queues."""
