"""The nodes without any pod that can be removed, and without temporary states."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from vcbatch.scheduler.feasibility.problem import slots
from vcbatch.scheduler.framework.plugin import PodRule
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.classes import HostPort, TaskClass
from vcbatch.scheduler.model.columns import Floats
from vcbatch.scheduler.model.objects import NodeInfo, Task
from vcbatch.scheduler.model.resources import Dimensions, Mask, Matrix, is_extended


class EmptyNodes:
    """The capacity of the nodes beside the pods that belong to them or to the cluster (`Task.stays`).

    The capacity of a node that is being added isn't known and counts as infinite. Of devices, all of a node count,
    those reported as unhealthy included.
    """

    def __init__(self, session: Session) -> None:
        state = session.state
        self.staying = [(task, row) for task in state.staying.values() if (row := state.row_of(task)) >= 0]
        """The pods that stay, and the rows of their nodes."""
        self.capacity: Matrix = self._capacity(session)
        self.unknown: Mask = np.isinf(self.capacity.min(axis=0))
        """The nodes whose capacity isn't known yet."""
        self.growing = bool(self.unknown.any())
        self._most: dict[int, Floats] = {}
        self._ports: dict[int, list[HostPort]] = defaultdict(list)
        for task, row in self.staying:
            self._ports[row] += task.cls.ports
        self.ports_count = any(PodRule.PORTS in plugin.pod_rules for plugin in session.placer.plugins.filters)

    def _capacity(self, session: Session) -> Matrix:
        nodes, dims = session.nodes, session.dims
        capacity: Matrix = nodes.alloc.copy()
        for task, row in self.staying:
            capacity[:, row] -= task.cls.request
        for info in nodes.infos:
            if info.starting or not info.allocatable:
                capacity[:, info.row] = np.inf
            else:
                self._with_all_devices(info, dims, capacity)
        return capacity

    def _with_all_devices(self, info: NodeInfo, dims: Dimensions, capacity: Matrix) -> None:
        installed = (info.node.status.capacity if info.node is not None else None) or {}
        for name, quantity in installed.items():
            column = dims.column(name)
            if column is None or not is_extended(name) or info.allocatable.get(name) == quantity:
                continue
            unhealthy = dims.amount(name, quantity) - dims.amount(name, info.allocatable.get(name, 0))
            capacity[column, info.row] += max(unhealthy, 0.0)

    def most(self, session: Session, task: Task) -> Floats:
        """How many pods like the task each node takes without others; [N]."""
        if task.cls.spec.resource_claims:
            return self._counted(session, task)
        known = self._most.get(task.cls.id)
        if known is None:
            known = self._most[task.cls.id] = self._counted(session, task)
        return known

    def _counted(self, session: Session, task: Task) -> Floats:
        cls = task.cls
        found = np.where(session.placer.static(cls).lasting, slots(self.capacity, cls.request), 0.0)
        for plugin in session.placer.plugins.filters:
            cap = plugin.caps_empty(task)
            if cap is not None:
                found = np.minimum(found, cap)
        if cls.ports and self.ports_count:
            found = np.minimum(found, 1.0)
            for row, taken in self._ports.items():
                if any(mine.conflicts(theirs) for mine in cls.ports for theirs in taken):
                    found[row] = 0.0
        claimed = session.state.claimed
        lacking = None if claimed.error(task) else claimed.lacking(task)
        if lacking is not None:
            found[lacking] = 0.0
        return found


def ports_conflict(one: TaskClass, other: TaskClass) -> bool:
    """Whether no node can take a pod of each, because of host ports."""
    return any(mine.conflicts(theirs) for mine in one.ports for theirs in other.ports)
