"""Extended resources that nodes provide by devices: the number per node, and the claims of pods for them.

A node that reports a resource itself (`status.allocatable`) serves it without devices. For other nodes, the reachable
devices of the class that backs the resource count as allocatable, so that queues and gangs treat them like other
resources; the claim determines which of them are free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from vcbatch.api import names
from vcbatch.api.dra import (
    DeviceClaim,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceSlice,
)
from vcbatch.api.meta import ObjectMeta
from vcbatch.scheduler.index.dra.capacity import share_of
from vcbatch.scheduler.index.dra.extended import Mapped, Wanted, backing, wanted_of
from vcbatch.scheduler.index.dra.inventory import Device, Inventory
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.facts import Facts
from vcbatch.scheduler.model.objects import NodeInfo, Task
from vcbatch.scheduler.model.resources import Dimensions

MOST_SHARES: Final = 256
"""The count of a device that any number of pods may share: more than the pods of a node."""
_MILLI: Final = 1000
_MOST_KEPT: Final = 4096
_UNMADE: Final = "<extended-resources>"
"""The prefix of the key of a pod's claim before it is created; claim names can't have it."""
_OF_DEVICES: Final = (ResourceSlice, DeviceClass, DeviceTaintRule)


def is_unmade(key: str) -> bool:
    """Whether this is the key of a claim for extended resources that doesn't exist yet."""
    return key.partition("/")[2].startswith(_UNMADE)


def unmade_key(task: Task) -> str:
    """The key of the claim for a pod's extended resources before it is created."""
    return f"{task.namespace}/{_UNMADE}{task.uid}"


class ServedResources:
    """`stamp` grows whenever the resources that some node provides by devices change."""

    def __init__(self, facts: Facts) -> None:
        self.stamp = 0
        self._facts = facts
        self._classes: Mapping[str, str] = {}
        self._columns: Mapping[str, int] = {}
        self._seen: object = None
        self._wanted: dict[tuple[int, tuple[str, ...]], Wanted] = {}
        self._made: dict[str, ResourceClaim] = {}
        self._claims_seen = 0

    # Resources of nodes -----------------------------------------------------------------------------------------------

    def changed(self) -> None:
        """A node was added, removed or changed."""
        self._seen = None

    def offer(
        self, infos: Sequence[NodeInfo], inventory: Callable[[], Inventory], dims: Dimensions, *, enabled: bool
    ) -> list[NodeInfo]:
        """Compute the resources that nodes provide by devices (`NodeInfo.served`). Returns the nodes for which they
        changed."""
        # Names without requests aren't columns: a class that backs none of these changes nothing.
        seen = (enabled, len(dims), dims.ignored, *map(self._facts.stamp, _OF_DEVICES))
        if seen == self._seen:
            return []
        self._seen = seen
        classes = self._facts.of(DeviceClass)
        known: dict[str, str] = {}
        if enabled and self._facts.of(ResourceSlice):
            wanted = {name for name in dims.names if name not in dims.ignored}
            known = {name: made for name, made in backing(classes.values()).items() if name in wanted}
        if not known and not self._classes:
            return []  # the usual case: no class backs a resource
        moved = [info for info in infos if self._take_in(info, known, classes, inventory, dims)]
        offered = {name for info in infos for name in info.served}
        if moved or known != self._classes:
            self.stamp += 1
            self._classes = known
            self._wanted.clear()
        self._columns = {name: column for name in offered if (column := dims.column(name)) is not None}
        return moved

    @staticmethod
    def _take_in(
        info: NodeInfo,
        known: Mapping[str, str],
        classes: Mapping[str, DeviceClass],
        inventory: Callable[[], Inventory],
        dims: Dimensions,
    ) -> bool:
        served: dict[str, int] = {}
        for name, device_class in known.items():
            if not dims.amount(name, info.allocatable.get(name, 0)):
                stock = inventory()
                selectors = classes[device_class].spec.selectors or ()
                count = sum(_times(d) for d in stock.on(info.name, info.row) if stock.chosen(selectors, d))
                if count:
                    served[name] = count
        before, info.served = info.served, served
        return served != before

    # Requests of pods -------------------------------------------------------------------------------------------------

    def asked(self, cls: TaskClass) -> bool:
        """Whether pods of the class request a resource that some node provides by devices."""
        return any(cls.amounts[column] for column in self._columns.values())

    def short(self, cls: TaskClass, info: NodeInfo) -> bool:
        """Whether a pod of the class requests more than the node's devices would provide without allocations."""
        return any(count * _MILLI < cls.amounts[self._columns[name]] for name, count in info.served.items())

    def claim(self, task: Task, info: NodeInfo) -> ResourceClaim | None:
        """The claim of the pod on the node, not created yet; None if the node provides no resources by devices."""
        return self._claim(task, tuple(info.served)) if info.served else None

    def largest_claim(self, task: Task) -> ResourceClaim | None:
        """The claim of the pod on a node that provides all resources that any node provides by devices."""
        return self._claim(task, tuple(sorted(self._columns)))

    def _claim(self, task: Task, resources: tuple[str, ...]) -> ResourceClaim | None:
        cls = task.cls
        if not self.asked(cls):
            return None
        found = self._wanted.get((cls.id, resources))
        if found is None:
            if len(self._wanted) >= _MOST_KEPT:
                self._wanted.clear()
            found = self._wanted[cls.id, resources] = wanted_of(cls.spec, resources, self._classes)
        requests = found.requests
        if not requests:
            return None
        name = unmade_key(task).partition("/")[2]
        metadata = ObjectMeta(name=name, namespace=task.namespace, uid=task.uid)
        return ResourceClaim(metadata=metadata, spec=ResourceClaimSpec(devices=DeviceClaim(requests=[*requests])))

    def mapped(self, task: Task, info: NodeInfo) -> Sequence[Mapped]:
        """The assignment of the claim's requests to the pod's containers, whose names may differ within its class."""
        return wanted_of(task.pod.spec, tuple(info.served), self._classes).mapped

    # Claims -----------------------------------------------------------------------------------------------------------

    def made(self, uid: str) -> ResourceClaim | None:
        """The claim that was created for the extended resources of the pod with this UID."""
        stamp = self._facts.stamp(ResourceClaim)
        if stamp != self._claims_seen:
            self._claims_seen = stamp
            self._made = dict(_owned(self._facts.of(ResourceClaim).values()))
        return self._made.get(uid)


def _owned(claims: Iterable[ResourceClaim]) -> Iterable[tuple[str, ResourceClaim]]:
    for claim in claims:
        owner = pod_of(claim)
        if owner:
            yield owner, claim


def pod_of(claim: ResourceClaim) -> str:
    """The UID of the pod for whose extended resources the claim was created; empty for any other claim."""
    if (claim.metadata.annotations or {}).get(names.EXTENDED_RESOURCE_CLAIM) != "true":
        return ""
    return next((o.uid for o in claim.metadata.owner_references or () if o.controller and o.kind == "Pod"), "")


def _times(device: Device) -> int:
    """How often the device can be allocated to requests without capacity."""
    if not device.shared:
        return 1
    share = share_of(device.capacity, device.id.driver, {})
    if share is None:
        return 0
    fitting = (device.capacity[name].value.nano // amount.nano for name, amount in share.items() if amount.nano > 0)
    return min(fitting, default=MOST_SHARES)
