"""Counters that the devices of a pool share: an allocated device consumes its part of each counter that it names, such
as the memory slices of a GPU that can be partitioned in several ways. Source: KEP-4815 (partitionable devices).

Devices that consume one set of counters may need a common group to be allocated at the same time. Source: KEP-5963
(device compatibility groups).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from vcbatch.api.dra import CounterConsumption, ResourceSlice, SliceDevice
from vcbatch.scheduler.index.dra import expressions


class CounterId(NamedTuple):
    driver: str
    pool: str
    counter_set: str
    name: str


class CounterSetId(NamedTuple):
    driver: str
    pool: str
    name: str


Groups = tuple[tuple[CounterSetId, frozenset[str]], ...]
"""The groups of a device, by set of counters. A device without any is in the unnamed group, which no other device is
in."""

Draws = tuple[tuple[CounterId, int], ...]
"""The quantities of counters that a device consumes, in thousandths."""


def sizes(slices: Iterable[ResourceSlice]) -> Mapping[CounterId, int]:
    """The quantity of each counter, in thousandths. A counter with an invalid quantity is left out."""
    found: dict[CounterId, int] = {}
    for made in slices:
        for counters in made.spec.shared_counters or ():
            for name, counter in (counters.counters or {}).items():
                try:
                    amount = expressions.quantity(counter.value)
                except ValueError:
                    continue
                found[CounterId(made.spec.driver, made.spec.pool.name, counters.name, name)] = amount
    return found


def draws_of(made: ResourceSlice, device: SliceDevice, there: Mapping[CounterId, int]) -> Draws | None:
    """The consumption of the device; None if it names counters that don't exist or invalid quantities, so that it isn't
    known whether it can be allocated."""
    found: dict[CounterId, int] = {}
    for consumed in device.consumes_counters or ():
        for name, counter in (consumed.counters or {}).items():
            one = CounterId(made.spec.driver, made.spec.pool.name, consumed.counter_set, name)
            try:
                amount = expressions.quantity(counter.value)
            except ValueError:
                return None
            if one not in there:
                return None
            found[one] = found.get(one, 0) + amount
    return tuple(sorted(found.items()))


def grouped_sets(slices: Iterable[ResourceSlice]) -> frozenset[CounterSetId]:
    """The sets of counters for which some device names groups; other sets need no check."""
    return frozenset(
        _set_of(made, consumed)
        for made in slices
        for device in made.spec.devices or ()
        for consumed in device.consumes_counters or ()
        if consumed.compatibility_groups
    )


def groups_of(made: ResourceSlice, device: SliceDevice, grouped: frozenset[CounterSetId]) -> Groups:
    """The groups of the device, for sets for which some device names any."""
    return tuple(
        (_set_of(made, consumed), frozenset(consumed.compatibility_groups or ("",)))
        for consumed in device.consumes_counters or ()
        if _set_of(made, consumed) in grouped
    )


def _set_of(made: ResourceSlice, consumed: CounterConsumption) -> CounterSetId:
    return CounterSetId(made.spec.driver, made.spec.pool.name, consumed.counter_set)
