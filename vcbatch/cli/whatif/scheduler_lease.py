"""The configuration that the scheduler of a cluster publishes on its Lease, read with the user's own permissions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from vcbatch.api.names import COMPONENTS_NAMESPACE, SCHEDULER_LEASE
from vcbatch.api.resources import LEASES
from vcbatch.cli.base.fields import words
from vcbatch.cli.base.leases import holder_of
from vcbatch.interfaces.api import Api, ApiError

if TYPE_CHECKING:
    from vcbatch.runtime.scheduling.lease_notice import LeaseNotice


class NotPublishedError(Exception):
    """The Lease doesn't publish the scheduler's configuration, or this user can't read it; the message is why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePlace:
    """The namespace and name of a scheduler's Lease."""

    namespace: str = COMPONENTS_NAMESPACE
    name: str = SCHEDULER_LEASE

    @staticmethod
    def parse(text: str) -> LeasePlace:
        """Parse `namespace/name`. Raises `ValueError`."""
        namespace, slash, name = text.partition("/")
        if not (namespace and slash and name) or "/" in name:
            raise ValueError(f"must be NAMESPACE/NAME, got {text!r}")
        return LeasePlace(namespace=namespace, name=name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The content of the Lease. `doubt` is why it may be out of date; empty where it isn't."""

    notice: LeaseNotice
    doubt: str = ""


async def published(api: Api, place: LeasePlace, *, now: datetime) -> Published:
    """Read the Lease. Raises `NotPublishedError`, and `ApiError` where the server can't respond."""
    from vcbatch.runtime.scheduling.lease_notice import LeaseNotice
    from vcbatch.scheduler.simulation.world import WorldError

    try:
        lease = await api.get(LEASES, place.name, namespace=place.namespace)
    except ApiError as error:
        if error.not_found:
            raise NotPublishedError(f"Lease {place} not found") from error
        if error.code == 403:
            raise NotPublishedError(f"no permission to read Lease {place}") from error
        raise
    try:
        notice = LeaseNotice.read(words(lease, "metadata", "annotations"), now=now)
    except WorldError as error:
        raise NotPublishedError(f"the configuration in Lease {place} can't be read: {error}") from error
    if notice is None:
        raise NotPublishedError(f"Lease {place} has no configuration")
    holder = holder_of(lease, now)
    if not holder:
        return Published(notice=notice, doubt="that Lease has no holder")
    return Published(
        notice=notice,
        doubt="" if holder == notice.identity else f"the current leader {holder} hasn't published its configuration",
    )
