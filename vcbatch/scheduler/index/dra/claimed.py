"""The allocations of devices to claims, observed or decided and not observed yet, and the nodes for pods with claims.

A claim gets its devices with the first pod that is placed; further pods are placed where these are reached. Of nodes
with equal devices in equal states one is tried.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from vcbatch.api.dra import (
    DeviceClass,
    DeviceRequest,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from vcbatch.scheduler.index.dra.allocation import allocation_of
from vcbatch.scheduler.index.dra.given import Given, binding_of, count, count_theirs, uncount
from vcbatch.scheduler.index.dra.inventory import Inventory, reached
from vcbatch.scheduler.index.dra.ledger import DeviceLedger
from vcbatch.scheduler.index.dra.node_devices import CANNOT_ALLOCATE, GIVEN_UP, LACKING, NodeDevices
from vcbatch.scheduler.index.dra.search import (
    STEPS_PER_SECOND,
    Found,
    OutOfSteps,
    Picked,
    error_of,
)
from vcbatch.scheduler.index.dra.served import ServedResources, unmade_key
from vcbatch.scheduler.index.node_labels import NodeLabels
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.facts import Facts
from vcbatch.scheduler.model.objects import NodeInfo, Task
from vcbatch.scheduler.model.resources import Dimensions, Mask
from vcbatch.scheduler.model.result import DeviceBinding

ELSEWHERE: Final = "node(s) didn't reach the devices of a resourceclaim"
_TAKEN: Final = frozenset({CANNOT_ALLOCATE, GIVEN_UP})
_FEW_STEPS: Final = 2_000
_MOST_ANSWERS: Final = 1 << 14
MOST_CONSUMERS: Final = 256
"""How many pods may use one claim (Kubernetes)."""


class DeviceRejection(NamedTuple):
    """Nodes that a device rule rejects, shape [N]."""

    reason: str
    nodes: Mask


class DeviceDemand(NamedTuple):
    """A request for a number of devices. `claim` is the key of its claim, `kind` equal for requests that match the same
    devices."""

    claim: str
    kind: bytes
    request: DeviceRequest


class ClaimedDevices:
    """`enabled` if the scheduler configuration handles device claims; otherwise the device claims of pods are ignored,
    as in Volcano."""

    def __init__(self, facts: Facts) -> None:
        self.enabled = False
        self.seconds = 10
        """The budget of a search for devices, in seconds of `STEPS_PER_SECOND`."""
        self.patience = 600
        """The seconds that devices may take to become ready after their allocation."""
        self.served = ServedResources(facts)
        """The devices of pods without a claim of their own."""
        self._facts = facts
        self._infos: Sequence[NodeInfo] = ()
        self._labels = NodeLabels([])
        self._inventory = Inventory((), self._labels)
        self._nodes = NodeDevices(self._inventory, facts.of(DeviceClass))
        self._stamps: tuple[int, ...] | None = None
        self._seen: object = None
        self._given: dict[str, Given] = {}
        self._loose: dict[str, dict[str, int]] = {}
        self._ledger = DeviceLedger(self._inventory)
        self._keys: dict[object, int] = {}
        self._key_of: npt.NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._answers: dict[tuple[bytes, int], str] = {}
        self._matching: dict[bytes, Floats] = {}

    # Observed state ---------------------------------------------------------------------------------------------------

    def relay(self, infos: Sequence[NodeInfo]) -> None:
        """The node table was rearranged, or labels of nodes changed."""
        self._infos = infos
        self._labels = NodeLabels(infos)
        self._stamps = None
        self.served.changed()

    def offer(self, dims: Dimensions) -> list[NodeInfo]:
        """Compute the extended resources that nodes provide by devices. Returns the nodes for which they changed."""
        return self.served.offer(self._infos, self._take_inventory, dims, enabled=self.enabled)

    def open(self, tasks: Mapping[str, Task]) -> None:
        """Begin a cycle: drop the decisions that are observed by now."""
        claims = self._facts.of(ResourceClaim)
        for key, given in list(self._given.items()):
            claim = claims.get(key)
            users = {uid for uid in given.users if uid in tasks and tasks[uid].node}
            if given.unmade is not None:
                claim = self.served.made(given.uid)
                known = True
            else:
                known = claim is not None and claim.metadata.uid == given.uid
            if not users or not known or (claim is not None and claim.status.allocation is not None):
                del self._given[key]
            given.users = users
        self._loose.clear()
        if self._facts.of(ResourceClaim) or self._facts.of(ResourceSlice):
            self._take_stock()
        elif len(self._key_of) != len(self._infos):
            self._key_of = np.zeros(len(self._infos), dtype=np.intp)

    def _take_inventory(self) -> Inventory:
        stamps = tuple(self._facts.stamp(kind) for kind in (ResourceSlice, DeviceClass, DeviceTaintRule))
        if stamps != self._stamps:
            self._stamps, self._seen = stamps, None
            rules = self._facts.of(DeviceTaintRule).values()
            self._inventory = Inventory(self._facts.of(ResourceSlice).values(), self._labels, rules)
            self._nodes = NodeDevices(self._inventory, self._facts.of(DeviceClass))
            self._keys.clear()
            self._answers.clear()
            self._matching.clear()
        return self._inventory

    def _take_stock(self) -> None:
        self._take_inventory()
        seen = (self._stamps, self._facts.stamp(ResourceClaim), self.served.stamp, frozenset(self._given))
        if seen == self._seen:
            return
        self._seen = seen
        self._ledger = DeviceLedger(self._inventory)
        for claim in self._facts.of(ResourceClaim).values():
            allocation = claim.status.allocation
            for result in (allocation.devices.results or ()) if allocation is not None else ():
                count_theirs(self._ledger, result)
        for given in self._given.values():
            count(self._ledger, given.picks)
        self._key_of = np.array([self._key(info) for info in self._infos], dtype=np.intp)

    def _key(self, info: NodeInfo) -> int:
        """The number of the node's devices and their states: nodes with equal numbers serve the same claims."""
        state = (self._nodes.state(info, self._ledger), *info.served)
        return self._keys.setdefault(state, len(self._keys))

    @property
    def _steps(self) -> int:
        return self.seconds * STEPS_PER_SECOND

    # Nodes for pods ---------------------------------------------------------------------------------------------------

    def couples(self, task: Task) -> bool:
        """Whether the placement of the task depends on the allocations of devices."""
        return self.asked(task.cls)

    def asked(self, cls: TaskClass) -> bool:
        """Whether pods of the class get devices by claim: by claims that they name, or for extended resources."""
        return self.enabled and self.concerns(cls)

    def concerns(self, cls: TaskClass) -> bool:
        """As `asked`, whether or not the scheduler configuration handles device claims."""
        return bool(cls.spec.resource_claims) or self.served.asked(cls)

    def rejections(self, task: Task) -> list[DeviceRejection]:
        """The nodes on which the pod's claims can't be allocated."""
        every = np.ones(len(self._infos), dtype=bool)
        keys, error = self._claims_of(task)
        if error:
            return [DeviceRejection(error, every)]
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
        if waiting or self.served.asked(task.cls):
            out += self._rearranged(task, waiting, self._unserved(task, waiting, ~away))
        return out

    def kind_of(self, task: Task) -> Hashable:
        """A key that is equal for pods whose claims have the same requests."""
        claims = self._facts.of(ResourceClaim)
        specs = tuple(msgspec.json.encode(claims[key].spec) for key in self._claims_of(task)[0])
        return (*specs, task.cls.id) if self.served.asked(task.cls) else specs

    def points(self, task: Task, rows: Rows) -> Floats | None:
        """A score up to 100, the higher the earlier the alternatives are in their lists that the pod's claims would get
        on these nodes; None if that makes no difference. Source: kube-scheduler's DynamicResources, Score."""
        keys, _ = self._claims_of(task)
        claims = [self._facts.of(ResourceClaim)[key] for key in keys]
        waiting = [claim for key, claim in zip(keys, claims, strict=True) if not self._allocated(key, claim)]
        if not any(request.first_available for claim in waiting for request in claim.spec.devices.requests or ()):
            return None
        numbers, of = np.unique(self._key_of[rows], return_inverse=True)
        firsts = [int(rows[int(np.flatnonzero(of == nth)[0])]) for nth in range(len(numbers))]
        found = np.array(
            [
                self._nodes.rank(info, self._with_unmade(task, waiting, info), self._ledger, steps=self._steps)
                for info in map(self._infos.__getitem__, firsts)
            ]
        )
        return np.floor(found[of] * 100.0 / found.max()) if found.any() else None

    def alike(self, task: Task, row: int) -> Mask:
        """The nodes whose devices are equivalent to those of this row's node for the pod's gang, this node included."""
        loose = set(self._loose.get(self._gang_of(task), {}).values())
        alike = self._key_of == self._key_of[row] if row not in loose else np.zeros(len(self._key_of), dtype=bool)
        alike[sorted(loose)] = False
        alike[row] = True
        return alike

    def error(self, task: Task) -> str:
        """Why the pod can't have its devices anywhere now; empty if it might."""
        return self._claims_of(task)[1] if self.couples(task) else ""

    def lacking(self, task: Task) -> Mask | None:
        """The nodes that couldn't serve the pod's claims even without other allocations; None if it has no claims."""
        if not self.couples(task):
            return None
        found = [rejection.nodes for rejection in self.rejections(task) if rejection.reason == LACKING]
        if not found:
            return np.zeros(len(self._infos), dtype=bool)
        # Shortages of a node are reported like those of other resources.
        return found[0] & ~np.fromiter((self.served.short(task.cls, info) for info in self._infos), dtype=bool)

    def demands(self, task: Task) -> list[DeviceDemand]:
        """The requests for a number of devices in claims of the pod that have no devices yet. Requests with
        alternatives, for all devices or for administrative access are left out."""
        if not self.couples(task):
            return []
        claims = {key: claim for key in self._claims_of(task)[0] if not self._allocated(key, claim := self._claim(key))}
        return [
            DeviceDemand(key, _kind(request.exactly), request.exactly)
            for key, claim in claims.items()
            for request in claim.spec.devices.requests or ()
            if request.exactly is not None
            and request.exactly.allocation_mode != "All"
            and not request.exactly.admin_access
        ]

    def matching(self, demand: DeviceDemand) -> Floats:
        """How many devices of each node match the request, regardless of taints and allocations; infinite if one of
        them can be shared; [N]. Computed once for each kind and state of the devices."""
        found = self._matching.get(demand.kind)
        if found is None:
            counts = [self._nodes.matching(info, demand.request) for info in self._infos]
            found = self._matching[demand.kind] = np.array(counts, dtype=np.float64)
        return found

    def _claims_of(self, task: Task) -> tuple[list[str], str]:
        """The claims of a pod, and why it can't have them now."""
        keys: list[str] = []
        earlier = self.served.made(task.uid)
        if earlier is not None and not task.node:
            return keys, f'resourceclaim "{earlier.metadata.name}" of an earlier attempt to place it is still there'
        made = {s.get("name"): s.get("resourceClaimName") for s in task.pod.status.resource_claim_statuses or ()}
        classes = self._facts.of(DeviceClass)
        for entry in task.pod.spec.resource_claims or ():
            name = entry.get("resourceClaimName")
            templated = name is None
            if name is None:
                if entry.get("name") not in made:
                    return keys, f'resourceclaim "{entry.get("name")}" of the pod isn\'t made yet'
                name = made[entry.get("name")]
                if not name:
                    continue  # the pod needs none
            key = f"{task.namespace}/{name}"
            claim = self._facts.of(ResourceClaim).get(key)
            if claim is None:
                return keys, f'resourceclaim "{name}" not found'
            if claim.metadata.deletion_timestamp:
                return keys, f'resourceclaim "{name}" is being deleted'
            if templated and not any(o.controller and o.uid == task.uid for o in claim.metadata.owner_references or ()):
                return keys, f'resourceclaim "{name}" wasn\'t made for the pod'
            users = {consumer.uid for consumer in claim.status.reserved_for or ()}
            users |= self._given[key].users if key in self._given else set()
            if len(users | {task.uid}) > MOST_CONSUMERS:
                return keys, f'resourceclaim "{name}" has {MOST_CONSUMERS} users already'
            error = "" if self._allocated(key, claim) else error_of(claim, classes)
            if error:
                return keys, error
            keys.append(key)
        return keys, ""

    def _allocated(self, key: str, claim: ResourceClaim) -> bool:
        return claim.status.allocation is not None or key in self._given

    def _selector(self, key: str, claim: ResourceClaim) -> Mapping[str, Any] | None:
        """The selector of the nodes that reach the claim's devices; None if all do, or it has none."""
        if claim.status.allocation is not None:
            return claim.status.allocation.node_selector
        return self._given[key].allocation.get("nodeSelector") if key in self._given else None

    def _with_unmade(self, task: Task, claims: Sequence[ResourceClaim], info: NodeInfo) -> Sequence[ResourceClaim]:
        """These claims with that for the pod's extended resources, if it needs one on the node."""
        unmade = self.served.claim(task, info)
        return claims if unmade is None else [*claims, unmade]

    def _claim(self, key: str) -> ResourceClaim:
        """An existing claim, or one that is to be created and has devices allocated by a decision."""
        given = self._given.get(key)
        return given.unmade if given is not None and given.unmade is not None else self._facts.of(ResourceClaim)[key]

    def _unserved(self, task: Task, named: Sequence[ResourceClaim], asked: Mask) -> list[DeviceRejection]:
        """The nodes among `asked` that lack the devices for these claims and the pod's extended resources."""
        reasons: dict[str, Mask] = {}
        for number in np.unique(self._key_of[asked]):
            alike = self._key_of == number
            info = self._infos[int(np.flatnonzero(alike)[0])]
            claims = self._with_unmade(task, named, info)
            if not claims:
                continue
            specs = b"\0".join(msgspec.json.encode(claim.spec) for claim in claims)
            if len(self._answers) > _MOST_ANSWERS:
                self._answers.clear()
            answer = self._answers.get((specs, int(number)))
            if answer is None:
                answer = self._answers[specs, int(number)] = self._nodes.answer(
                    info, claims, specs, self._ledger, steps=self._steps
                )
            if answer:
                reasons[answer] = reasons.get(answer, np.zeros(len(alike), dtype=bool)) | alike
        return [DeviceRejection(reason, nodes) for reason, nodes in sorted(reasons.items())]

    def _rearranged(
        self, task: Task, named: Sequence[ResourceClaim], found: list[DeviceRejection]
    ) -> list[DeviceRejection]:
        """The rejections without the nodes on which the claims fit if members of the gang whose allocations haven't
        been sent yet change their devices there."""
        gang = self._gang_of(task)
        for row in sorted(set(self._loose.get(gang, {}).values())):
            for rejection in found:
                if (
                    rejection.reason in _TAKEN
                    and rejection.nodes[row]
                    and self._together(gang, self._with_unmade(task, named, self._infos[row]), row) is not None
                ):
                    rejection.nodes[row] = False
        return [rejection for rejection in found if rejection.nodes.any()]

    def _together(self, gang: str, claims: Sequence[ResourceClaim], row: int) -> Found | None:
        """Devices for these claims together with those that the gang was given on the node; None if not all fit. The
        search has few steps, because it often fails."""
        info = self._infos[row]
        loose = [key for key, at in self._loose.get(gang, {}).items() if at == row]
        order = {device.id: nth for nth, device in enumerate(self._nodes.on(info))}
        picks = [pick for key in loose for pick in self._given[key].picks]
        specs = b"\0".join(msgspec.json.encode(claim.spec) for claim in (*map(self._claim, loose), *claims))
        places = repr([(order.get(pick.device.id, pick.device.id), pick.share, pick.admin) for pick in picks])
        key = (b"\0".join((specs, places.encode())), int(self._key_of[row]))
        if key in self._answers:
            return None
        uncount(self._ledger, picks)
        try:
            found = self._nodes.search(info, [*map(self._claim, loose), *claims], self._ledger, steps=_FEW_STEPS)
        except OutOfSteps:
            found = None
        count(self._ledger, picks)
        if found is None:
            self._answers[key] = CANNOT_ALLOCATE
        return found

    @staticmethod
    def _gang_of(task: Task) -> str:
        return task.job.key if task.job is not None else task.uid

    # Decisions --------------------------------------------------------------------------------------------------------

    def place(self, task: Task, row: int) -> None:
        """Place the pod on the node of this row: its claims without devices get them."""
        keys, error = self._claims_of(task)
        if error:
            return  # it waits for more than devices; pods to be bound don't get here
        info, named = self._infos[row], [self._claim(key) for key in keys]
        waiting = self._with_unmade(
            task, [claim for key, claim in zip(keys, named, strict=True) if not self._allocated(key, claim)], info
        )
        claims = {claim.metadata.key: claim for claim in waiting}
        try:
            found: Found | None = {}
            if waiting:
                found = self._nodes.search(info, waiting, self._ledger, steps=self._steps)
        except OutOfSteps:
            found = None
        gang = self._gang_of(task)
        if found is None:
            found = self._together(gang, waiting, row)
        loose = self._loose.setdefault(gang, {})
        for key in (found or {}).keys() & loose.keys():
            uncount(self._ledger, self._given[key].picks)
            self._changed(self._given[key].picks, row)
        for key, chosen in (found or {}).items():
            claim, picks = claims.get(key) or self._claim(key), tuple(chosen)
            allocation = allocation_of(claim, picks, info.name, self._facts.of(DeviceClass))
            given = self._given.setdefault(key, Given(claim.metadata.uid))
            given.picks, given.allocation = picks, allocation
            if key not in self._facts.of(ResourceClaim) and given.unmade is None:
                given.unmade, given.mapped = claim, self.served.mapped(task, info)
            loose[key] = row
            count(self._ledger, picks)
            self._changed(picks, row)
        for key in (*keys, unmade_key(task)):
            if key in self._given:
                self._given[key].users.add(task.uid)

    def take_back(self, task: Task, row: int) -> None:
        """Roll back the pod's placement: devices that no other pod's claims use are free again."""
        for key, given in list(self._given.items()):
            if task.uid in given.users:
                given.users.discard(task.uid)
                if not given.users:
                    del self._given[key]
                    self._loose.get(self._gang_of(task), {}).pop(key, None)
                    uncount(self._ledger, given.picks)
                    self._changed(given.picks, row)

    def _changed(self, picks: Sequence[Picked], row: int) -> None:
        self._seen = None  # what is allocated now may be dropped before the next cycle
        if all(self._inventory.concerns_one_node(pick.device) for pick in picks):
            self._key_of[row] = self._key(self._infos[row])
        else:
            self._key_of = np.array([self._key(info) for info in self._infos], dtype=np.intp)

    def bindings(self, task: Task) -> tuple[DeviceBinding, ...]:
        """What is to be written to the claims of a placed pod before it is bound. From now on they keep their
        devices."""
        if not self.couples(task):
            return ()
        keys, error = self._claims_of(task)
        if error:
            return ()
        unmade = unmade_key(task)
        if unmade in self._given:
            keys.append(unmade)
        for key in keys:
            self._loose.get(self._gang_of(task), {}).pop(key, None)
        return tuple(binding_of(task, self._claim(key), self._given.get(key), self.patience) for key in keys)


def _kind(request: DeviceRequest) -> bytes:
    """The encoded class and selectors, which decide which devices match."""
    return msgspec.json.encode((request.device_class_name, request.selectors or ()))
