"""Options that several commands share."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from vcbatch.api.flags import parse_bool
from vcbatch.cli.base.follow_up import with_options
from vcbatch.cli.base.output import CliError
from vcbatch.cli.base.state import default_state_dir

if TYPE_CHECKING:
    from vcbatch.runtime.serving import Address

F = TypeVar("F", bound=Callable[..., object])

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
"""The values of `--log-level`."""


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


class NodeSizeType(click.ParamType):
    """The capacity of a node: `cpu=8,memory=32Gi,nvidia.com/gpu=2`, quantities by resource name; 0 for none."""

    name = "RESOURCES"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str]:
        from vcbatch.api.name_rules import qualified_name
        from vcbatch.api.quantity import NANO, MalformedQuantity, parse_quantity

        if isinstance(value, dict):
            return cast("dict[str, str]", value)
        found: dict[str, str] = {}
        for one in str(value).split(","):
            name, equals, text = (part.strip() for part in one.partition("="))
            try:
                quantity = parse_quantity(text).nano
            except MalformedQuantity as error:
                self.fail(f"{one!r}: {error}" if equals else f"must be NAME=QUANTITY, got {one!r}", param, ctx)
            if name not in _NODE_RESOURCES and ("/" not in name or qualified_name(name)):
                known = ", ".join(_NODE_RESOURCES)
                self.fail(
                    f"unknown node resource {name!r}: must be {known} or an extended resource (e.g. nvidia.com/gpu)",
                    param,
                    ctx,
                )
            if name in found:
                self.fail(f"duplicate resource {name}", param, ctx)
            if quantity < 0 or (name in _NEEDED and quantity == 0):
                self.fail(f"{one!r}: must be {'positive' if name in _NEEDED else 'zero or more'}", param, ctx)
            if name != "cpu" and quantity % NANO:
                self.fail(f"{one!r}: must be a whole number", param, ctx)
            found[name] = text
        return found


DEFAULT_SIZE = "cpu=96,memory=768Gi,nvidia.com/gpu=8,pods=110,ephemeral-storage=2Ti"
"""The capacity of a virtual node: a typical training server."""

_NEEDED = ("cpu", "memory", "pods")
_NODE_RESOURCES = (*_NEEDED, "ephemeral-storage")


class RetentionType(click.ParamType):
    """A time with units up to days, such as `12h` or `7d`; 0 for none."""

    name = "TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        found = re.fullmatch(r"(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,8})m)?(?:(\d{1,9})s)?|0", str(value), re.ASCII)
        if not value or found is None:
            self.fail(f"invalid duration {value!r} (e.g. 12h or 7d; 0 for none)", param, ctx)
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


class BytesType(click.ParamType):
    """A number of bytes as a quantity, such as `500Mi` or `1Gi`."""

    name = "QUANTITY"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from vcbatch.api.quantity import MalformedQuantity, parse_quantity

        try:
            size = value if isinstance(value, int) else parse_quantity(str(value)).value()
        except MalformedQuantity as error:
            self.fail(f"{value!r}: {error}", param, ctx)
        if size <= 0:
            self.fail(f"{value!r}: must be positive", param, ctx)
        return size


class BoolType(click.ParamType):
    """A boolean in the forms that Go's flags accept."""

    name = "true|false"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        said = value if isinstance(value, bool) else parse_bool(str(value))
        if said is None:
            self.fail(f"must be true or false, got {value!r}", param, ctx)
        return said


def bool_option(name: str, text: str) -> Callable[[F], F]:
    """An option that is on unless it is switched off by `NAME=false`."""
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
    """Give a command `--state-dir`. Commands that its messages suggest get the option as well, unless it is the
    default."""

    @functools.wraps(function)
    def command(*arguments: Any, state_dir: Path, **others: Any) -> object:
        try:
            return function(*arguments, state_dir=state_dir, **others)
        except CliError as error:
            chosen = state_dir if state_dir != default_state_dir() else None
            error.hint = with_options(error.hint, state_dir=chosen)
            raise

    return click.option(
        "--state-dir",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        default=default_state_dir,
        help="State directory of the local server.  [default: $XDG_STATE_HOME/vcbatch or ~/.local/state/vcbatch]",
    )(cast("F", command))
