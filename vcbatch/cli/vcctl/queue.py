"""`vcctl queue` and `vqueues`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from vcbatch.api import names
from vcbatch.api.loose import part
from vcbatch.api.phases import Action, PodGroupPhase, QueueState
from vcbatch.api.resources import PODGROUPS, QUEUES
from vcbatch.cli.base.bus import request, request_of
from vcbatch.cli.base.output import CliError, say
from vcbatch.cli.vcctl.access import once, required
from vcbatch.cli.vcctl.columns import NOTHING, Column, table
from vcbatch.cli.vcctl.commands import NAMESPACE
from vcbatch.cli.vcctl.flags import Given
from vcbatch.interfaces.api import Api, ApiError, Json

_UNNAMED = "queue name must be specified"


class _Metadata(msgspec.Struct):
    name: str = ""


class _QueueSpec(msgspec.Struct):
    weight: int = 0
    parent: str = ""


class _QueueStatus(msgspec.Struct):
    state: str = ""
    inqueue: int = 0
    pending: int = 0
    running: int = 0
    unknown: int = 0


class ListedQueue(msgspec.Struct):
    """The fields of a queue for a line of the list."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _QueueSpec = msgspec.field(default_factory=_QueueSpec)
    status: _QueueStatus = msgspec.field(default_factory=_QueueStatus)


class _GroupSpec(msgspec.Struct):
    queue: str = ""


class _GroupStatus(msgspec.Struct):
    phase: str = ""


class _ListedGroup(msgspec.Struct):
    spec: _GroupSpec = msgspec.field(default_factory=_GroupSpec)
    status: _GroupStatus = msgspec.field(default_factory=_GroupStatus)


# Read commands -------------------------------------------------------------------------------------------------------

_NAME = Column(title="Name", width=25)
_WEIGHT = Column(title="Weight", width=8)
_STATE = Column(title="State", width=8)
_PARENT = Column(title="Parent", width=8)
_COUNTS = tuple(Column(title=title, width=8) for title in ("Inqueue", "Pending", "Running", "Unknown"))
_COMPLETED = Column(title="Completed", width=8, title_gap=-1)
_COUNTED = (
    PodGroupPhase.INQUEUE,
    PodGroupPhase.PENDING,
    PodGroupPhase.RUNNING,
    PodGroupPhase.UNKNOWN,
    PodGroupPhase.COMPLETED,
)


def list_queues(given: Given) -> int:
    """Print all queues, with the PodGroups in each, by phase."""

    async def work(api: Api) -> tuple[list[ListedQueue], Mapping[str, Counter[str]]]:
        queues = list((await api.list(QUEUES, model=ListedQueue)).items)
        return queues, await _groups(api, "failed to list podgroups with err") if queues else {}

    return _print(*once(given, work))


def get(given: Given) -> int:
    """Print one queue in the same format."""
    name = required(given, "name", "name is mandatory to get the particular queue details")

    async def work(api: Api) -> tuple[list[ListedQueue], Mapping[str, Counter[str]]]:
        queue = await api.get(QUEUES, name, model=ListedQueue)
        return [queue], await _groups(api, f"failed to list podgroup for queue {name} with err")

    return _print(*once(given, work))


async def _groups(api: Api, trouble: str) -> Mapping[str, Counter[str]]:
    """The number of PodGroups of each queue in each phase. Raises `ApiError`."""
    try:
        groups = (await api.list(PODGROUPS, model=_ListedGroup)).items
    except ApiError as error:
        raise replace(error, message=f"{trouble}: {error.message}") from error
    counts: dict[str, Counter[str]] = {}
    for group in groups:
        counts.setdefault(group.spec.queue or names.DEFAULT_QUEUE, Counter())[group.status.phase] += 1
    return counts


def _print(queues: Iterable[ListedQueue], groups: Mapping[str, Counter[str]]) -> int:
    rows = [_row(queue, groups.get(queue.metadata.name) or Counter()) for queue in queues]
    say(table((_NAME, _WEIGHT, _STATE, _PARENT, *_COUNTS, _COMPLETED), rows) if rows else NOTHING)
    return 0


def _row(queue: ListedQueue, counts: Counter[str]) -> list[str | int]:
    spec = queue.spec
    return [
        queue.metadata.name,
        spec.weight,
        queue.status.state,
        spec.parent,
        *(counts[phase] for phase in _COUNTED),
    ]


def show(given: Given) -> int:
    """`vqueues`: print one queue by its name, or all, with the counts of their status."""
    name = given.text("name")

    async def work(api: Api) -> list[ListedQueue]:
        if name:
            return [await api.get(QUEUES, name, model=ListedQueue)]
        return list((await api.list(QUEUES, model=ListedQueue)).items)

    rows: list[list[str | int]] = []
    for queue in once(given, work):
        status = queue.status
        counts = (status.inqueue, status.pending, status.running, status.unknown)
        rows.append([queue.metadata.name, queue.spec.weight, status.state, *counts])
    say(table((_NAME, _WEIGHT, _STATE, *_COUNTS), rows) if rows else NOTHING)
    return 0


# Write commands ------------------------------------------------------------------------------------------------------


def create(given: Given) -> int:
    """Create a queue. A Closed one is closed by a Command, since a server drops the status of a new object."""
    name, state = required(given, "name", _UNNAMED), given.text("state")
    if state not in (QueueState.OPEN, QueueState.CLOSED):
        raise CliError(f"state {state!r} invalid, valid states are {QueueState.OPEN} and {QueueState.CLOSED}")
    queue: Json = {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": name},
        "spec": {"weight": given.number("weight")},
    }

    async def work(api: Api) -> None:
        created = await api.create(QUEUES, queue)
        if state == QueueState.CLOSED:
            await request_of(
                api, QUEUES, name, str(part(created, "metadata").get("uid")), Action.CLOSE_QUEUE, at=NAMESPACE
            )

    once(given, work)
    return 0


def delete(given: Given) -> int:
    name = required(given, "name", _UNNAMED)
    once(given, lambda api: api.delete(QUEUES, name))
    return 0


_ACTIONS = {"open": Action.OPEN_QUEUE, "close": Action.CLOSE_QUEUE}
_UPDATE = "update"


def operate(given: Given) -> int:
    """Open or close a queue, or change its weight."""
    name, action = required(given, "name", _UNNAMED), required(given, "action", "action can not be null")
    if action == _UPDATE:
        weight = given.number("weight")
        if weight == 0:
            raise CliError(
                f"when {_UPDATE} queue {name}, weight must be specified, the value must be greater than 0",
                hint="Give it with --weight.",
            )
        once(given, lambda api: api.patch(QUEUES, name, {"spec": {"weight": weight}}))
        return 0
    if action not in _ACTIONS:
        raise CliError(f"action {action} invalid, valid actions are open, close and {_UPDATE}")
    once(given, lambda api: request(api, QUEUES, name, _ACTIONS[action], namespace=None, at=NAMESPACE))
    return 0
