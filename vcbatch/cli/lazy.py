"""Groups of commands that are imported when they are called, so that none pays for the others."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click

Commands = Mapping[str, tuple[str, str]]
"""Name -> (`module` or `module:attribute`, one line of help). The attribute is `command` where none is named; the help
is here so that `--help` of the group imports nothing."""


class LazyGroup(click.Group):
    """A group whose commands are named, in the order in which they are listed."""

    def __init__(self, *args: object, commands_at: Commands, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._at = commands_at

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        known = self._at.get(cmd_name)
        if known is None:
            return None
        module, _, attribute = known[0].partition(":")
        return getattr(importlib.import_module(module), attribute or "command")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._at.items()])
