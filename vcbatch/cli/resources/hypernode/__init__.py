"""`vcbatch hypernode`: nodes that are near each other in the network."""

from __future__ import annotations

import click

from vcbatch.cli.lazy import Commands, LazyGroup

_COMMANDS: Commands = {
    "list": ("vcbatch.cli.resources.lists:hypernodes", "List HyperNodes."),
    "get": ("vcbatch.cli.resources.lists:hypernode", "Show HyperNodes by name."),
    "describe": ("vcbatch.cli.resources.hypernode.describe", "Show all that is known of one HyperNode."),
    "tree": ("vcbatch.cli.resources.hypernode.tree", "Show which domains lie in which."),
}


@click.group("hypernode", cls=LazyGroup, commands_at=_COMMANDS)
def command() -> None:
    """Show domains of the network."""
