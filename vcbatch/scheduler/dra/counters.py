"""Counters that the devices of a pool share: while a device is given to somebody it takes its part of each that it
names, such as the slices of memory of a GPU that can be cut in several ways. Source: KEP-4815 (partitionable devices).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from vcbatch.api.dra import ResourceSlice, SliceDevice
from vcbatch.scheduler.dra import expressions


class CounterId(NamedTuple):
    driver: str
    pool: str
    counter_set: str
    name: str


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
