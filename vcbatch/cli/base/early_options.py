"""Options for the server that are typed before the subcommand, as kubectl accepts them: `vcbatch -n team job list`.

They become the defaults of the same options of the subcommand, so that one typed after it wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

_SERVER: Final = ("kubeconfig", "context")


def _namespaces(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    from vcbatch.cli.base.names import namespace_names

    return [CompletionItem(name) for name in namespace_names(ctx, param, incomplete)]


def early_options(*, hidden: bool) -> list[click.Option]:
    """`--kubeconfig`, `--context` and `--namespace` of a group. `hidden`: without a line in its help."""
    return [
        click.Option(
            ["--kubeconfig"],
            metavar="FILE",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Kubeconfig file, for any command.",
            hidden=hidden,
        ),
        click.Option(["--context"], metavar="NAME", help="Kubeconfig context, for any command.", hidden=hidden),
        click.Option(
            ["-n", "--namespace"],
            metavar="NAME",
            help="Namespace, for any command.",
            shell_complete=_namespaces,
            hidden=hidden,
        ),
    ]


def taken(ctx: click.Context) -> dict[str, Any]:
    """Remove the options from the parameters of the group, and return those that were given to it or before it."""
    found = {name: ctx.params.pop(name, None) for name in (*_SERVER, "namespace")}
    return {name: value for name, value in found.items() if value is not None}


def defaults(ctx: click.Context, command: click.Command, given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` as click's `default_map` of the command. A cluster-wide command ignores the namespace, as in kubectl.
    Raises `click.UsageError` for an option that the command doesn't have."""
    if isinstance(command, click.Group):
        own = {param.name for param in command.params}
        if own.issuperset(_SERVER):
            return dict(given)  # passed on once its subcommand is known
        return {name: defaults(ctx, each, given) for name, each in command.commands.items()}
    options = {flag: str(param.name) for param in command.params for flag in param.opts}
    found: dict[str, Any] = {}
    for name, value in given.items():
        flag = f"--{name}"
        if flag in options:
            found[options[flag]] = value
        elif name != "namespace" or "--context" not in options:
            raise click.NoSuchOption(flag, message=f"{ctx.command_path} {command.name} has no option {flag}", ctx=ctx)
    return found
