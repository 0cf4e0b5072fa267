"""The search for devices of a node for a pod's claims: depth first, with a limited number of steps."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from vcbatch.api.dra import ClaimRequest, DeviceClass, DeviceConstraint, DeviceRequest, ResourceClaim
from vcbatch.api.pod import Toleration
from vcbatch.api.quantity import MalformedQuantity, Quantity
from vcbatch.scheduler.index.dra import expressions
from vcbatch.scheduler.index.dra.capacity import Share, share_of, wanted_of
from vcbatch.scheduler.index.dra.inventory import Device, DeviceId, Inventory
from vcbatch.scheduler.index.dra.ledger import DeviceLedger

STEPS_PER_SECOND: Final = 20_000
"""The steps per second of `dynamicresources.filterTimeoutSeconds`, so that decisions don't depend on the machine."""

MOST_DEVICES: Final = 32
"""How many devices a claim may be allocated (Kubernetes, AllocationResultsMaxSize)."""


class Picked(NamedTuple):
    """A device for a request (`parent/alternative` for an alternative), and its `share` if the device is shared."""

    request: str
    wanted: DeviceRequest
    device: Device
    share: Share | None

    @property
    def admin(self) -> bool:
        """Whether it is for administrative access, which allocates nothing."""
        return bool(self.wanted.admin_access)


Found = Mapping[str, Sequence[Picked]]
"""By claim, as `namespace/name`."""


class OutOfSteps(Exception):
    """The search ran out of steps."""


