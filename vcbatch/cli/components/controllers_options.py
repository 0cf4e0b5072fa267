"""Options of the controllers that are the same on a cluster and in local mode, and the files that they name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from vcbatch.cli.base.options import bool_option
from vcbatch.cli.base.output import CliError

if TYPE_CHECKING:
    from vcbatch.runtime.configuration.followed_file import FollowedFile

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")


def controllers_options(function: F) -> F:
    """`--inherit-owner-annotations`, a boolean, and `--controller-conf`, a path or None."""
    for option in (
        click.option(
            "--controller-conf",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            default=None,
            metavar="FILE",
            help="Volcano's volcano-controller.conf, which configures HyperNode discovery.  [default: none]",
        ),
        bool_option(
            "--inherit-owner-annotations", "Copy the annotations of a workload to the PodGroup generated for its pods."
        ),
    ):
        function = option(function)
    return function


def followed(path: Path | None, parse: Callable[[Any], T]) -> FollowedFile[T] | None:
    """The file as `parse` reads it, reloaded when it changes; None for no path. Raises `CliError`."""
    if path is None:
        return None
    from vcbatch.runtime.clock import SystemClock
    from vcbatch.runtime.configuration.followed_file import ConfigurationError, FollowedFile

    try:
        return FollowedFile(path, parse, clock=SystemClock())
    except ConfigurationError as error:
        raise CliError(str(error)) from error
