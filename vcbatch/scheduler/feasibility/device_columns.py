"""Claimed devices of a gang as further resources of its feasibility problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import msgspec
import numpy as np

from vcbatch.api.dra import DeviceRequest
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.objects import Task
from vcbatch.scheduler.model.resources import Matrix, Vector


class DeviceColumns:
    """One resource for each kind of device that claims of the gang request, if nothing else uses the claim in the gang.

    A node has as many as devices match, regardless of their taints, of allocations, and of requests of other kinds that
    match the same devices. A claim of several pods needs its devices once, and is left out. So the problem is never
    stricter than the cluster.

    Attributes:
        capacity: the devices of each kind on each node, [K, N]; infinite if they can be shared, or if the capacity of
            the node isn't known yet.
    """

    def __init__(self, session: Session, samples: Sequence[Task]) -> None:
        claimed = session.state.claimed
        demands = {task.uid: claimed.demands(task) for task in samples if task.cls.spec.resource_claims}
        users = Counter(key for found in demands.values() for key in {key for key, _ in found})
        kinds: dict[Hashable, DeviceRequest] = {}
        self._counts: dict[str, Counter[Hashable]] = {}
        for uid, found in demands.items():
            counts = self._counts[uid] = Counter[Hashable]()
            for key, request in found:
                if users[key] == 1:
                    kind = msgspec.json.encode((request.device_class_name, request.selectors or ()))
                    kinds[kind] = request
                    counts[kind] += request.count or 1
        self._kinds = list(kinds)
        self.capacity: Matrix = np.zeros((len(kinds), len(session.nodes)))
        for row, request in enumerate(kinds.values()):
            self.capacity[row] = claimed.matching(request)
        self.capacity[:, [info.row for info in session.nodes.infos if info.starting]] = np.inf

    def request(self, task: Task) -> Vector:
        """How many devices of each kind the pod requests; [K]."""
        counts = self._counts.get(task.uid, Counter[Hashable]())
        return np.array([counts[kind] for kind in self._kinds], dtype=np.float64)
