"""PersistentVolumeClaims, PersistentVolumes and StorageClasses as the API server has them, and which volume suits a
claim."""

from __future__ import annotations

from typing import TypeAlias

from vcbatch.api.names import BIND_COMPLETED, SELECTED_NODE
from vcbatch.api.quantity import MalformedQuantity, parse_quantity
from vcbatch.api.storage import AccessMode, Claim, ClaimPhase, CsiNode, PersistentVolume, StorageClass
from vcbatch.scheduler.model.selectors import LabelSelector

StorageObject: TypeAlias = Claim | PersistentVolume | StorageClass | CsiNode


class StorageObjects:
    """The storage objects of the cluster. Of a node's CSI drivers only their volume limits are kept.

    Attributes:
        claims: by `namespace/name`.
        volumes: by name.
        classes: by name.
        limits: by driver and node, how many volumes it can attach there; a driver without a limit can attach any
            number.
    """

    def __init__(self) -> None:
        self.claims: dict[str, Claim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.limits: dict[str, dict[str, int]] = {}

    def put(self, obj: StorageObject) -> bool:
        """Add or update an object; returns whether that may change a decision."""
        match obj:
            case Claim():
                before = self.claims.get(obj.metadata.key)
                self.claims[obj.metadata.key] = obj
                return before is None or _read_of_claim(before) != _read_of_claim(obj)
            case PersistentVolume():
                known = self.volumes.get(obj.metadata.name)
                self.volumes[obj.metadata.name] = obj
                return known is None or _read_of_volume(known) != _read_of_volume(obj)
            case StorageClass():
                made = self.classes.get(obj.metadata.name)
                self.classes[obj.metadata.name] = obj
                return made is None or _read_of_class(made) != _read_of_class(obj)
            case CsiNode():
                return self._limit(obj.metadata.name, _attached_at_most(obj))

    def drop(self, obj: StorageObject) -> bool:
        """Remove a deleted object; returns whether that may change a decision. A claim of the same name with another
        UID is kept."""
        match obj:
            case Claim():
                known = self.claims.get(obj.metadata.key)
                if known is None or known.metadata.uid != obj.metadata.uid:
                    return False
                del self.claims[obj.metadata.key]
                return True
            case PersistentVolume():
                return self.volumes.pop(obj.metadata.name, None) is not None
            case StorageClass():
                return self.classes.pop(obj.metadata.name, None) is not None
            case CsiNode():
                return self._limit(obj.metadata.name, {})

    def _limit(self, node: str, counts: dict[str, int]) -> bool:
        """Set the volume limits of a node's drivers; returns whether they changed."""
        if counts == {driver: nodes[node] for driver, nodes in self.limits.items() if node in nodes}:
            return False
        for nodes in self.limits.values():
            nodes.pop(node, None)
        for driver, count in counts.items():
            self.limits.setdefault(driver, {})[node] = count
        self.limits = {driver: nodes for driver, nodes in self.limits.items() if nodes}
        return True

    def class_of(self, claim: Claim) -> StorageClass | None:
        """The storage class that the claim names; None if it names none, or none of that name exists."""
        return self.classes.get(claim.spec.storage_class_name or "")

    def driver_of(self, claim: Claim) -> str:
        """The CSI driver of the volume that a claim is bound to; empty if it isn't bound, or bound to another type of
        volume."""
        volume = self.volumes.get(claim.spec.volume_name) if is_bound(claim) else None
        return volume.spec.csi.driver if volume is not None and volume.spec.csi is not None else ""


def is_bound(claim: Claim) -> bool:
    """Whether the claim is bound to its volume."""
    if not claim.spec.volume_name:
        return False
    return claim.status.phase == ClaimPhase.BOUND or BIND_COMPLETED in (claim.metadata.annotations or {})


def is_exclusive(claim: Claim) -> bool:
    """Whether only one pod at a time may use it."""
    return AccessMode.READ_WRITE_ONCE_POD in (claim.spec.access_modes or ())


def selected_node(claim: Claim) -> str:
    """The node that its volume is to be provisioned for; empty if none was chosen."""
    return (claim.metadata.annotations or {}).get(SELECTED_NODE, "")


def size_of(claim: Claim) -> int:
    """The size that it requests, in bytes; 0 if it is invalid."""
    requests = claim.spec.resources.requests if claim.spec.resources is not None else None
    return _bytes((requests or {}).get("storage", 0))


def by_size(volume: PersistentVolume) -> tuple[int, str]:
    """A key that sorts the smallest volume first: its bytes, then its name."""
    return _bytes((volume.spec.capacity or {}).get("storage", 0)), volume.metadata.name


def suits(volume: PersistentVolume, claim: Claim) -> bool:
    """Whether a claim may be bound to a volume, regardless of nodes (`FindMatchingVolume` of the PV controller)."""
    spec, asked = volume.spec, claim.spec
    if volume.metadata.deletion_timestamp or spec.volume_mode != asked.volume_mode:
        return False
    if spec.storage_class_name != (asked.storage_class_name or "") or by_size(volume)[0] < size_of(claim):
        return False
    if not set(asked.access_modes or ()) <= set(spec.access_modes or ()):
        return False
    kept = spec.claim_ref
    if kept is not None:
        mine = (kept.namespace, kept.name) == (claim.metadata.namespace, claim.metadata.name)
        return mine and kept.uid in ("", claim.metadata.uid)
    if asked.selector is not None and not LabelSelector.parse(asked.selector).matches(volume.metadata.labels or {}):
        return False
    return volume.status.phase == "Available"


def _bytes(given: str | float) -> int:
    try:
        return parse_quantity(given).value()
    except MalformedQuantity:
        return 0


def _attached_at_most(node: CsiNode) -> dict[str, int]:
    return {
        driver.name: driver.allocatable.count
        for driver in node.spec.drivers or ()
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _read_of_claim(claim: Claim) -> tuple[object, ...]:
    """The parts of a claim that decisions depend on."""
    meta, notes = claim.metadata, claim.metadata.annotations or {}
    marks = (notes.get(SELECTED_NODE), BIND_COMPLETED in notes)
    return meta.uid, bool(meta.deletion_timestamp), marks, claim.spec, claim.status.phase


def _read_of_volume(volume: PersistentVolume) -> tuple[object, ...]:
    meta = volume.metadata
    return meta.uid, meta.labels, bool(meta.deletion_timestamp), volume.spec, volume.status.phase


def _read_of_class(made: StorageClass) -> tuple[object, ...]:
    return made.provisioner, made.volume_binding_mode, made.allowed_topologies
