"""The devices that nodes would give to claims, and why a node can't serve them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import inf
from typing import Final

from vcbatch.api.dra import DeviceClass, DeviceRequest, ResourceClaim
from vcbatch.scheduler.index.dra.counters import CounterId, CounterSetId
from vcbatch.scheduler.index.dra.inventory import Device, Inventory
from vcbatch.scheduler.index.dra.ledger import DeviceLedger
from vcbatch.scheduler.index.dra.search import Found, OutOfSteps, Search, tolerations_of, ways_of
from vcbatch.scheduler.model.objects import NodeInfo

MOST_ALTERNATIVES: Final = 8
"""How many alternatives a request may have (Kubernetes, FirstAvailableDeviceRequestMaxSize)."""
CANNOT_ALLOCATE: Final = "node(s) couldn't serve all resourceclaims"
LACKING: Final = "node(s) lacked the devices of a resourceclaim, even if nobody had any"
TAINTED: Final = "node(s) whose devices for a resourceclaim have the taint {%s}, which it doesn't tolerate"
UNREPORTED: Final = (
    "node(s) whose devices for a resourceclaim take counters that their pool lacks or have capacity that can't be read"
)
GIVEN_UP: Final = "node(s) on which the search for devices was given up"


class NodeDevices:
    """The devices of nodes, for claims of these `classes`."""

    def __init__(self, inventory: Inventory, classes: Mapping[str, DeviceClass]) -> None:
        self._inventory = inventory
        self._classes = classes
        self._lacking: dict[tuple[bytes, Hashable], str] = {}

    def on(self, info: NodeInfo) -> list[Device]:
        """The devices that the node reaches, in the order in which they are tried."""
        return self._inventory.on(info.name, info.row)

    def state(self, info: NodeInfo, ledger: DeviceLedger) -> Hashable:
        """A key that is equal for nodes which serve the same claims."""
        number: dict[CounterId | CounterSetId, int] = {}
        free = tuple(
            (
                d.kind,
                ledger.state(d),
                tuple((number.setdefault(c, len(number)), amount, ledger.left(c)) for c, amount in d.draws),
                tuple((number.setdefault(s, len(number)), of, frozenset(ledger.together(s))) for s, of in d.groups),
            )
            for d in self.on(info)
        )
        return free, frozenset(d.kind for d in self._inventory.refused(info.name, info.row))

    def search(
        self,
        info: NodeInfo,
        claims: Sequence[ResourceClaim],
        ledger: DeviceLedger,
        *,
        steps: int,
        tolerant: bool = False,
    ) -> Found | None:
        """Devices of the node for all of the claims; None if there aren't enough. Raises `OutOfSteps`. `tolerant`
        ignores taints."""
        devices = self.on(info)
        return Search(self._inventory, devices, ledger, self._classes, steps=steps, tolerant=tolerant).run(claims)

    def rank(self, info: NodeInfo, claims: Sequence[ResourceClaim], ledger: DeviceLedger, *, steps: int) -> int:
        """The sum over the requests with alternatives: 8 for the first one, 7 for the second, and so on; 0 if the node
        doesn't serve the claims."""
        try:
            found = self.search(info, claims, ledger, steps=steps) or {}
        except OutOfSteps:
            return 0
        taken = {(key, pick.request) for key, picks in found.items() for pick in picks}
        return sum(
            MOST_ALTERNATIVES - nth
            for claim in claims
            for request in claim.spec.devices.requests or ()
            for nth, way in enumerate(request.first_available or ())
            if (claim.metadata.key, f"{request.name}/{way.name}") in taken
        )

    def matching(self, info: NodeInfo, request: DeviceRequest) -> float:
        """How many devices of the node match the request, regardless of taints and allocations; infinite if one of them
        can be shared."""
        devices = [*self.on(info), *self._inventory.refused(info.name, info.row)]
        found = list(self._chosen(devices, request))
        return inf if any(device.shared for device in found) else float(len(found))

    def answer(
        self, info: NodeInfo, claims: Sequence[ResourceClaim], specs: bytes, ledger: DeviceLedger, *, steps: int
    ) -> str:
        """Why the node doesn't serve the claims, which `specs` encodes; empty if it does."""
        try:
            if self.search(info, claims, ledger, steps=steps) is not None:
                return ""
            refused = self._inventory.refused(info.name, info.row)
            if any(self._wanted(refused, claims)):
                return UNREPORTED
            return self._lacks(info, claims, specs, steps) or CANNOT_ALLOCATE
        except OutOfSteps:
            return GIVEN_UP

    def _lacks(self, info: NodeInfo, claims: Sequence[ResourceClaim], specs: bytes, steps: int) -> str:
        """Why the node couldn't serve the claims even without any allocation; empty if it could. Computed once for
        equivalent nodes."""
        nobody = DeviceLedger(self._inventory)
        key = (specs, self.state(info, nobody))
        known = self._lacking.get(key)
        if known is None:
            found = self.search(info, claims, nobody, steps=steps)
            known = self._lacking[key] = "" if found is not None else self._lack(info, claims, nobody, steps)
        return known

    def _lack(self, info: NodeInfo, claims: Sequence[ResourceClaim], nobody: DeviceLedger, steps: int) -> str:
        """The message for a node that lacks such devices, or whose devices have taints, naming the first one."""
        wanted = self._wanted(self.on(info), claims)
        taints = [taint for device, way in wanted if (taint := device.untolerated(tolerations_of(way))) is not None]
        if not taints or self.search(info, claims, nobody, steps=steps, tolerant=True) is None:
            return LACKING
        return TAINTED % (f"{taints[0].key}: {taints[0].value}" if taints[0].value else taints[0].key)

    def _wanted(
        self, devices: Sequence[Device], claims: Sequence[ResourceClaim]
    ) -> Iterator[tuple[Device, DeviceRequest]]:
        """The devices that match requests of the claims, regardless of taints and allocations."""
        for claim in claims:
            for _, way in ways_of(claim):
                yield from ((device, way) for device in self._chosen(devices, way))

    def _chosen(self, devices: Sequence[Device], request: DeviceRequest) -> Iterator[Device]:
        """The devices that the request's class and selectors choose; none if the class doesn't exist."""
        made = self._classes.get(request.device_class_name)
        if made is not None:
            selectors = [*(made.spec.selectors or ()), *(request.selectors or ())]
            yield from (device for device in devices if self._inventory.chosen(selectors, device))
