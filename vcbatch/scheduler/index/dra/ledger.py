"""Accounting of allocated devices: whole devices, shares of their capacity, and the counters that both consume.
Releasing undoes an allocation exactly."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import TypeVar

from vcbatch.scheduler.index.dra.capacity import Share
from vcbatch.scheduler.index.dra.counters import CounterId, CounterSetId
from vcbatch.scheduler.index.dra.inventory import Device, DeviceId, Inventory

_Key = TypeVar("_Key", bound=Hashable)


class DeviceLedger:
    """Quantities of capacity are in billionths, those of counters in thousandths."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._whole: dict[DeviceId, int] = {}
        self._shares: dict[DeviceId, int] = {}
        self._consumed: dict[DeviceId, dict[str, int]] = {}
        self._drawn: dict[CounterId, int] = {}
        self._together: dict[CounterSetId, dict[frozenset[str], int]] = {}

    def take(self, device: DeviceId, share: Share | None) -> None:
        """Count an allocation of the device, or of this share. A device consumes its counters once, however many shares
        it has."""
        self._move(device, share, 1)

    def give_back(self, device: DeviceId, share: Share | None) -> None:
        self._move(device, share, -1)

    def _move(self, device: DeviceId, share: Share | None, step: int) -> None:
        before = self._uses(device)
        uses = self._whole if share is None else self._shares
        _add(uses, device, step)
        if share:
            consumed = self._consumed.setdefault(device, {})
            for name, amount in share.items():
                _add(consumed, name, step * amount.nano)
            if not consumed:
                del self._consumed[device]
        if before == 0 or before + step == 0:
            for counter, amount in self._inventory.draws(device):
                _add(self._drawn, counter, step * amount)
            for counter_set, groups in self._inventory.groups(device):
                _add(self._together.setdefault(counter_set, {}), groups, step)

    def _uses(self, device: DeviceId) -> int:
        return self._whole.get(device, 0) + self._shares.get(device, 0)

    def is_whole(self, device: DeviceId) -> bool:
        """Whether the device is allocated as a whole."""
        return device in self._whole

    def free(self, device: Device, share: Share | None) -> bool:
        """Whether the device, or this share of it, can be allocated now."""
        if share is None:
            return not self._uses(device.id) and self._counted(device)
        if device.id in self._whole:
            return False
        consumed = self._consumed.get(device.id, {})
        if any(
            consumed.get(name, 0) + amount.nano > device.capacity[name].value.nano for name, amount in share.items()
        ):
            return False
        return device.id in self._shares or self._counted(device)

    def _counted(self, device: Device) -> bool:
        """Whether counters suffice for the device, and no allocated device is incompatible with it."""
        if not all(self.left(counter) >= amount for counter, amount in device.draws):
            return False
        return all(groups.intersection(*self.together(counter_set)) for counter_set, groups in device.groups)

    def together(self, counter_set: CounterSetId) -> Collection[frozenset[str]]:
        """The groups of each allocated device that consumes these counters."""
        return self._together.get(counter_set, {}).keys()

    def left(self, counter: CounterId) -> int:
        """The remaining quantity of a counter; negative if more was allocated than there is."""
        return self._inventory.counters.get(counter, 0) - self._drawn.get(counter, 0)

    def state(self, device: Device) -> Hashable:
        """The state that decides, besides counters, what can be allocated of the device: equal devices in equal states
        serve the same requests."""
        if not device.shared:
            return self._uses(device.id) > 0
        if device.id in self._whole:
            return True
        return device.id in self._shares, *sorted(self._consumed.get(device.id, {}).items())


def _add(amounts: dict[_Key, int], key: _Key, amount: int) -> None:
    """Add a quantity; zeros are removed, so that equal ledgers compare equal."""
    left = amounts.get(key, 0) + amount
    if left:
        amounts[key] = left
    else:
        amounts.pop(key, None)
