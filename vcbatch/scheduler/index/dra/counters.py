"""Counters that the devices of a pool share: while a device is given to somebody it takes its part of each that it
names, such as the slices of memory of a GPU that can be cut in several ways. Source: KEP-4815 (partitionable devices).

Devices that take from one set of counters may have to be of a common group to be given away at the same time. Source:
KEP-5963 (device compatibility groups).
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
"""Of which groups a device is, by set of counters. One without any is of the group without a name, and no other one is.
"""

Draws = tuple[tuple[CounterId, int], ...]
"""What a device takes of which counters, in thousandths."""


def sizes(slices: Iterable[ResourceSlice]) -> Mapping[CounterId, int]:
    """How much there is of each counter, in thousandths. One whose amount can't be read isn't there."""
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
    """What the device takes; None where it names counters that aren't there, or amounts that can't be read, so that
    nobody can tell whether it can be given away."""
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
    """The sets of counters of which some device names groups: those of the others need not be looked at."""
    return frozenset(
        _set_of(made, consumed)
        for made in slices
        for device in made.spec.devices or ()
        for consumed in device.consumes_counters or ()
        if consumed.compatibility_groups
    )


def groups_of(made: ResourceSlice, device: SliceDevice, grouped: frozenset[CounterSetId]) -> Groups:
    """Of which groups the device is, for sets of which some device names any."""
    return tuple(
        (_set_of(made, consumed), frozenset(consumed.compatibility_groups or ("",)))
        for consumed in device.consumes_counters or ()
        if _set_of(made, consumed) in grouped
    )


def _set_of(made: ResourceSlice, consumed: CounterConsumption) -> CounterSetId:
    return CounterSetId(made.spec.driver, made.spec.pool.name, consumed.counter_set)
