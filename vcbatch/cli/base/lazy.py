"""Command groups that import a command when it is called, so that no command pays for the imports of others."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click

from vcbatch.cli.base.early_options import defaults, early_options, taken

Commands = Mapping[str, tuple[str, str]]
"""Name -> (`module` or `module:attribute`, one line of help). The default attribute is `command`. The help text is here
so that `--help` of the group imports no command."""


class LazyGroup(click.Group):
    """A group whose commands are listed in the given order. The options for the server may also be typed before a
    command; a group with sections, which is the program itself, lists them in its help."""

    def __init__(
        self, *args: object, commands_at: Commands, sections: Mapping[str, str] | None = None, **kwargs: object
    ) -> None:
        """`sections`: command name -> title of the section that begins with this command in the list."""
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.params += early_options(hidden=sections is None)
        self._at = commands_at
        self._sections = sections or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        known = self._at.get(cmd_name)
        if known is None:
            return None
        module, _, attribute = known[0].partition(":")
        return getattr(importlib.import_module(module), attribute or "command")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed: dict[str, list[tuple[str, str]]] = {}
        title, width = "Commands", max(map(len, self._at))
        for name, (_, text) in self._at.items():
            title = self._sections.get(name, title)
            listed.setdefault(title, []).append((name.ljust(width), text))
        for title, rows in listed.items():
            with formatter.section(title):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        given = taken(ctx)
        try:
            name, command, rest = super().resolve_command(ctx, args)
        except click.UsageError as error:
            if args[0].startswith("-"):
                raise  # an option of a command
            message, meant = f'unknown command "{args[0]}" for "{ctx.command_path}"', self.meant_by(args[0], ctx)
            if meant:
                message += f"\n\nDid you mean this?\n  {ctx.command_path} {meant}"
            raise click.UsageError(message, ctx=error.ctx) from None
        if given and name is not None and command is not None:
            ctx.default_map = {name: defaults(ctx, command, given)}
        return name, command, rest

    def meant_by(self, word: str, ctx: click.Context) -> str:
        """The command with the most similar name; empty where none is similar."""
        from vcbatch.api.spelling import nearest

        return nearest(word, self.list_commands(ctx))
