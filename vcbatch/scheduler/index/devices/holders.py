"""The nodes whose pods with devices have to be read again."""

from __future__ import annotations

from collections.abc import Iterable

from vcbatch.scheduler.model.objects import NodeInfo, Task


class DeviceHolders:
    """Maintained only while devices are shared (`active`), so that other clusters have no cost.

    `dirty` has the names of nodes whose pods or annotations changed since `seen`, `gone` the pods that left their node.
    """

    def __init__(self) -> None:
        self.active = False
        self.dirty: set[str] = set()
        self.gone: set[str] = set()
        """UIDs of pods that left their node."""

    def start(self, infos: Iterable[NodeInfo]) -> None:
        """Track changes from now on; every node counts as changed."""
        self.active = True
        self.dirty = {info.name for info in infos}
        self.gone.clear()

    def seen(self) -> None:
        """Clear the changes, which have been processed."""
        self.dirty.clear()
        self.gone.clear()

    def stop(self) -> None:
        """Stop tracking changes."""
        self.active = False
        self.seen()

    def changed(self, task: Task, step: int) -> None:
        """A pod was added to a node or removed from it (`step` -1), as observed in the cluster."""
        if self.active:
            self.dirty.add(task.node)
            if step < 0:
                self.gone.add(task.uid)

    def node_changed(self, name: str) -> None:
        """A node was added, removed, or reports other cards."""
        if self.active:
            self.dirty.add(name)
