"""`vcbatch completion`: the shell script that completes vcbatch's commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from vcbatch.cli.base.output import say

_PROGRAM = "vcbatch"
_VARIABLE = "_VCBATCH_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> int:
    """Print a shell completion script for commands, options and object names.

    \b
    bash:  source <(vcbatch completion bash)                                  in ~/.bashrc
    zsh:   source <(vcbatch completion zsh)                                   in ~/.zshrc
    fish:  vcbatch completion fish > ~/.config/fish/completions/vcbatch.fish  once

    For `kubectl vcbatch`, use the completion of kubectl.
    """
    of = get_completion_class(shell)
    assert of is not None  # noqa: S101 - click has these three
    # Rendered from the template alone: `source` would first run bash for its version.
    complete = of(ctx.find_root().command, {}, _PROGRAM, _VARIABLE)
    say(complete.source_template % complete.source_vars())
    return 0
