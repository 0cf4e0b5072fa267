"""The largest volume that can be provisioned per node, as storage drivers publish (CSIStorageCapacity).

Rules: kube-scheduler's VolumeBinding (1.36). A driver that publishes nothing has capacity everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vcbatch.api.quantity import MalformedQuantity, parse_quantity
from vcbatch.api.storage import CsiDriver, CsiStorageCapacity, StorageClass
from vcbatch.scheduler.index.node_labels import NodeLabels
from vcbatch.scheduler.model.facts import Facts
from vcbatch.scheduler.model.resources import Mask
from vcbatch.scheduler.model.selectors import LabelSelector

Bytes = npt.NDArray[np.float64]


class Room(NamedTuple):
    """For each node, in bytes, the largest volume that can be provisioned there, -1 if none can, and the capacity that
    it is taken from; both [N]."""

    largest: Bytes
    capacity: Bytes


class StorageRoom:
    """The capacity for provisioning volumes, by storage class."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._labels = NodeLabels([])
        self._known: dict[str, Room] = {}
        self._stamp = (0, 0)

    def relay(self, labels: NodeLabels) -> None:
        """The node table was rearranged, or labels of nodes changed."""
        self._labels = labels
        self._known.clear()

    def of(self, made: StorageClass) -> Room | None:
        """The capacity for volumes of this class; None if its driver doesn't publish any."""
        driver = self._facts.of(CsiDriver).get(made.provisioner)
        if driver is None or not driver.spec.storage_capacity:
            return None
        stamp = (self._facts.stamp(CsiDriver), self._facts.stamp(CsiStorageCapacity))
        if stamp != self._stamp:
            self._known.clear()
            self._stamp = stamp
        known = self._known.get(made.metadata.name)
        if known is None:
            known = self._known[made.metadata.name] = self._sum_up(made.metadata.name)
        return known

    def _sum_up(self, of_class: str) -> Room:
        room = Room(np.full(self._labels.count, -1.0), np.zeros(self._labels.count))
        published = self._facts.of(CsiStorageCapacity)
        for _, reported in sorted(published.items()):
            if reported.storage_class_name != of_class or reported.node_topology is None:
                continue
            capacity = _bytes(reported.capacity)
            largest = capacity if reported.maximum_volume_size is None else _bytes(reported.maximum_volume_size)
            if largest is None:
                continue
            better = self._reached(LabelSelector.parse(reported.node_topology)) & (room.largest < largest)
            room.largest[better] = largest
            room.capacity[better] = capacity or 0.0
        return room

    def _reached(self, selector: LabelSelector) -> Mask:
        mask = np.ones(self._labels.count, dtype=bool)
        for requirement in selector.requirements:
            mask &= self._labels.matching(requirement)
        return mask


def _bytes(given: str | float | None) -> float | None:
    if given is None:
        return None
    try:
        return float(parse_quantity(given).value())
    except MalformedQuantity:
        return None
