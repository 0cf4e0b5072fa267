"""The option `--feature-gates` of Volcano's programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., object])

QUEUE_GATES: Final = "SchedulingGatesQueueAdmission"
"""Whether pods may wait for capacity of their queue behind a scheduling gate."""


def feature_gates_option(function: F) -> F:
    """Adds `--feature-gates`; the command gets a mapping of the gates that are named."""
    return click.option(
        "--feature-gates",
        default="",
        metavar="NAME=BOOL,...",
        callback=_features,
        help=f"Feature gates. Supported: {QUEUE_GATES} (default false).",
    )(function)


def _features(_context: click.Context, _parameter: click.Parameter, value: str) -> Mapping[str, bool]:
    """Feature gates in the syntax of Kubernetes' programs: `Name=true,Other=false`."""
    features: dict[str, bool] = {}
    for pair in filter(None, value.split(",")):
        name, _, said = pair.strip().partition("=")
        if name != QUEUE_GATES or said.lower() not in ("true", "false"):
            raise click.BadParameter(f"must be {QUEUE_GATES}=true or {QUEUE_GATES}=false, got {pair!r}")
        features[name] = said.lower() == "true"
    return features
