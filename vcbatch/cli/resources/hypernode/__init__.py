"""`vcbatch hypernode`: network topology domains."""

from __future__ import annotations

import click

from vcbatch.cli.base.lazy import Commands, LazyGroup

_COMMANDS: Commands = {
    "list": ("vcbatch.cli.resources.lists:hypernodes", "List HyperNodes."),
    "get": ("vcbatch.cli.resources.lists:hypernode", "Show HyperNodes by name."),
    "describe": ("vcbatch.cli.resources.hypernode.describe", "Show details of a HyperNode."),
    "tree": ("vcbatch.cli.resources.hypernode.tree", "Show the topology tree."),
}


@click.group("hypernode", cls=LazyGroup, commands_at=_COMMANDS)
def command() -> None:
    """Inspect network topology (HyperNodes)."""
