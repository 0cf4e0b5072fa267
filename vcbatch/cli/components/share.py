"""Options and environment variables of a scheduler that is one of several on a cluster, under Volcano's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import click

from vcbatch.api.names import DEFAULT_SCHEDULER, SCHEDULER_LEASE
from vcbatch.cli.base.output import CliError
from vcbatch.scheduler.model.share import Ring, ShardingMode, Share

F = TypeVar("F", bound=Callable[..., object])

ENABLE: Final = "MULTI_SCHEDULER_ENABLE"
POD_NAME: Final = "SCHEDULER_POD_NAME"
NUMBER: Final = "SCHEDULER_NUM"
_MOST: Final = 1000


def share_options(function: F) -> F:
    """Add the options; the command receives them as the keyword arguments of `read_share`, and `lease`."""
    for option in reversed(
        (
            click.option(
                "--node-selector",
                "node_selector",
                multiple=True,
                metavar="KEY:VALUE",
                help="Schedule only on nodes with one of these labels; may be repeated.  [default: all nodes]",
            ),
            click.option(
                "--scheduler-sharding-mode",
                "sharding_mode",
                type=click.Choice([mode.value for mode in ShardingMode]),
                default=ShardingMode.NONE.value,
                show_default=True,
                help="Restrict scheduling to the nodes of a NodeShard (hard), or prefer them (soft).",
            ),
            click.option(
                "--scheduler-sharding-name",
                "sharding_name",
                default=DEFAULT_SCHEDULER,
                show_default=True,
                metavar="NAME",
                help="NodeShard of this scheduler.",
            ),
            click.option(
                "--leader-elect-resource-name",
                "lease",
                default=SCHEDULER_LEASE,
                show_default=True,
                metavar="NAME",
                help="Lease for leader election. Schedulers that share a cluster need different Leases.",
            ),
        )
    ):
        function = option(function)
    return function


def read_share(
    *,
    node_selector: Sequence[str],
    sharding_mode: str,
    sharding_name: str,
    environment: Mapping[str, str],
    leader_elect: bool,
) -> Share:
    """The share of the cluster that this scheduler is responsible for.

    Raises:
        CliError: an option or a variable is invalid; says which one, its value and what is allowed.
    """
    instance, ring = _instance(environment, leader_elect=leader_elect)
    return Share(
        node_labels=frozenset(_pair(text) for text in node_selector),
        ring=ring,
        instance=instance,
        mode=ShardingMode(sharding_mode),
        shard=sharding_name,
    )


def _pair(text: str) -> tuple[str, str]:
    key, colon, value = text.strip().partition(":")
    if not key or not colon:
        raise CliError(f"--node-selector: must be KEY:VALUE, got {text!r}")
    return key.strip(), value.strip()


def _instance(environment: Mapping[str, str], *, leader_elect: bool) -> tuple[str, Ring | None]:
    """This instance's name, and the hash ring of all instances; None where there is only one."""
    if environment.get(ENABLE, "") != "true":
        return "", None
    if leader_elect:
        raise CliError(f"{ENABLE}=true requires --leader-elect=false")
    name, number = environment.get(POD_NAME, ""), environment.get(NUMBER, "")
    base, _, index = name.rpartition("-")
    if not base or not index.isdecimal():
        raise CliError(f"{POD_NAME}: must be a pod name with an index (NAME-0), got {name!r}")
    if not number.isdecimal() or not 1 <= int(number) <= _MOST:
        raise CliError(f"{NUMBER}: must be the number of instances, 1 to {_MOST}, got {number!r}")
    if int(index) >= int(number):
        raise CliError(f"{POD_NAME}: must be at most {base}-{int(number) - 1} ({NUMBER} is {number}), got {name!r}")
    return name, Ring(f"{base}-{i}" for i in range(int(number)))
