"""The nodes from which a volume can be reached, or for which one can be provisioned: by properties of nodes alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from vcbatch.api.storage import NO_PROVISIONER, PersistentVolume, StorageClass
from vcbatch.scheduler.index.node_labels import NodeLabels
from vcbatch.scheduler.index.storage_room import Room, StorageRoom
from vcbatch.scheduler.model.facts import Facts
from vcbatch.scheduler.model.objects import NodeInfo
from vcbatch.scheduler.model.resources import Mask
from vcbatch.scheduler.model.selectors import NodeAffinity, Requirement

_ZONE: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_REGION: Final = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
_ZONE_SEPARATOR: Final = "__"


class VolumeReach:
    """Masks over the node table, shape [N], by the rules of kube-scheduler's VolumeBinding and VolumeZone."""

    def __init__(self, facts: Facts) -> None:
        self.labels = NodeLabels([])
        self._room = StorageRoom(facts)
        self._reached: dict[str, Mask] = {}  # by the volume's name

    def relay(self, infos: Sequence[NodeInfo]) -> None:
        """The node table was rearranged, or labels of nodes changed."""
        self.labels = NodeLabels(infos)
        self._room.relay(self.labels)
        self._reached.clear()

    def forget(self, volume: str) -> None:
        """The volume of this name changed or was deleted."""
        self._reached.pop(volume, None)

    def all(self) -> Mask:
        """Every node."""
        return np.ones(self.labels.count, dtype=bool)

    def reached(self, volume: PersistentVolume) -> Mask:
        """The nodes that the volume's node affinity admits. Cached; must not be modified."""
        name = volume.metadata.name
        known = self._reached.get(name)
        if known is None:
            affinity = volume.spec.node_affinity
            required = affinity.required if affinity is not None else None
            wanted = NodeAffinity.parse(
                None, {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
            )
            known = self._reached[name] = self.labels.admitted(wanted)
        return known

    def in_zone(self, volume: PersistentVolume) -> Mask:
        """The nodes in the zone and region of the volume's labels; all nodes if it has none of these labels."""
        labels = volume.metadata.labels or {}
        wanted = [
            (pair, key, frozenset(labels[key].split(_ZONE_SEPARATOR)))
            for pair in (_ZONE, _REGION)
            for key in pair
            if key in labels
        ]
        mask = self.all()
        if not wanted:
            return mask
        for (new, old), key, values in wanted:
            here = self.labels.matching(Requirement(key, "In", tuple(values)))
            if key == old:
                here |= self.labels.matching(Requirement(new, "In", tuple(values)))
            mask &= here
        unnamed = self.all()
        for key in (*_ZONE, *_REGION):
            unnamed &= self.labels.matching(Requirement(key, "DoesNotExist", ()))
        return mask | unnamed

    def makeable(self, made: StorageClass | None) -> Mask:
        """The nodes for which volumes of this class can be provisioned, regardless of storage capacity."""
        if made is None or made.provisioner in ("", NO_PROVISIONER):
            return np.zeros(self.labels.count, dtype=bool)
        if not made.allowed_topologies:
            return self.all()
        mask = np.zeros(self.labels.count, dtype=bool)
        for term in made.allowed_topologies:
            here = self.all()
            for one in term.get("matchLabelExpressions") or ():
                wanted = Requirement(str(one.get("key", "")), "In", tuple(one.get("values") or ()))
                here &= self.labels.matching(wanted)
            mask |= here
        return mask

    def room(self, made: StorageClass | None) -> Room | None:
        """The capacity for provisioning volumes of this class; None if its driver doesn't publish any."""
        return None if made is None else self._room.of(made)

    def spacious(self, made: StorageClass | None, size: int) -> Mask:
        """The nodes with enough storage capacity for a volume of `size` bytes, as far as the driver publishes it."""
        room = self.room(made)
        return self.all() if room is None else room.largest >= size
