"""Claimed devices of a gang as further resources of its feasibility problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from vcbatch.scheduler.feasibility.empty_nodes import EmptyNodes
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.index.dra.claimed import DeviceDemand
from vcbatch.scheduler.model.objects import Task
from vcbatch.scheduler.model.resources import Matrix, Vector


class DeviceColumns:
    """One resource for each kind of device that claims of the gang request, if nothing else uses the claim in the gang.

    A node has as many as devices match, regardless of their taints, of allocations, and of requests of other kinds that
    match the same devices. A claim of several pods needs its devices once, and is left out. So the problem is never
    stricter than the cluster.

    Attributes:
        capacity: the resources of the nodes with the devices of each kind appended, [R + K, N]; infinite for devices
            that can be shared, and for nodes whose capacity isn't known yet.
    """

    def __init__(self, session: Session, nodes: EmptyNodes, samples: Sequence[Task]) -> None:
        claimed = session.state.claimed
        demands = {task.uid: claimed.demands(task) for task in samples if task.cls.spec.resource_claims}
        users = Counter(claim for found in demands.values() for claim in {demand.claim for demand in found})
        kinds: dict[bytes, DeviceDemand] = {}
        self._counts: dict[str, Counter[bytes]] = {}
        for uid, found in demands.items():
            counts = self._counts[uid] = Counter[bytes]()
            for demand in found:
                if users[demand.claim] == 1:
                    kinds[demand.kind] = demand
                    counts[demand.kind] += demand.request.count or 1
        self._kinds = list(kinds)
        self.capacity: Matrix = nodes.capacity
        if kinds:
            devices = np.array([claimed.matching(demand) for demand in kinds.values()])
            devices[:, nodes.unknown] = np.inf
            self.capacity = np.vstack((nodes.capacity, devices))

    def request(self, task: Task) -> Vector:
        """The request of one pod with its devices of each kind appended; [R + K]."""
        if not self._kinds:
            return task.cls.request
        counts = self._counts.get(task.uid, Counter[bytes]())
        return np.concatenate((task.cls.request, [float(counts[kind]) for kind in self._kinds]))
