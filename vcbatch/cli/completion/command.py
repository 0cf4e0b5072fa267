"""`vcbatch completion`: the shell script that completes vcbatch's commands, and its installation."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from vcbatch.cli.base.output import say

_PROGRAM = "vcbatch"
_VARIABLE = "_VCBATCH_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")


@click.group("completion")
def command() -> None:
    """Complete commands, options and object names in a shell.

    \b
    vcbatch completion install   adds it to the start-up file of your shell
    vcbatch completion bash      prints the script for bash

    For `kubectl vcbatch`, use the completion of kubectl.
    """


@command.command("install")
@click.argument("shell", type=click.Choice(_SHELLS), required=False)
def install(shell: str | None) -> int:
    """Enable completion in SHELL (default: the shell of $SHELL).

    Adds a block to ~/.bashrc or ~/.zshrc, or writes a file in ~/.config/fish/conf.d. A block that is there already is
    replaced.
    """
    from vcbatch.cli.completion.install import install, shell_in_use

    file, changed = install(shell or shell_in_use())
    say(f"{file} changed; open a new shell to use it" if changed else f"{file} unchanged; completion is installed")
    return 0


def _printing(shell: str) -> click.Command:
    @click.command(shell, help=f"Print the completion script for {shell}.")
    @click.pass_context
    def printing(ctx: click.Context) -> int:
        of = get_completion_class(shell)
        assert of is not None  # noqa: S101 - click has these three
        # Rendered from the template alone: `source` would first run bash for its version.
        complete = of(ctx.find_root().command, {}, _PROGRAM, _VARIABLE)
        say(complete.source_template % complete.source_vars())
        return 0

    return printing


for _shell in _SHELLS:
    command.add_command(_printing(_shell))
