"""Which pods with devices are on which node, and which nodes have to be looked at again."""

from __future__ import annotations

from collections.abc import Iterable

from vcbatch.scheduler.model.objects import NodeInfo, Task


class DeviceHolders:
    """Kept only where somebody shares devices (`active`): other clusters pay nothing for it.

    `dirty` names the nodes whose pods or annotations changed since somebody last looked; `moved` whether nodes came or
    went.
    """

    def __init__(self) -> None:
        self.active = False
        self.dirty: set[str] = set()
        self.gone: set[str] = set()
        """UIDs of pods that left their node."""

    def start(self, infos: Iterable[NodeInfo]) -> None:
        """From now on changes are followed; every node is new."""
        self.active = True
        self.dirty = {info.name for info in infos}
        self.gone.clear()

    def seen(self) -> None:
        """Whoever follows changes has seen all so far."""
        self.dirty.clear()
        self.gone.clear()

    def stop(self) -> None:
        """Nobody follows changes any more."""
        self.active = False
        self.seen()

    def changed(self, task: Task, step: int) -> None:
        """A pod came to a node or left it, by what the cluster says."""
        if self.active:
            self.dirty.add(task.node)
            if step < 0:
                self.gone.add(task.uid)

    def node_changed(self, name: str) -> None:
        """A node came, went, or says something else of its cards."""
        if self.active:
            self.dirty.add(name)
