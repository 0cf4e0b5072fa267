"""What ResourceClaims count for in the quotas of queues: devices by class, and capacity of devices.

A queue's quota names `deviceclass/<class>` for a number of devices and `<dimension>.deviceclass/<class>` for capacity
of shared devices. Quantities are integers in thousandths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vcbatch.api.dra import DeviceRequest, ResourceClaim
from vcbatch.api.quantity import MalformedQuantity, of_milli, parse_quantity
from vcbatch.scheduler.index.dra.search import ways_of
from vcbatch.scheduler.model.objects import Task

Charge = Mapping[str, int]
"""Thousandths by quota key."""

_CLASS: Final = "deviceclass/"
WHOLE: Final = 1000
"""One device."""
UNKNOWN: Final = 1 << 80
"""The charge for all devices of a node before their number is known: more than any limit."""


def is_count(key: str) -> bool:
    """Whether the key is a number of devices."""
    return key.startswith(_CLASS)


def is_capacity(key: str) -> bool:
    """Whether the key is a capacity of devices."""
    return f".{_CLASS}" in key


def shown(amount: int) -> str:
    """The charge as a quantity."""
    return of_milli(amount).format()


def known(amount: int) -> int:
    """The known part of a charge."""
    return amount % UNKNOWN


def milli(quantity: object) -> int:
    """The quantity in thousandths; an invalid one is zero."""
    try:
        return parse_quantity(quantity).milli() if isinstance(quantity, (str, int, float)) else 0
    except MalformedQuantity:
        return 0


def charge_of(claim: ResourceClaim, *, capacity: bool) -> Charge:
    """The charge of the claim: by its allocation, else by its requests. Of several alternatives of a request, each key
    counts with the largest. Administrative access uses no devices. `capacity`: whether capacity counts as well."""
    allocation = claim.status.allocation
    return _given(claim, capacity=capacity) if allocation is not None else _asked(claim, capacity=capacity)


def _given(claim: ResourceClaim, *, capacity: bool) -> Charge:
    ways = dict(ways_of(claim))
    charge: dict[str, int] = {}
    allocation = claim.status.allocation
    for result in (allocation.devices.results or ()) if allocation is not None else ():
        way = ways.get(result.request)
        if way is not None and not result.admin_access:
            _add(charge, way.device_class_name, WHOLE, result.consumed_capacity if capacity else None)
    return charge


def _asked(claim: ResourceClaim, *, capacity: bool) -> Charge:
    total: dict[str, int] = {}
    for request in claim.spec.devices.requests or ():
        most: dict[str, int] = {}
        for way in [request.exactly] if request.exactly is not None else request.first_available or ():
            for key, amount in _wanted(way, capacity=capacity).items():
                most[key] = max(most.get(key, 0), amount)
        for key, amount in most.items():
            total[key] = total.get(key, 0) + amount
    return total


def _wanted(way: DeviceRequest, *, capacity: bool) -> Charge:
    charge: dict[str, int] = {}
    if way.admin_access:
        return charge
    if way.allocation_mode == "All":
        return {_CLASS + way.device_class_name: UNKNOWN}
    wanted: Mapping[str, Any] = (way.capacity.requests if way.capacity is not None else None) or {}
    for _ in range(way.count or 1):
        _add(charge, way.device_class_name, WHOLE, wanted if capacity else None)
    return charge


def _add(charge: dict[str, int], device_class: str, devices: int, capacity: Mapping[str, Any] | None) -> None:
    count = _CLASS + device_class
    charge[count] = charge.get(count, 0) + devices
    for dimension, quantity in (capacity or {}).items():
        key = f"{dimension.rpartition('/')[2]}.{count}"
        charge[key] = charge.get(key, 0) + milli(quantity)


def claims_of(task: Task) -> tuple[list[str], str]:
    """The claims of a pod as `namespace/name`, and the pod's name of one that doesn't exist yet, if any."""
    keys: list[str] = []
    made = {s.get("name"): s.get("resourceClaimName") for s in task.pod.status.resource_claim_statuses or ()}
    for entry in task.pod.spec.resource_claims or ():
        name = entry.get("resourceClaimName")
        if name is None:
            if entry.get("name") not in made:
                return keys, str(entry.get("name"))
            name = made[entry.get("name")]
        if name:
            keys.append(f"{task.namespace}/{name}")
    return keys, ""
