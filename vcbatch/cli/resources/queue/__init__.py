"""`vcbatch queue`: commands for queues."""

from __future__ import annotations

import click

from vcbatch.cli.base.lazy import Commands, LazyGroup

_COMMANDS: Commands = {
    "list": ("vcbatch.cli.resources.lists:queues", "List queues."),
    "get": ("vcbatch.cli.resources.lists:queue", "Show queues by name."),
    "describe": ("vcbatch.cli.resources.queue.describe", "Show details of a queue."),
    "tree": ("vcbatch.cli.resources.queue.tree", "Show the queue hierarchy with resource usage."),
    "open": ("vcbatch.cli.resources.queue.actions:open_", "Open queues for new jobs."),
    "close": ("vcbatch.cli.resources.queue.actions:close", "Close queues for new jobs."),
    "create": ("vcbatch.cli.resources.queue.actions:create", "Create a queue."),
    "delete": ("vcbatch.cli.resources.queue.delete:delete", "Delete empty queues, or drain and delete them."),
}


@click.group("queue", cls=LazyGroup, commands_at=_COMMANDS)
def command() -> None:
    """Manage queues."""
