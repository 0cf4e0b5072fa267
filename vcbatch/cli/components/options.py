"""The options of all cluster components, under the names of Volcano's flags."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from vcbatch.api.duration import MalformedDuration, parse_duration
from vcbatch.api.names import COMPONENTS_NAMESPACE
from vcbatch.cli.base.options import LEVELS, AddressType, bool_option
from vcbatch.cli.components.tracing import tracing_option
from vcbatch.runtime.leader.lease import LeaseConfig
from vcbatch.runtime.serving import Address

F = TypeVar("F", bound=Callable[..., object])


class DurationType(click.ParamType):
    """A positive duration in Go's syntax (`1s`, `1m30s`) or in plain seconds. The value is in seconds."""

    name = "DURATION"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        seconds = _seconds(str(value))
        if seconds is None:
            self.fail(f"invalid duration {value!r} (e.g. 1s, 500ms, 1m30s, or seconds)", param, ctx)
        if seconds <= 0:
            self.fail(f"invalid duration {value!r}: must be greater than zero", param, ctx)
        return seconds


def _seconds(text: str) -> float | None:
    try:
        return parse_duration(text).total_seconds()
    except MalformedDuration:
        pass
    try:
        plain = float(text)
    except ValueError:
        return None
    return plain if math.isfinite(plain) and "_" not in text else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentOptions:
    """The options of `component_options`; durations in seconds. Without leader election every replica works."""

    kubeconfig: Path | None = None
    context: str | None = None
    leader_elect: bool = False
    leader_elect_resource_namespace: str = COMPONENTS_NAMESPACE
    leader_elect_lease_duration: float = 15.0
    leader_elect_renew_deadline: float = 10.0
    leader_elect_retry_period: float = 2.0
    healthz_address: Address | None = None
    listen_address: Address | None = None
    log_level: str = "info"
    tracing: bool = False

    def election(self, *, name: str, identity: str) -> LeaseConfig:
        """The configuration of the Lease. Raises `click.UsageError` for inconsistent durations."""
        try:
            return LeaseConfig(
                namespace=self.leader_elect_resource_namespace,
                name=name,
                identity=identity,
                duration=self.leader_elect_lease_duration,
                renew_deadline=self.leader_elect_renew_deadline,
                retry_period=self.leader_elect_retry_period,
            )
        except ValueError as error:
            raise click.UsageError(str(error)) from error


def component_options(function: F) -> F:
    """Add the options; the command receives them as the keyword arguments of `ComponentOptions`."""
    for option in reversed(
        (
            click.option(
                "--kubeconfig",
                type=click.Path(dir_okay=False, path_type=Path),
                default=None,
                metavar="FILE",
                help="Kubeconfig file.  [default: $KUBECONFIG, ~/.kube/config, or the pod's service account]",
            ),
            click.option("--context", default=None, metavar="NAME", help="Kubeconfig context."),
            bool_option(
                "--leader-elect", "Run leader election before starting work. Required for more than one replica."
            ),
            click.option(
                "--leader-elect-resource-namespace",
                default=COMPONENTS_NAMESPACE,
                show_default=True,
                metavar="NAMESPACE",
                help="Namespace of the Lease.",
            ),
            _duration(
                "--leader-elect-lease-duration",
                "15s",
                "Time after which a Lease that isn't renewed can be acquired by another replica.",
            ),
            _duration(
                "--leader-elect-renew-deadline", "10s", "Time after which a leader that can't renew the Lease stops."
            ),
            _duration("--leader-elect-retry-period", "2s", "Time between attempts to acquire or renew the Lease."),
            click.option(
                "--healthz-address",
                type=AddressType(),
                default=None,
                help="Address of /healthz and /readyz.  [default: disabled]",
            ),
            click.option(
                "--listen-address",
                type=AddressType(),
                default=None,
                help="Address of /metrics.  [default: disabled]",
            ),
            click.option(
                "--log-level", type=click.Choice(list(LEVELS)), default="info", show_default=True, help="Log level."
            ),
            tracing_option,
        )
    ):
        function = option(function)
    return function


def _duration(name: str, default: str, text: str) -> Callable[[F], F]:
    return click.option(name, type=DurationType(), default=default, show_default=True, help=text)
