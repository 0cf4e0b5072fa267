"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from vcbatch.cli.state import default_state_dir

F = TypeVar("F", bound=Callable[..., object])


def state_dir_option(function: F) -> F:
    return click.option(
        "--state-dir",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        default=default_state_dir,
        show_default="$XDG_STATE_HOME/vcbatch, or ~/.local/state/vcbatch",
        help="Where everything is kept; one server per directory.",
    )(function)
