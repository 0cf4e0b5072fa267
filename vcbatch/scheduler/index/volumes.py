"""The nodes for pods with volume claims: with bound volumes, volumes to be bound, and volumes to be provisioned.

The rules are those of kube-scheduler's VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits (1.36), in
its words. Bound claims depend on properties of nodes alone, so their pods are placed like any others. Claims that are
bound on the node of their first consumer, that one pod at a time may use, or whose driver has volume limits, depend on
the pods on nodes: such pods are placed one at a time.

One rule differs: members of a gang that share a claim whose volume is to be provisioned, and which many nodes may
mount, may use every node that their class allows, not only the node that it is provisioned for. A gang starts as a
whole, so no member could wait for the volume first, and a gang larger than a node would never start. Whether the
provisioned volume is reached from all nodes is checked when it is bound (`admits`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from vcbatch.api.storage import AccessMode, BindingMode, Claim, ClaimPhase, PersistentVolume
from vcbatch.scheduler.index.volume_reach import VolumeReach
from vcbatch.scheduler.model.facts import Facts
from vcbatch.scheduler.model.objects import NodeInfo, Task
from vcbatch.scheduler.model.resources import Mask
from vcbatch.scheduler.model.result import ClaimBinding, WaitReason
from vcbatch.scheduler.model.storage_objects import (
    StorageObject,
    StorageObjects,
    by_size,
    is_bound,
    is_exclusive,
    selected_node,
    size_of,
    suits,
)

Amounts: TypeAlias = npt.NDArray[np.float64]

BIND_CONFLICT: Final = "node(s) didn't find available persistent volumes to bind"
NODE_CONFLICT: Final = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
NO_ZONE: Final = "node(s) had no available volume zone"
IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
TOO_MANY: Final = "node(s) exceed max volume count"
NO_SPACE: Final = "node(s) did not have enough free storage"
UNBOUND: Final = "pod has unbound immediate PersistentVolumeClaims"

_SHARED: Final = frozenset({AccessMode.READ_WRITE_MANY, AccessMode.READ_ONLY_MANY})
_PROVISIONED: Final = ""
"""Chosen for a claim whose volume is to be provisioned."""


class VolumeRejection(NamedTuple):
    """Nodes that a volume rule rejects, shape [N]; `word` is the pending reason of a gang that waits for it."""

    reason: str
    nodes: Mask
    word: WaitReason = WaitReason.VOLUME_BINDING


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeRules:
    """Which rules are enabled: `binding` whether unbound claims are bound here and bound ones restrict nodes by their
    volume, `zones` by its labels, `limits` the volume limits of drivers. `timeout` is how many seconds provisioning may
    take."""

    binding: bool = True
    zones: bool = True
    limits: bool = True
    timeout: float = 600.0


class VolumeIndex:
    """Which pods use which claim on which node, and so the nodes for pods with claims.

    `stamp` grows with every change of an object.
    """

    def __init__(self, facts: Facts) -> None:
        self.stamp = 0
        self.rules = VolumeRules()
        self._objects = StorageObjects()
        self._claims = self._objects.claims
        self._volumes = self._objects.volumes
        self._reach = VolumeReach(facts)
        self._users: dict[str, dict[str, str]] = {}  # claim -> pod UID -> node
        self._chosen: dict[str, str] = {}  # unbound claim -> its chosen volume
        self._candidates: dict[str, list[str]] = {}

    # Objects ----------------------------------------------------------------------------------------------------------

    def put(self, obj: StorageObject) -> bool:
        """Add or update an object; returns whether that may change a decision."""
        if not self._objects.put(obj):
            return False
        if isinstance(obj, Claim) and is_bound(obj):
            self._chosen.pop(obj.metadata.key, None)
        self._changed(obj)
        return True

    def drop(self, obj: StorageObject) -> bool:
        """Remove a deleted object; returns whether that may change a decision."""
        if not self._objects.drop(obj):
            return False
        if isinstance(obj, Claim):
            self._chosen.pop(obj.metadata.key, None)
        self._changed(obj)
        return True

    def _changed(self, obj: StorageObject) -> None:
        self.stamp += 1
        self._candidates.clear()
        if isinstance(obj, PersistentVolume):
            self._reach.forget(obj.metadata.name)

    def relay(self, infos: Sequence[NodeInfo]) -> None:
        """The node table was rearranged, or labels of nodes changed."""
        self._reach.relay(infos)

    # Usage ------------------------------------------------------------------------------------------------------------

    def moved(self, task: Task, node: str, step: int) -> None:
        """A pod was added to (`step` 1) or removed from (-1) a node."""
        for key in task.cls.profile.claims:
            users = self._users.setdefault(key, {})
            if step > 0:
                users[task.uid] = node
            else:
                users.pop(task.uid, None)
                if not users:
                    del self._users[key]
                    self._chosen.pop(key, None)

    def choose(self, task: Task, row: int) -> None:
        """A pod is placed on the node at `row`: choose the volumes of its unbound claims."""
        open_ = self._to_match(task.cls.profile.claims)
        _, picks = self._match(open_, rows=np.array([row]))
        names = {key: self._candidate_names(key) for key in open_}
        for key in self._waiting(task.cls.profile.claims):
            if key not in self._chosen:
                found = key in picks and picks[key][0] >= 0
                self._chosen[key] = names[key][int(picks[key][0])] if found else _PROVISIONED

    def couples(self, claims: Sequence[str]) -> bool:
        """Whether the nodes for a pod with these claims depend on the pods on nodes."""
        return any(self._couples(key) for key in claims)

    def _couples(self, key: str) -> bool:
        claim = self._claims.get(key)
        if claim is None:
            return False
        limited = self.rules.limits and self._objects.driver_of(claim) in self._objects.limits
        return is_exclusive(claim) or (self.rules.binding and not is_bound(claim)) or limited

    def bindings(self, task: Task, node: str) -> list[ClaimBinding]:
        """The claims to be bound before this placed pod is."""
        out: list[ClaimBinding] = []
        for key in self._waiting(task.cls.profile.claims):
            meta = self._claims[key].metadata
            place = next(iter(self._users.get(key, {}).values()), node)
            chosen = self._chosen.get(key, _PROVISIONED)
            out.append(ClaimBinding(meta.namespace, meta.name, meta.uid, chosen, place, self.rules.timeout))
        return out

    # Results ----------------------------------------------------------------------------------------------------------

    def error(self, claims: Sequence[str]) -> str:
        """Why no pod with these claims can run anywhere now, in kube-scheduler's words for each claim; empty if one
        may."""
        return "; ".join(filter(None, map(self._error, dict.fromkeys(claims))))

    def _error(self, key: str) -> str:
        name = key.partition("/")[2]
        claim = self._claims.get(key)
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim.status.phase == ClaimPhase.LOST:
            volume = claim.spec.volume_name
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
        if claim.metadata.deletion_timestamp:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if is_bound(claim) or not self.rules.binding:
            return ""
        made = self._objects.class_of(claim)
        waits = made is not None and made.volume_binding_mode == BindingMode.WAIT_FOR_FIRST_CONSUMER
        return "" if waits and not claim.spec.volume_name else UNBOUND

    def rejections(self, claims: Sequence[str]) -> list[VolumeRejection]:
        """The nodes from which the bound claims can't be reached; the same for the whole class."""
        out: list[VolumeRejection] = []
        error = self.error(claims)
        if error:
            return [VolumeRejection(error, self._reach.all(), WaitReason.VOLUMES)]
        for key in claims:
            claim = self._claims[key]
            if not is_bound(claim):
                continue
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is None:
                out.append(VolumeRejection(NO_VOLUME, self._reach.all()))
                continue
            if self.rules.binding:
                out.append(VolumeRejection(NODE_CONFLICT, ~self._reach.reached(volume)))
            if self.rules.zones:
                out.append(VolumeRejection(NO_ZONE, ~self._reach.in_zone(volume), WaitReason.VOLUME_ZONE))
        return [rejection for rejection in out if rejection.nodes.any()]

    def task_rejections(self, task: Task) -> list[VolumeRejection]:
        """The nodes that are rejected because of the pods on nodes."""
        claims = task.cls.profile.claims
        if self.error(claims):
            return []
        out: list[VolumeRejection] = []
        single = (key for key in claims if is_exclusive(self._claims[key]))
        if any(self._users.get(key, {}).keys() - {task.uid} for key in single):
            out.append(VolumeRejection(IN_USE, self._reach.all(), WaitReason.VOLUME_RESTRICTIONS))
        waiting = self._waiting(claims)
        if waiting:
            bindable = self._bindable(waiting, anywhere=True)
            out.append(VolumeRejection(BIND_CONFLICT, ~bindable))
            if any(self._reach.room(self._objects.class_of(self._claims[key])) is not None for key in waiting):
                out.append(VolumeRejection(NO_SPACE, bindable & ~self._bindable(waiting, anywhere=False)))
        if self._objects.limits and self.rules.limits:
            out.append(VolumeRejection(TOO_MANY, self._full(claims), WaitReason.NODE_VOLUME_LIMITS))
        return [rejection for rejection in out if rejection.nodes.any()]

    def admits(self, task: Task) -> str:
        """Why the node of a placed pod doesn't reach its claims as they are bound by now; empty if it does."""
        error = self.error(task.cls.profile.claims)
        if error:
            return error
        row = self._reach.labels.row(task.node)
        refused = [r.reason for r in self.rejections(task.cls.profile.claims) if row is not None and r.nodes[row]]
        return refused[0] if refused else ""

    # Unbound claims ---------------------------------------------------------------------------------------------------

    def _waiting(self, claims: Sequence[str]) -> list[str]:
        """The claims that are bound on the node of their first consumer, and aren't bound yet."""
        if not self.rules.binding:
            return []
        return [key for key in claims if key in self._claims and not is_bound(self._claims[key])]

    def _to_match(self, claims: Sequence[str]) -> list[str]:
        """The waiting claims without a chosen volume, the smallest first, as in kube-scheduler."""
        open_ = [
            key for key in self._waiting(claims) if key not in self._chosen and not selected_node(self._claims[key])
        ]
        return sorted(open_, key=lambda key: (size_of(self._claims[key]), key))

    def _bindable(self, waiting: list[str], *, anywhere: bool) -> Mask:
        """The nodes on which all of these can be bound; `anywhere` ignores storage capacity for volumes to be
        provisioned."""
        mask = self._reach.all()
        for key in waiting:
            claim = self._claims[key]
            node = next(iter(self._users.get(key, {}).values()), "") or selected_node(claim)
            chosen = self._chosen.get(key, _PROVISIONED)
            if chosen != _PROVISIONED and chosen in self._volumes:
                mask &= self._reach.reached(self._volumes[chosen])
            elif node and _SHARED & set(claim.spec.access_modes or ()):
                mask &= self._makeable(claim, anywhere=anywhere)
            elif node:
                mask &= self._reach.labels.named(node)
        return mask & self._match(self._to_match(waiting), anywhere=anywhere)[0]

    def _match(
        self, keys: list[str], *, rows: npt.NDArray[np.intp] | None = None, anywhere: bool = False
    ) -> tuple[Mask, dict[str, npt.NDArray[np.intp]]]:
        """On which nodes (all, or `rows`) each of these claims finds a volume of its own, or can have one provisioned;
        and the volume on each of them, by its index among the candidates, -1 if one is provisioned or none exists."""
        rows = np.arange(self._reach.labels.count, dtype=np.intp) if rows is None else rows
        fits = np.ones(len(rows), dtype=bool)
        taken: dict[str, Mask] = {}
        picks: dict[str, npt.NDArray[np.intp]] = {}
        for key in keys:
            names = self._candidate_names(key)
            best = np.full(len(rows), -1, dtype=np.intp)
            for place in range(len(names) - 1, -1, -1):
                free = self._reach.reached(self._volumes[names[place]])[rows]
                best[free & ~taken[names[place]] if names[place] in taken else free] = place
            for place in np.unique(best[best >= 0]):
                name = names[int(place)]
                taken[name] = taken.get(name, np.zeros(len(rows), dtype=bool)) | (best == place)
            fits &= (best >= 0) | self._makeable(self._claims[key], anywhere=anywhere)[rows]
            picks[key] = best
        return fits, picks

    def _candidate_names(self, key: str) -> list[str]:
        """The volumes that a claim may be bound to, the best first: one that is reserved for it, else the smallest."""
        known = self._candidates.get(key)
        if known is None:
            claim = self._claims[key]
            known = self._candidates[key] = [
                volume.metadata.name for volume in sorted(self._volumes.values(), key=by_size) if suits(volume, claim)
            ]
            known.sort(key=lambda name: self._volumes[name].spec.claim_ref is None)
        others = {volume for other, volume in self._chosen.items() if other != key and volume != _PROVISIONED}
        return [name for name in known if name not in others] if others else known

    def _makeable(self, claim: Claim, *, anywhere: bool) -> Mask:
        """The nodes for which a volume can be provisioned for the claim; `anywhere` as for `_bindable`."""
        made = self._objects.class_of(claim)
        mask = self._reach.makeable(made)
        return mask if anywhere else mask & self._reach.spacious(made, size_of(claim))

    def utilisation(self, task: Task, rows: npt.NDArray[np.intp]) -> list[tuple[Amounts, Amounts]]:
        """By storage class, the size requested by the task's unbound claims on these nodes, and the size of the volumes
        that they would get or the capacity that these would be provisioned from; both [M], 0 without a request. A node
        with existing volumes for the claims counts these alone."""
        keys = self._to_match(self._waiting(task.cls.profile.claims))
        _, picks = self._match(keys, rows=rows)
        given: dict[str, tuple[Amounts, Amounts]] = {}
        made: dict[str, tuple[Amounts, Amounts]] = {}
        static = np.zeros(len(rows), dtype=bool)
        for key in keys:
            claim, best = self._claims[key], picks[key]
            name, size = claim.spec.storage_class_name or "", size_of(claim)
            found = best >= 0
            static |= found
            sizes = np.array([by_size(self._volumes[v])[0] for v in self._candidate_names(key)] or [0], dtype=float)
            asked, held = given.setdefault(name, (np.zeros(len(rows)), np.zeros(len(rows))))
            asked += np.where(found, size, 0.0)
            held += np.where(found, sizes[np.maximum(best, 0)], 0.0)
            room = self._reach.room(self._objects.class_of(claim))
            if room is not None:
                asked, held = made.setdefault(name, (np.zeros(len(rows)), np.zeros(len(rows))))
                asked += np.where(found, 0.0, size)
                held[:] = room.capacity[rows]
        return [
            *((np.where(static, asked, 0.0), held) for asked, held in given.values()),
            *((np.where(static, 0.0, asked), held) for asked, held in made.values()),
        ]

    # Volume limits ----------------------------------------------------------------------------------------------------

    def _full(self, claims: Sequence[str]) -> Mask:
        """The nodes on which a driver's volume limit would be exceeded with these claims. A claim counts once for all
        the pods of a node."""
        over = np.zeros(self._reach.labels.count, dtype=bool)
        for driver in {self._objects.driver_of(self._claims[key]) for key in claims} & self._objects.limits.keys():
            attached = np.zeros(self._reach.labels.count)
            for key in {*self._users, *claims}:
                claim = self._claims.get(key)
                if claim is None or self._objects.driver_of(claim) != driver:
                    continue
                on = np.zeros(self._reach.labels.count, dtype=bool)
                for node in set(self._users.get(key, {}).values()):
                    on |= self._reach.labels.named(node)
                attached += 1.0 if key in claims else on
            limits = np.full(self._reach.labels.count, np.inf)
            for node, most in self._objects.limits[driver].items():
                limits[self._reach.labels.named(node)] = most
            over |= attached > limits
        return over
