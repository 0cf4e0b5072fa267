"""Which devices are given to which claims, by the cluster and by decisions that it hasn't seen yet, and where a pod
with claims may go.

A claim gets its devices with the first pod that is placed; the pods after that go where these are reached. Nodes that
have alike devices in alike states are tried once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from vcbatch.api.dra import (
    AllocatedDevice,
    DeviceClass,
    DeviceRequest,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from vcbatch.scheduler.dra.allocation import allocation_of
from vcbatch.scheduler.dra.capacity import read_share
from vcbatch.scheduler.dra.counters import CounterId, CounterSetId
from vcbatch.scheduler.dra.inventory import Device, DeviceId, Inventory, reached
from vcbatch.scheduler.dra.ledger import Ledger
from vcbatch.scheduler.dra.search import (
    STEPS_PER_SECOND,
    Found,
    OutOfSteps,
    Picked,
    Search,
    fault_of,
    tolerations_of,
    ways_of,
)
from vcbatch.scheduler.filters.node_labels import NodeLabels
from vcbatch.scheduler.picture.facts import Facts
from vcbatch.scheduler.resources import Mask
from vcbatch.scheduler.result import DeviceBinding

if TYPE_CHECKING:
    from vcbatch.scheduler.picture.model import NodeInfo, Task

CANNOT_ALLOCATE: Final = "node(s) couldn't serve all resourceclaims"
LACKING: Final = "node(s) lacked the devices of a resourceclaim, even if nobody had any"
TAINTED: Final = "node(s) whose devices for a resourceclaim have the taint {%s}, which it doesn't tolerate"
ELSEWHERE: Final = "node(s) didn't reach the devices of a resourceclaim"
UNTOLD: Final = (
    "node(s) whose devices for a resourceclaim take counters that their pool lacks or have capacity that can't be read"
)
GIVEN_UP: Final = "node(s) on which the search for devices was given up"
_MOST_ANSWERS: Final = 1 << 14
MOST_CONSUMERS: Final = 256
"""How many pods may use one claim (Kubernetes)."""


class DeviceRejection(NamedTuple):
    """Nodes that a rule about devices refuses, shape [N]."""

    reason: str
    nodes: Mask


@dataclass(slots=True)
class _Given:
    """What a claim was given and the cluster doesn't say yet; `users` are UIDs of pods."""

    uid: str
    picks: Sequence[Picked]
    allocation: Mapping[str, Any]
    users: set[str] = field(default_factory=set[str])


