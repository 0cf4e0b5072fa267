"""Options for the server that a command connects to and for its request timeout."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from vcbatch.api.duration import parse_nanoseconds
from vcbatch.cli.base.names import namespace_names
from vcbatch.cli.base.output import CliError
from vcbatch.cli.base.reach import NO_LIMIT, Access

__all__ = ["Access", "TimeoutType", "access_options", "cluster_access_options"]

F = TypeVar("F", bound=Callable[..., object])


def access_options(function: F) -> F:
    """Give a command `--kubeconfig`, `--context`, `--namespace` and `--request-timeout`, as its argument `access`."""
    return _with(function, *_CLUSTER, _NAMESPACE, _TIMEOUT)


def cluster_access_options(function: F) -> F:
    """The same options without `--namespace`, for commands about cluster-scoped objects."""
    return _with(function, *_CLUSTER, _TIMEOUT)


def _with(function: F, *options: Callable[[Callable[..., object]], Callable[..., object]]) -> F:
    @functools.wraps(function)
    def command(
        *arguments: Any,
        kubeconfig: Path | None,
        context: str | None,
        request_timeout: timedelta | None,
        namespace: str | None = None,
        **others: Any,
    ) -> object:
        access = Access(
            kubeconfig=kubeconfig, context=context, chosen_namespace=namespace, request_timeout=request_timeout
        )
        try:
            return function(*arguments, access=access, **others)
        except CliError as error:
            error.hint = access.repeat(error.hint)
            raise

    wrapped: Callable[..., object] = command
    for option in reversed(options):
        wrapped = option(wrapped)
    return cast("F", wrapped)


class TimeoutType(click.ParamType):
    """A timeout in kubectl's syntax: a Go duration (`90s`, `2m`) or a number of seconds; 0 is no limit."""

    name = "TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        text = str(value)
        try:
            nanoseconds = int(text) * 10**9 if text.isascii() and text.isdigit() else parse_nanoseconds(text)
            if nanoseconds >= 0:
                return min(timedelta(microseconds=nanoseconds // 1000), NO_LIMIT)
        except (ValueError, OverflowError):
            pass
        raise click.BadParameter(f"invalid duration {text!r} (e.g. 30s, 2m; 0 means no limit)", ctx=ctx, param=param)


_CLUSTER = (
    click.option(
        "--kubeconfig",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Kubeconfig file.  [default: $KUBECONFIG, ~/.kube/config, or the server of `vcbatch up`]",
    ),
    click.option("--context", metavar="NAME", help="Kubeconfig context."),
)
_NAMESPACE = click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    help="Namespace.  [default: from the kubeconfig context]",
    shell_complete=namespace_names,
)
_TIMEOUT = click.option(
    "--request-timeout",
    metavar="TIME",
    type=TimeoutType(),
    help="Timeout of a single request: 30s, 2m, or 0 for no limit.",
)
