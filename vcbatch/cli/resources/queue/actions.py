"""`vcbatch queue open|close|create`."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import click

from vcbatch.api.names import ROOT_QUEUE
from vcbatch.api.phases import Action, QueueState
from vcbatch.api.quantity import MalformedQuantity, parse_quantity
from vcbatch.api.resource_names import doubt
from vcbatch.api.resources import QUEUES
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.bus import request
from vcbatch.cli.base.fields import name_of
from vcbatch.cli.base.names import queue_names
from vcbatch.cli.base.output import CliError, say
from vcbatch.cli.base.titles import title
from vcbatch.cli.resources.kinds import queue_state
from vcbatch.cli.resources.queue.usage import parent_of
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.clock import BlockingClock

Json = dict[str, Any]

_COMMANDS_AT = "default"
"""The namespace of Commands for queues, which are cluster-scoped."""

_PATIENCE, _STEP = 60.0, 0.2
"""Timeout for a queue that was requested to open, and the interval between checks, in seconds."""


class AmountsType(click.ParamType):
    """Resource quantities: `cpu=4,memory=8Gi`."""

    name = "RESOURCES"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str]:
        if isinstance(value, dict):
            return value
        found: dict[str, str] = {}
        for one in str(value).split(","):
            name, equals, quantity = one.strip().partition("=")
            try:
                if not name or not equals or parse_quantity(quantity).nano < 0:
                    raise MalformedQuantity(f"must be NAME=QUANTITY, got {one!r}")
            except MalformedQuantity as error:
                self.fail(f"{error} (e.g. cpu=4,memory=8Gi,nvidia.com/gpu=2)", param, ctx)
            if why := doubt(name):
                self.fail(why, param, ctx)
            if name in found:
                self.fail(f"duplicate resource {name}", param, ctx)
            found[name] = quantity
        return found


@click.command("create")
@click.argument("name")
@click.option(
    "--parent",
    default=ROOT_QUEUE,
    show_default=True,
    metavar="QUEUE",
    help="Parent queue.",
    shell_complete=queue_names,
)
@click.option(
    "--weight",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Weight relative to sibling queues.",
)
@click.option("--capability", type=AmountsType(), metavar="RESOURCES", help="Resource limit of the queue.")
@click.option(
    "--deserved", type=AmountsType(), metavar="RESOURCES", help="Deserved share; may be reclaimed from other queues."
)
@click.option("--guarantee", type=AmountsType(), metavar="RESOURCES", help="Resources reserved for the queue.")
@click.option("--priority", type=int, metavar="N", help="Priority among queues; higher is scheduled first.")
@click.option(
    "--reclaimable/--not-reclaimable",
    default=True,
    help="Whether other queues can reclaim resources from it.  [default: reclaimable]",
)
@access_options
def create(
    name: str,
    access: Access,
    parent: str,
    weight: int,
    capability: dict[str, str] | None,
    deserved: dict[str, str] | None,
    guarantee: dict[str, str] | None,
    priority: int | None,
    reclaimable: bool,
) -> int:
    """Create a queue. RESOURCES is a list such as cpu=4,memory=8Gi,nvidia.com/gpu=2."""
    spec: Json = {"weight": weight, "parent": parent, "reclaimable": reclaimable}
    for field, quantities in (("capability", capability), ("deserved", deserved)):
        if quantities:
            spec[field] = quantities
    if guarantee:
        spec["guarantee"] = {"resource": guarantee}
    if priority is not None:
        spec["priority"] = priority
    body: Json = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": {"name": name}, "spec": spec}

    async def work(api: Api) -> None:
        await api.create(QUEUES, body)

    access.once(work)
    say(f"{title(QUEUES, name)} created")
    return 0


@click.command("open")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=queue_names)
@access_options
def open_(names: Sequence[str], access: Access) -> int:
    """Open queues for new jobs, and the child queues that were closed with them."""
    return _switch(access, names, Action.OPEN_QUEUE, QueueState.OPEN, "opened")


@click.command("close")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=queue_names)
@access_options
def close(names: Sequence[str], access: Access) -> int:
    """Close queues and their child queues for new jobs. Existing jobs continue."""
    return _switch(access, names, Action.CLOSE_QUEUE, QueueState.CLOSED, "closed")


def _switch(access: Access, names: Sequence[str], action: Action, wanted: QueueState, done: str) -> int:
    asked: set[str] = set()

    async def work(api: Api, name: str) -> None:
        if action is Action.CLOSE_QUEUE and name == ROOT_QUEUE:
            raise CliError(f"queue {ROOT_QUEUE} can't be closed", hint="Close its children instead: vcbatch queue tree")
        queue = await api.get(QUEUES, name)
        state = queue_state(queue)
        if state == wanted:
            say(f"{title(QUEUES, name)} already {state.lower()}")
            return
        if action is Action.OPEN_QUEUE:
            await _below_an_open_one(api, queue, opening=asked, clock=BlockingClock())
        await ask_queue(api, name, action)
        asked.add(name)
        say(f"{title(QUEUES, name)} {done}")

    return access.each(names, work)


async def _below_an_open_one(api: Api, queue: Json, *, opening: Container[str], clock: Clock) -> None:
    """Wait for a parent queue that was just requested to open. Raises `CliError` where it stays closed: the controller
    opens no queue below a closed one."""
    parent = parent_of(queue)
    until = clock.monotonic() + _PATIENCE
    while parent and (state := await _state_of(api, parent)) in (QueueState.CLOSED, QueueState.CLOSING):
        if parent not in opening or clock.monotonic() >= until:
            raise CliError(
                f"queue {name_of(queue)} can't be opened: its parent {parent} is {state}",
                hint=f"Open the parent, which also opens the queues closed with it: vcbatch queue open {parent}",
            )
        await clock.sleep(_STEP)


async def _state_of(api: Api, name: str) -> str:
    """The state of a queue. One without an object counts as open, since the root needs none."""
    try:
        return queue_state(await api.get(QUEUES, name))
    except ApiError as error:
        if error.not_found:
            return QueueState.OPEN
        raise


async def ask_queue(api: Api, name: str, action: Action) -> None:
    """Request an action from the queue's controller by a Command."""
    await request(api, QUEUES, name, action, namespace=None, at=_COMMANDS_AT)
