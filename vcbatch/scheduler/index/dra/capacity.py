"""Capacity of devices that are allocated to several claims: the part of each share. Source: KEP-5075 (consumable
capacity)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from vcbatch.api.dra import Amount, CapacityRequestPolicy, SliceDevice
from vcbatch.api.quantity import MalformedQuantity, Quantity, parse_quantity

Share = Mapping[str, Quantity]
"""The consumed capacity of a device, by fully qualified name."""


class Dimension(NamedTuple):
    """One capacity of a device, with its name in the slice. A share consumes one of `values` if there are any, else
    `least` plus whole steps, up to `most`; without a request it consumes `default`."""

    name: str
    value: Quantity
    default: Quantity
    values: tuple[Quantity, ...] = ()
    least: Quantity | None = None
    most: Quantity | None = None
    step: Quantity | None = None

    def taken(self, wanted: Quantity | None) -> Quantity | None:
        """The capacity that a share with this request (None: without one) consumes; None if no share is that large."""
        amount = self.default if wanted is None else self._up(wanted)
        return amount if amount is not None and amount <= self.value else None

    def _up(self, wanted: Quantity) -> Quantity | None:
        if self.values:
            return min((value for value in self.values if value >= wanted), default=None)
        if self.least is not None and wanted <= self.least:
            wanted = self.least
        elif self.least is not None and self.step:
            steps = -(-(wanted - self.least).nano // self.step.nano)
            wanted = self.least + self.step * steps
        return wanted if self.most is None or wanted <= self.most else None


Capacity = Mapping[str, Dimension]
"""By fully qualified name."""


def qualified(name: str, driver: str) -> str:
    """The name with its domain, by default the driver's."""
    return name if "/" in name else f"{driver}/{name}"


def capacity_of(driver: str, device: SliceDevice) -> Capacity | None:
    """The capacities of a device; None if a quantity is invalid, so that its remaining capacity isn't known."""
    found: dict[str, Dimension] = {}
    try:
        for name, given in sorted((device.capacity or {}).items()):
            found[qualified(name, driver)] = _dimension(name, parse_quantity(given.value), given.request_policy)
    except MalformedQuantity:
        return None
    return found


def _dimension(name: str, value: Quantity, policy: CapacityRequestPolicy | None) -> Dimension:
    if policy is None:
        return Dimension(name, value, value)
    default = value if policy.default is None else parse_quantity(policy.default)
    if policy.valid_values:
        return Dimension(name, value, default, values=tuple(map(parse_quantity, policy.valid_values)))
    span = policy.valid_range
    if span is None:
        return Dimension(name, value, default)
    least, most, step = (None if end is None else parse_quantity(end) for end in (span.min, span.max, span.step))
    return Dimension(name, value, default, least=least, most=most, step=step)


def wanted_of(asked: Mapping[str, Amount] | None) -> Mapping[str, Quantity]:
    """The requested capacity, by unqualified or qualified name as given. Raises `MalformedQuantity`."""
    return {name: parse_quantity(amount) for name, amount in (asked or {}).items()}


def share_of(capacity: Capacity, driver: str, wanted: Mapping[str, Quantity]) -> Share | None:
    """The share for a request; None if the device has no such share."""
    full = {qualified(name, driver): amount for name, amount in wanted.items()}
    if any(name not in capacity for name in full):
        return None
    found: dict[str, Quantity] = {}
    for name, dimension in capacity.items():
        amount = dimension.taken(full.get(name))
        if amount is None:
            return None
        found[name] = amount
    return found


def written(capacity: Capacity, share: Share) -> dict[str, str]:
    """The share as in an allocation result, with the names of the slice."""
    return {capacity[name].name: amount.format() for name, amount in share.items()}


def read_share(driver: str, consumed: Mapping[str, Amount] | None) -> Share:
    """The share in an allocation result. Invalid quantities are left out."""
    return dict(_readable(driver, (consumed or {}).items()))


def _readable(driver: str, consumed: Iterable[tuple[str, Amount]]) -> Iterable[tuple[str, Quantity]]:
    for name, amount in consumed:
        try:
            yield qualified(name, driver), parse_quantity(amount)
        except MalformedQuantity:
            continue
