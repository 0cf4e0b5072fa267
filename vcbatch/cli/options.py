"""Options that several commands share."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from vcbatch.api.flags import parse_bool
from vcbatch.cli.state import default_state_dir

if TYPE_CHECKING:
    from vcbatch.runtime.serving import Address

F = TypeVar("F", bound=Callable[..., object])

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
"""What `--log-level` takes."""


class AddressType(click.ParamType):
    """`HOST:PORT` as a `vcbatch.runtime.serving.Address`."""

    name = "HOST:PORT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Address | None:
        from vcbatch.runtime.serving import Address, AddressError

        if isinstance(value, Address):
            return value
        try:
            return Address.parse(str(value))
        except AddressError as error:
            self.fail(str(error), param, ctx)


class BoolType(click.ParamType):
    """A boolean as Go's programs take it."""

    name = "true|false"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        said = value if isinstance(value, bool) else parse_bool(str(value))
        if said is None:
            self.fail(f"{value!r} is neither true nor false", param, ctx)
        return said


def bool_option(name: str, text: str) -> Callable[[F], F]:
    """An option that is on unless it is switched off, as `NAME=false`."""
    return click.option(
        name,
        type=BoolType(),
        is_flag=False,
        flag_value="true",
        default="true",
        show_default=True,
        metavar="[=true|false]",
        help=text,
    )


def state_dir_option(function: F) -> F:
    return click.option(
        "--state-dir",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        default=default_state_dir,
        show_default="$XDG_STATE_HOME/vcbatch, or ~/.local/state/vcbatch",
        help="Where everything is kept; one server per directory.",
    )(function)