def error_of(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> str:
    """Why no devices can be allocated to this claim as it is; empty if some may be."""
    name = claim.metadata.name
    for constraint in claim.spec.devices.constraints or ():
        if (constraint.match_attribute is None) == (constraint.distinct_attribute is None):
            return f'resourceclaim "{name}" has a constraint without one of matchAttribute and distinctAttribute'
    for _, wanted in ways_of(claim):
        try:
            _wanted(wanted)
        except MalformedQuantity as error:
            return f'resourceclaim "{name}" asks for capacity: {error}'
        if wanted.allocation_mode not in ("", "ExactCount", "All"):
            return f'resourceclaim "{name}" has allocationMode {wanted.allocation_mode}; supported: All, ExactCount'
        made = classes.get(wanted.device_class_name)
        if made is None:
            return f'resourceclaim "{name}" asks for deviceclass "{wanted.device_class_name}", which doesn\'t exist'
        for selector in (*(made.spec.selectors or ()), *(wanted.selectors or ())):
            why = expressions.error(selector.cel.expression) if selector.cel is not None else "no expression"
            if why:
                return f'resourceclaim "{name}": {why}'
    least = sum(
        min((_least(way) for way in _alternatives(request)), default=0) for request in claim.spec.devices.requests or ()
    )
    if least > MOST_DEVICES:
        return f'resourceclaim "{name}" asks for {least} devices; a claim gets {MOST_DEVICES} at most'
    return ""


def ways_of(claim: ResourceClaim) -> Iterator[tuple[str, DeviceRequest]]:
    """Every request of a claim, and every alternative of one, by its name in allocation results."""
    for request in claim.spec.devices.requests or ():
        for way in _alternatives(request):
            yield (request.name if request.exactly is not None else f"{request.name}/{way.name}"), way


def tolerations_of(wanted: DeviceRequest) -> list[Toleration]:
    """The device taints that a request tolerates."""
    return [
        Toleration(t.get("key", ""), t.get("operator", ""), t.get("value", ""), t.get("effect", ""))
        for t in wanted.tolerations or ()
    ]


class _Slot(NamedTuple):
    """One device to be found: among `devices`, at a higher index than the one before it of the same request, with the
    share of each."""

    request: str
    wanted: DeviceRequest
    devices: Sequence[tuple[Device, Share | None]]
    again: bool


class Search:
    """The search on one node, with its devices and their remaining capacity."""

    def __init__(
        self,
        inventory: Inventory,
        devices: Sequence[Device],
        ledger: DeviceLedger,
        classes: Mapping[str, DeviceClass],
        *,
        steps: int,
        tolerant: bool = False,
    ) -> None:
        """`tolerant` ignores the taints of devices."""
        self._inventory = inventory
        self._devices = devices
        self._ledger = ledger
        self._classes = classes
        self._steps = steps
        self._tolerant = tolerant
        self._tried: list[tuple[DeviceId, Share | None]] = []
        self._fitting: dict[int, list[tuple[Device, Share | None]]] = {}
        self._alike: dict[DeviceId, int] = {}

    def run(self, claims: Sequence[ResourceClaim]) -> Found | None:
        """Devices for all of the claims; None if there aren't enough. Raises `OutOfSteps`. The ledger is unchanged
        afterwards in any case."""
        self._compare(claims)
        found: dict[str, list[Picked]] = {}
        try:
            return found if self._claims(claims, 0, found) else None
        finally:
            while self._tried:
                self._ledger.give_back(*self._tried.pop())

    def _compare(self, claims: Sequence[ResourceClaim]) -> None:
        """Find the devices for every alternative of a request, and number devices that are equivalent for the claims:
        the same requests would take them, with the same share, they consume the same counters, and have the same values
        of every attribute that a constraint names."""
        ways = [way for claim in claims for _, way in ways_of(claim)]
        takers: dict[DeviceId, list[Hashable]] = {device.id: [] for device in self._devices}
        for nth, way in enumerate(ways):
            fitting = self._fitting[id(way)] = self._taken_by(way)
            for device, share in fitting:
                bears = self._tolerant or device.untolerated(tolerations_of(way)) is None
                takers[device.id].append((nth, bears, *sorted(share.items() if share else ())))
        constraints = [constraint for claim in claims for constraint in claim.spec.devices.constraints or ()]
        names = {constraint.match_attribute or constraint.distinct_attribute or "" for constraint in constraints}
        numbers: dict[Hashable, int] = {}
        for device in self._devices:
            values = tuple(device.attribute(name) for name in sorted(names))
            sizes = tuple((name, one.value) for name, one in device.capacity.items()) if device.shared else ()
            traits = (tuple(takers[device.id]), values, device.draws, device.groups, device.shared, sizes)
            self._alike[device.id] = numbers.setdefault(traits, len(numbers))

    def _taken_by(self, way: DeviceRequest) -> list[tuple[Device, Share | None]]:
        """The devices that match a request, with the share of each shared one."""
        made = self._classes[way.device_class_name]
        selectors = [*(made.spec.selectors or ()), *(way.selectors or ())]
        amounts = _wanted(way)
        fitting: list[tuple[Device, Share | None]] = []
        for device in self._devices:
            if self._inventory.chosen(selectors, device):
                share = share_of(device.capacity, device.id.driver, amounts)
                if share is not None:
                    fitting.append((device, share if device.shared else None))
        return fitting

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
        """The slots of each combination of alternatives of the claim, the preferred first."""

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
        for plan in extend([(r.name, _alternatives(r)) for r in wanted]):
            if len(plan) <= MOST_DEVICES:
                yield plan

    def _slots(self, name: str, wanted: DeviceRequest) -> list[_Slot] | None:
        """The slots of a request; None if a required device doesn't exist."""
        bears = tolerations_of(wanted)
        fitting = self._fitting[id(wanted)]
        if wanted.allocation_mode == "All":
            if not wanted.admin_access:
                fitting = [(d, share) for d, share in fitting if share is None or self._ledger.free(d, share)]
            if not fitting or not all(self._tolerant or d.untolerated(bears) is None for d, _ in fitting):
                return None
            return [_Slot(name, wanted, [one], again=False) for one in fitting]
        fitting = [one for one in fitting if self._tolerant or one[0].untolerated(bears) is None]
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
        """Fill the slots from `len(picked)` on, then call `then`; leaves nothing allocated if that fails. `start` is
        the index from which devices of a slot like the previous one are tried."""
        if len(picked) == len(slots):
            return then()
        slot = slots[len(picked)]
        admin = bool(slot.wanted.admin_access)
        tried: set[Hashable] = set()
        for place in range(start if slot.again else 0, len(slot.devices)):
            device, share = slot.devices[place]
            self._step()
            pick = Picked(slot.request, slot.wanted, device, share)
            if not (_once(pick, picked) if admin else self._ledger.free(device, share)):
                continue
            alike = (self._alike[device.id], self._ledger.state(device))
            if alike in tried:
                continue  # an equivalent one failed
            if not _agree(pick, picked, constraints):
                continue
            picked.append(pick)
            if not admin:
                self._take(device.id, share)
            if self._fill(slots, picked, constraints, place + 1, then):
                return True
            picked.pop()
            if not admin:
                self._ledger.give_back(*self._tried.pop())
            tried.add(alike)
        return False

    def _take(self, device: DeviceId, share: Share | None) -> None:
        self._ledger.take(device, share)
        self._tried.append((device, share))

    def _step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise OutOfSteps


def _once(pick: Picked, picked: Sequence[Picked]) -> bool:
    """Whether the claim hasn't got the device yet, or it is shared."""
    return pick.share is not None or all(other.device is not pick.device for other in picked)


def _agree(pick: Picked, picked: Sequence[Picked], constraints: Sequence[DeviceConstraint]) -> bool:
    """Whether all picked devices have a common value of every attribute that must match, and the device shares no value
    with any of them of those that must be distinct."""
    for constraint in constraints:
        if not _covers(constraint, pick.request):
            continue
        name = constraint.match_attribute or constraint.distinct_attribute or ""
        values = pick.device.attribute(name)
        others = [p.device.attribute(name) for p in picked if _covers(constraint, p.request)]
        if constraint.match_attribute is not None:
            if not values.intersection(*others):
                return False
        elif not values or not all(map(values.isdisjoint, others)):
            return False
    return True


def _covers(constraint: DeviceConstraint, request: str) -> bool:
    names = constraint.requests
    return not names or request in names or request.partition("/")[0] in names


def _wanted(request: DeviceRequest) -> Mapping[str, Quantity]:
    """The requested capacity."""
    return wanted_of(request.capacity.requests if request.capacity is not None else None)


def _alternatives(request: ClaimRequest) -> Sequence[DeviceRequest]:
    return (request.exactly,) if request.exactly is not None else request.first_available or ()


def _least(way: DeviceRequest) -> int:
    """The least number of devices of a request."""
    return 1 if way.allocation_mode == "All" else way.count or 1
