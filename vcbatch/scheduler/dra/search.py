"""Which devices of a node a pod's claims would get: depth first, within a bound on the steps taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from vcbatch.api.dra import DeviceClass, DeviceConstraint, DeviceRequest, ResourceClaim
from vcbatch.api.pod import Toleration
from vcbatch.scheduler.dra import expressions
from vcbatch.scheduler.dra.counters import CounterId, Draws
from vcbatch.scheduler.dra.inventory import Device, DeviceId, Inventory

STEPS_PER_SECOND: Final = 20_000
"""What a second of `dynamicresources.filterTimeoutSeconds` stands for: decisions don't depend on the machine."""


class Picked(NamedTuple):
    """A device for a request (`parent/alternative` where it is one of several)."""

    request: str
    device: Device
    admin: bool


Found = Mapping[str, Sequence[Picked]]
"""By claim, as `namespace/name`."""


class OutOfSteps(Exception):
    """The search took too long."""


def fault_of(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> str:
    """Why nobody can get devices for this claim as it is; empty where somebody might."""
    name = claim.metadata.name
    for constraint in claim.spec.devices.constraints or ():
        if (constraint.match_attribute is None) == (constraint.distinct_attribute is None):
            return f'resourceclaim "{name}" has a constraint without one of matchAttribute and distinctAttribute'
    for request in claim.spec.devices.requests or ():
        for wanted in _alternatives(request.exactly, request.first_available):
            if wanted.capacity:
                return f'resourceclaim "{name}" asks for a part of a device, which is not supported'
            if wanted.allocation_mode not in ("", "ExactCount", "All"):
                return f'resourceclaim "{name}" has allocationMode {wanted.allocation_mode}; supported: All, ExactCount'
            made = classes.get(wanted.device_class_name)
            if made is None:
                return f'resourceclaim "{name}" asks for deviceclass "{wanted.device_class_name}", which doesn\'t exist'
            for selector in (*(made.spec.selectors or ()), *(wanted.selectors or ())):
                fault = expressions.fault(selector.cel.expression) if selector.cel is not None else "no expression"
                if fault:
                    return f'resourceclaim "{name}": {fault}'
    return ""


class _Slot(NamedTuple):
    """One device to be found: of `devices`, by index above the one before it of the same request."""

    request: str
    wanted: DeviceRequest
    devices: Sequence[Device]
    again: bool


class Search:
    """For one node: its devices, those that are taken, and what is left of the counters that devices take from."""

    def __init__(
        self,
        inventory: Inventory,
        devices: Sequence[Device],
        taken: Callable[[DeviceId], bool],
        left: Callable[[CounterId], int],
        classes: Mapping[str, DeviceClass],
        *,
        steps: int,
    ) -> None:
        self._inventory = inventory
        self._devices = devices
        self._is_taken = taken
        self._left = left
        self._classes = classes
        self._steps = steps
        self._used: set[DeviceId] = set()
        self._drawn: dict[CounterId, int] = {}

    def run(self, claims: Sequence[ResourceClaim]) -> Found | None:
        """Devices for all of the claims; None where there aren't. Raises `OutOfSteps`."""
        found: dict[str, list[Picked]] = {}
        return found if self._claims(claims, 0, found) else None

    def _claims(self, claims: Sequence[ResourceClaim], at: int, found: dict[str, list[Picked]]) -> bool:
        if at == len(claims):
            return True
        claim = claims[at]
        for slots in self._plans(claim):
            picked: list[Picked] = []
            found[claim.metadata.key] = picked
            constraints = claim.spec.devices.constraints or ()
            if self._fill(slots, picked, constraints, 0, lambda: self._claims(claims, at + 1, found)):
                return True
        found.pop(claim.metadata.key, None)
        return False

    def _plans(self, claim: ResourceClaim) -> Iterator[list[_Slot]]:
        """The slots of each way to serve the claim, the preferred first."""

        def extend(requests: Sequence[tuple[str, Sequence[DeviceRequest]]]) -> Iterator[list[_Slot]]:
            if not requests:
                yield []
                return
            (name, ways), rest = requests[0], requests[1:]
            for way in ways:
                slots = self._slots(name if not way.name else f"{name}/{way.name}", way)
                if slots is not None:
                    for tail in extend(rest):
                        yield [*slots, *tail]

        wanted = claim.spec.devices.requests or ()
        yield from extend([(r.name, _alternatives(r.exactly, r.first_available)) for r in wanted])

    def _slots(self, name: str, wanted: DeviceRequest) -> list[_Slot] | None:
        """None where some device that is wanted isn't there."""
        made = self._classes[wanted.device_class_name]
        selectors = [*(made.spec.selectors or ()), *(wanted.selectors or ())]
        bears = [
            Toleration(t.get("key", ""), t.get("operator", ""), t.get("value", ""), t.get("effect", ""))
            for t in wanted.tolerations or ()
        ]
        fitting = [d for d in self._devices if self._inventory.chosen(selectors, d)]
        if wanted.allocation_mode == "All":
            if not fitting:
                return None
            return [_Slot(name, wanted, [device], again=False) for device in fitting]
        fitting = [d for d in fitting if d.tolerated(bears)]
        count = wanted.count or 1
        if len(fitting) < count:
            return None
        return [_Slot(name, wanted, fitting, again=i > 0) for i in range(count)]

    def _fill(
        self,
        slots: Sequence[_Slot],
        picked: list[Picked],
        constraints: Sequence[DeviceConstraint],
        start: int,
        then: Callable[[], bool],
    ) -> bool:
        """Fill the slots from that of `len(picked)` on, and do what comes after; leaves nothing behind where it fails.
        `start` is the place from which devices of a slot like the one before are tried."""
        if len(picked) == len(slots):
            return then()
        slot = slots[len(picked)]
        admin = bool(slot.wanted.admin_access)
        tried: set[tuple[int, Draws]] = set()
        after = slots[len(picked) + 1 : len(picked) + 2]
        alone = not slot.again and not (after and after[0].again)
        for place in range(start if slot.again else 0, len(slot.devices)):
            device = slot.devices[place]
            self._step()
            if not admin and not self._free(device):
                continue
            if alone and (device.kind, device.draws) in tried:
                continue  # one that looks the same led nowhere
            pick = Picked(slot.request, device, admin)
            if not _agree(pick, picked, constraints):
                continue
            picked.append(pick)
            if not admin:
                self._use(device, 1)
            if self._fill(slots, picked, constraints, place + 1, then):
                return True
            picked.pop()
            if not admin:
                self._use(device, -1)
            tried.add((device.kind, device.draws))
        return False

    def _free(self, device: Device) -> bool:
        if device.id in self._used or self._is_taken(device.id):
            return False
        return all(self._left(counter) - self._drawn.get(counter, 0) >= amount for counter, amount in device.draws)

    def _use(self, device: Device, step: int) -> None:
        self._used.add(device.id) if step > 0 else self._used.discard(device.id)
        for counter, amount in device.draws:
            self._drawn[counter] = self._drawn.get(counter, 0) + step * amount

    def _step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise OutOfSteps


def _agree(pick: Picked, picked: Sequence[Picked], constraints: Sequence[DeviceConstraint]) -> bool:
    """Whether the device has the same value as those before it of every attribute that must match, and another one
    than each of them of every attribute that must be distinct."""
    for constraint in constraints:
        if not _covers(constraint, pick.request):
            continue
        alike = constraint.match_attribute is not None
        name = constraint.match_attribute or constraint.distinct_attribute or ""
        value = pick.device.attribute(name)
        if value is None:
            return False
        others = (p.device.attribute(name) for p in picked if _covers(constraint, p.request))
        if any((other == value) is not alike for other in others):
            return False
    return True


def _covers(constraint: DeviceConstraint, request: str) -> bool:
    names = constraint.requests
    return not names or request in names or request.partition("/")[0] in names


def _alternatives(exactly: DeviceRequest | None, first: Sequence[DeviceRequest] | None) -> Sequence[DeviceRequest]:
    if exactly is not None:
        return (exactly,)
    return first or ()
