"""The current order of queues and gangs, computed by the scheduler's own code from the objects on the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from vcbatch.api.resources import (
    DEVICECLASSES,
    NODES,
    NODESHARDS,
    PODGROUPS,
    PODS,
    PRIORITYCLASSES,
    QUEUES,
    RESOURCECLAIMS,
    RESOURCESLICES,
)
from vcbatch.cli.base.output import CliError
from vcbatch.interfaces.api import Api, ApiError

if TYPE_CHECKING:
    from vcbatch.cli.base.reach import Access
    from vcbatch.cli.whatif.scheduler_setup import Setup, SetupOptions
    from vcbatch.scheduler.reasons.standing import GangStanding, QueueStanding, Standings

_DECIDING: Final = frozenset(
    {
        PRIORITYCLASSES,
        QUEUES,
        NODES,
        NODESHARDS,
        DEVICECLASSES,
        RESOURCESLICES,
        RESOURCECLAIMS,
        PODGROUPS,
        PODS,
    }
)
"""The kinds that shares and orders depend on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The order of queues and gangs.

    Attributes:
        policy: the scheduler configuration of the order; empty where the order isn't known.
        lease: `namespace/name` of the Lease that published it; empty where none did.
        doubt: why the Lease may be out of date; empty where it isn't.
        foreign: why another scheduler places the job; empty where this one does.
        unknown: why the order isn't known; empty where it is.
        standings: the result of the scheduler's code; None where it isn't known.
    """

    policy: str = ""
    lease: str = ""
    doubt: str = ""
    foreign: str = ""
    unknown: str = ""
    standings: Standings | None = None
    places: Mapping[str, int] = field(default_factory=dict[str, int])
    """PodGroup UID -> position among the pending gangs of its queue."""

    def queue(self, name: str) -> QueueStanding | None:
        """The standing of the queue, where gangs of this scheduler are pending in it."""
        queues = () if self.standings is None else self.standings.queues
        return next((queue for queue in queues if queue.name == name), None)

    def gang(self, uid: str) -> GangStanding | None:
        queues = () if self.standings is None else self.standings.queues
        return next((gang for queue in queues for gang in queue.gangs if gang.uid == uid), None)


async def order_of(api: Api, access: Access, setup: SetupOptions, scheduler_name: str = "") -> Order:
    """The current order of the scheduler for pods with this `schedulerName`, by default of those that it places. Where
    its policy isn't known, or objects may not be read, the result says why."""
    from vcbatch.cli.whatif.snapshot import listed
    from vcbatch.scheduler.model.reads import READS
    from vcbatch.scheduler.reasons.standing import StandingsError

    now = access.now()
    try:
        found = await setup.read(api, access, now=now)
    except CliError as error:
        if setup.names_policy:
            raise
        return Order(unknown=str(error))  # the requested information is complete without it
    if found.unknown:
        return Order(unknown=found.unknown)
    scheduler = found.settings.scheduler(found.policy)
    for read in READS:
        if read.resource not in _DECIDING:
            continue
        try:
            items = await listed(api, read)
        except ApiError as error:
            if error.code != 403:
                raise
            return Order(unknown=f"the scheduler configuration requires {read.resource.plural}: {error.sentence}")
        for obj in items:
            scheduler.apply(read.resource, "ADDED", obj)
    try:
        standings = scheduler.standings(now)
    except StandingsError as error:
        return Order(unknown=f"a scheduler plugin failed: {error}")
    places = {gang.uid: place for queue in standings.queues for place, gang in enumerate(queue.gangs)}
    return Order(
        policy=found.source,
        lease=found.lease,
        doubt=found.doubt,
        foreign=_foreign(found, scheduler_name),
        standings=standings,
        places=places,
    )


def _foreign(setup: Setup, scheduler_name: str) -> str:
    names = setup.settings.scheduler_names
    if not scheduler_name or scheduler_name in names:
        return ""
    whose = f"the scheduler of Lease {setup.lease}" if setup.lease else "the scheduler"
    option = "use --scheduler-lease for another scheduler" if setup.lease else "use --scheduler-name for another name"
    return f"its schedulerName is {scheduler_name}; {whose} handles {', '.join(names)}; {option}"