class ClaimedDevices:
    """`enabled` where the policy has devices by claim; else what pods ask of them counts for nothing, as in Volcano."""

    def __init__(self, facts: Facts) -> None:
        self.enabled = False
        self.seconds = 10
        """How much work a search for devices may be, in seconds of `STEPS_PER_SECOND`."""
        self.patience = 600
        """Seconds that devices may take to be ready once they are given to somebody."""
        self._facts = facts
        self._infos: Sequence[NodeInfo] = ()
        self._labels = NodeLabels([])
        self._inventory = Inventory((), self._labels)
        self._stamps: tuple[int, ...] | None = None
        self._seen: object = None
        self._given: dict[str, _Given] = {}
        self._ledger = Ledger(self._inventory)
        self._keys: dict[object, int] = {}
        self._key_of: npt.NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._answers: dict[tuple[bytes, int], str] = {}
        self._lacking: dict[tuple[bytes, Hashable], str] = {}

    # What there is ----------------------------------------------------------------------------------------------------

    def relay(self, infos: Sequence[NodeInfo]) -> None:
        """The nodes were laid out anew, or their labels changed."""
        self._infos = infos
        self._labels = NodeLabels(infos)
        self._stamps = None

    def open(self, tasks: Mapping[str, Task]) -> None:
        """A cycle begins: what the cluster says by now needn't be remembered."""
        claims = self._facts.of(ResourceClaim)
        for key, given in list(self._given.items()):
            claim = claims.get(key)
            users = {uid for uid in given.users if uid in tasks and tasks[uid].node}
            known = claim is not None and claim.metadata.uid == given.uid
            if not users or not known or (claim is not None and claim.status.allocation is not None):
                del self._given[key]
            given.users = users
        if self._facts.of(ResourceClaim) or self._facts.of(ResourceSlice):
            self._take_stock()
        elif len(self._key_of) != len(self._infos):
            self._key_of = np.zeros(len(self._infos), dtype=np.intp)

    def _take_stock(self) -> None:
        stamps = tuple(self._facts.stamp(kind) for kind in (ResourceSlice, DeviceClass, DeviceTaintRule))
        seen = (stamps, self._facts.stamp(ResourceClaim), frozenset(self._given))
        if self._stamps is not None and seen == self._seen:
            return
        self._seen = seen
        if stamps != self._stamps:
            self._stamps = stamps
            rules = self._facts.of(DeviceTaintRule).values()
            self._inventory = Inventory(self._facts.of(ResourceSlice).values(), self._labels, rules)
            self._keys.clear()
            self._answers.clear()
            self._lacking.clear()
        self._ledger = Ledger(self._inventory)
        for claim in self._facts.of(ResourceClaim).values():
            allocation = claim.status.allocation
            for result in (allocation.devices.results or ()) if allocation is not None else ():
                self._count_theirs(result)
        for given in self._given.values():
            self._count(given.picks)
        self._key_of = np.array([self._key(info) for info in self._infos], dtype=np.intp)

    def _count_theirs(self, result: AllocatedDevice) -> None:
        device = DeviceId(result.driver, result.pool, result.device)
        share = read_share(result.driver, result.consumed_capacity) if result.share_id else None
        if not result.admin_access and (share is not None or not self._ledger.is_whole(device)):
            self._ledger.take(device, share)

    def _count(self, picks: Sequence[Picked]) -> None:
        for pick in picks:
            if not pick.admin:
                self._ledger.take(pick.device.id, pick.share)

    def _key(self, info: NodeInfo) -> int:
        """The number of the node's devices and their states: nodes with the same serve the same claims."""
        return self._keys.setdefault(self._state(info, self._ledger), len(self._keys))

    def _state(self, info: NodeInfo, ledger: Ledger) -> Hashable:
        number: dict[CounterId | CounterSetId, int] = {}
        free = tuple(
            (
                d.kind,
                ledger.state(d),
                tuple((number.setdefault(c, len(number)), amount, ledger.left(c)) for c, amount in d.draws),
                tuple((number.setdefault(s, len(number)), of, frozenset(ledger.together(s))) for s, of in d.groups),
            )
            for d in self._devices(info)
        )
        return free, frozenset(d.kind for d in self._inventory.refused(info.name, info.row))

    def _devices(self, info: NodeInfo) -> list[Device]:
        return self._inventory.on(info.name, info.row)

    # Where a pod may go -----------------------------------------------------------------------------------------------

    def couples(self, task: Task) -> bool:
        """Whether where the task may go depends on who has which device."""
        return self.enabled and bool(task.cls.spec.resource_claims)

    def rejections(self, task: Task) -> list[DeviceRejection]:
        """The nodes on which the pod's claims can't be served."""
        every = np.ones(len(self._infos), dtype=bool)
        keys, fault = self._claims_of(task)
        if fault:
            return [DeviceRejection(fault, every)]
        away = np.zeros(len(self._infos), dtype=bool)
        waiting: list[ResourceClaim] = []
        for key in keys:
            claim = self._facts.of(ResourceClaim)[key]
            selector = self._selector(key, claim)
            if selector is not None:
                away |= ~reached(self._labels, selector)
            elif not self._allocated(key, claim):
                waiting.append(claim)
        out = [DeviceRejection(ELSEWHERE, away)] if away.any() else []
        if waiting:
            out += self._unserved(waiting, ~away)
        return out

    def fault(self, task: Task) -> str:
        """Why the pod can't have its devices anywhere now; empty where it might."""
        return self._claims_of(task)[1] if self.couples(task) else ""

    def lacking(self, task: Task) -> Mask | None:
        """The nodes that couldn't serve the pod's claims if nobody had any device; None where it has no claims."""
        if not self.couples(task):
            return None
        found = [rejection.nodes for rejection in self.rejections(task) if rejection.reason == LACKING]
        return found[0] if found else np.zeros(len(self._infos), dtype=bool)

    def _claims_of(self, task: Task) -> tuple[list[str], str]:
        """The claims of a pod, and why it can't have them now."""
        keys: list[str] = []
        made = {s.get("name"): s.get("resourceClaimName") for s in task.pod.status.resource_claim_statuses or ()}
        classes = self._facts.of(DeviceClass)
        for entry in task.pod.spec.resource_claims or ():
            name = entry.get("resourceClaimName")
            if name is None:
                if entry.get("name") not in made:
                    return keys, f'resourceclaim "{entry.get("name")}" of the pod isn\'t made yet'
                name = made[entry.get("name")]
                if not name:
                    continue  # the pod needs none after all
            key = f"{task.namespace}/{name}"
            claim = self._facts.of(ResourceClaim).get(key)
            if claim is None:
                return keys, f'resourceclaim "{name}" not found'
            if claim.metadata.deletion_timestamp:
                return keys, f'resourceclaim "{name}" is being deleted'
            users = {consumer.uid for consumer in claim.status.reserved_for or ()}
            users |= self._given[key].users if key in self._given else set()
            if len(users | {task.uid}) > MOST_CONSUMERS:
                return keys, f'resourceclaim "{name}" has {MOST_CONSUMERS} users already'
            fault = "" if self._allocated(key, claim) else fault_of(claim, classes)
            if fault:
                return keys, fault
            keys.append(key)
        return keys, ""

    def _allocated(self, key: str, claim: ResourceClaim) -> bool:
        return claim.status.allocation is not None or key in self._given

    def _selector(self, key: str, claim: ResourceClaim) -> Mapping[str, Any] | None:
        """That of the nodes which reach what the claim has; None where all do, or it has nothing."""
        if claim.status.allocation is not None:
            return claim.status.allocation.node_selector
        return self._given[key].allocation.get("nodeSelector") if key in self._given else None

    def _unserved(self, claims: Sequence[ResourceClaim], asked: Mask) -> list[DeviceRejection]:
        """The nodes of those asked that lack the devices for these claims."""
        told = b"\0".join(msgspec.json.encode(claim.spec) for claim in claims)
        reasons: dict[str, Mask] = {}
        for number in np.unique(self._key_of[asked]):
            alike = self._key_of == number
            if len(self._answers) > _MOST_ANSWERS:
                self._answers.clear()
                self._lacking.clear()
            answer = self._answers.get((told, int(number)))
            if answer is None:
                info = self._infos[int(np.flatnonzero(alike)[0])]
                answer = self._answers[told, int(number)] = self._answer(info, claims, told)
            if answer:
                reasons[answer] = reasons.get(answer, np.zeros(len(alike), dtype=bool)) | alike
        return [DeviceRejection(reason, nodes) for reason, nodes in sorted(reasons.items())]

    def _answer(self, info: NodeInfo, claims: Sequence[ResourceClaim], told: bytes) -> str:
        """Why the node doesn't serve the claims, which `told` tells of; empty where it does."""
        try:
            if self._search(info, claims, self._ledger) is not None:
                return ""
            refused = self._inventory.refused(info.name, info.row)
            if any(self._wanted(refused, claims)):
                return UNTOLD
            return self._lacks(info, claims, told) or CANNOT_ALLOCATE
        except OutOfSteps:
            return GIVEN_UP

    def _lacks(self, info: NodeInfo, claims: Sequence[ResourceClaim], told: bytes) -> str:
        """Why the node couldn't serve the claims if nobody had any device of it; empty where it could. Told once for
        alike nodes."""
        nobody = Ledger(self._inventory)
        key = (told, self._state(info, nobody))
        known = self._lacking.get(key)
        if known is None:
            known = "" if self._search(info, claims, nobody) is not None else self._lack(info, claims, nobody)
            self._lacking[key] = known
        return known

    def _lack(self, info: NodeInfo, claims: Sequence[ResourceClaim], nobody: Ledger) -> str:
        """Whether the node has no such devices, or they have taints, of which the first is named."""
        wanted = self._wanted(self._devices(info), claims)
        taints = [taint for device, way in wanted if (taint := device.untolerated(tolerations_of(way))) is not None]
        if not taints or self._search(info, claims, nobody, tolerant=True) is None:
            return LACKING
        return TAINTED % (f"{taints[0].key}: {taints[0].value}" if taints[0].value else taints[0].key)

    def _wanted(
        self, devices: Sequence[Device], claims: Sequence[ResourceClaim]
    ) -> Iterator[tuple[Device, DeviceRequest]]:
        """Those of the devices that requests of the claims would take, taints and what is given away apart."""
        classes, chosen = self._facts.of(DeviceClass), self._inventory.chosen
        for claim in claims:
            for _, way in ways_of(claim):
                made = classes.get(way.device_class_name)
                selectors = [*((made.spec.selectors if made is not None else None) or ()), *(way.selectors or ())]
                yield from ((d, way) for d in devices if made is not None and chosen(selectors, d))

    def _search(
        self, info: NodeInfo, claims: Sequence[ResourceClaim], ledger: Ledger, *, tolerant: bool = False
    ) -> Found | None:
        classes = self._facts.of(DeviceClass)
        steps = self.seconds * STEPS_PER_SECOND
        devices = self._devices(info)
        return Search(self._inventory, devices, ledger, classes, steps=steps, tolerant=tolerant).run(claims)

    # What is decided --------------------------------------------------------------------------------------------------

    def place(self, task: Task, row: int) -> None:
        """The pod is placed on the node of this row: its claims get their devices, as far as they have none."""
        keys, fault = self._claims_of(task)
        if fault:
            return  # it waits for more than devices; nothing that is bound gets here
        claims = self._facts.of(ResourceClaim)
        waiting = [claims[key] for key in keys if not self._allocated(key, claims[key])]
        info = self._infos[row]
        try:
            found: Found | None = self._search(info, waiting, self._ledger) if waiting else {}
        except OutOfSteps:
            found = None
        for claim in waiting if found is not None else ():
            picks = tuple(found[claim.metadata.key]) if found else ()
            allocation = allocation_of(claim, picks, info.name, self._facts.of(DeviceClass))
            self._given[claim.metadata.key] = _Given(claim.metadata.uid, picks, allocation)
            self._count(picks)
            self._changed(picks, row)
        for key in keys:
            if key in self._given:
                self._given[key].users.add(task.uid)

    def take_back(self, task: Task, row: int) -> None:
        """The pod was taken back: devices that nobody else was given them for are free again."""
        for key, given in list(self._given.items()):
            if task.uid in given.users:
                given.users.discard(task.uid)
                if not given.users:
                    del self._given[key]
                    for pick in given.picks:
                        if not pick.admin:
                            self._ledger.give_back(pick.device.id, pick.share)
                    self._changed(given.picks, row)

    def _changed(self, picks: Sequence[Picked], row: int) -> None:
        if all(self._inventory.concerns_one_node(pick.device) for pick in picks):
            self._key_of[row] = self._key(self._infos[row])
        else:
            self._key_of = np.array([self._key(info) for info in self._infos], dtype=np.intp)

    def bindings(self, task: Task) -> tuple[DeviceBinding, ...]:
        """What is to be written to the claims of a pod that has its place, before it is bound."""
        if not self.couples(task):
            return ()
        keys, fault = self._claims_of(task)
        if fault:
            return ()
        claims = self._facts.of(ResourceClaim)
        return tuple(
            DeviceBinding(
                claims[key].metadata.namespace,
                claims[key].metadata.name,
                claims[key].metadata.uid,
                self._given[key].allocation if key in self._given else None,
                float(self.patience),
            )
            for key in keys
        )
