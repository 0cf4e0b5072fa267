"""Whether the devices allocated to a claim are ready on their node, so that its pods may be bound. Source: KEP-5007
(device binding conditions)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from vcbatch.api.dra import AllocatedDeviceStatus, ResourceClaim
from vcbatch.api.timestamps import parse_time

_TRUE = "True"


class Readiness(NamedTuple):
    """`lacks` names conditions that a device waits for, `failed` describes one that can't become ready. Both are empty
    if the claim's pods may be bound."""

    lacks: str = ""
    failed: str = ""


def readiness_of(claim: ResourceClaim) -> Readiness:
    """A device is ready while its driver reports all of its binding conditions as true, and none of its failure
    conditions."""
    allocation = claim.status.allocation
    reported = {_key(status): status for status in claim.status.devices or ()}
    lacks: list[str] = []
    for result in (allocation.devices.results or ()) if allocation is not None else ():
        if not result.binding_conditions:
            continue
        status = reported.get((result.driver, result.pool, result.device, result.share_id))
        given = {condition.type: condition for condition in (status.conditions or () if status is not None else ())}
        true = {name for name, condition in given.items() if condition.status == _TRUE}
        for name in result.binding_failure_conditions or ():
            if name in true:
                why = ": ".join(text for text in (given[name].reason, given[name].message) if text)
                return Readiness(failed=f"device {result.device} has {name}" + (f" ({why})" if why else ""))
        missing = [name for name in result.binding_conditions if name not in true]
        if missing:
            lacks.append(f"device {result.device} lacks {', '.join(missing)}")
    return Readiness(lacks="; ".join(lacks))


def _key(status: AllocatedDeviceStatus) -> tuple[str, str, str, str | None]:
    return status.driver, status.pool, status.device, status.share_id


def due(claim: ResourceClaim, timeout: float) -> datetime | None:
    """When devices that aren't ready are released, `timeout` seconds after their allocation; None if that time isn't
    known."""
    stamp = claim.status.allocation.allocation_timestamp if claim.status.allocation is not None else None
    try:
        return parse_time(stamp) + timedelta(seconds=timeout) if stamp else None
    except ValueError:
        return None
