"""The interface of a cycle for plugins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from vcbatch.scheduler.framework.consultant import Consultant
from vcbatch.scheduler.framework.metrics_section import MetricsSection
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.figures import Measured
from vcbatch.scheduler.model.objects import Task
from vcbatch.scheduler.model.resources import Dimensions, Vector
from vcbatch.scheduler.model.result import Eviction
from vcbatch.scheduler.model.tables import NodeTable
from vcbatch.scheduler.snapshot.snapshot import Snapshot

_T = TypeVar("_T")


class Slots(Protocol):
    """The slots of nodes, as far as plugins read them."""

    @property
    def log(self) -> Sequence[tuple[object, Sequence[int]]]:
        """The changes of nodes in this cycle: for each the view that made it and the rows of the nodes."""
        ...

    def slots(self, cls: TaskClass, rows: Rows, *, promising: bool) -> Floats:
        """How many tasks of the class these nodes have slots for, filters included, on free resources or, with
        `promising`, also on those being released; [len(rows)]."""
        ...


class Handle(Protocol):
    """A cycle as plugins see it, from `open` on.

    Attributes:
        lenient: whether plugins permit the eviction of pods that they only protect for a time; set in trials that are
            rolled back.
        beyond_shares: whether queues may be left with less than their deserved share; set in trials that are rolled
            back.
        withheld: how often plugins protected pods for a time; they increment it.
    """

    lenient: bool
    beyond_shares: bool
    withheld: int

    @property
    def state(self) -> Snapshot:
        """The snapshot, with `memory` that is kept between cycles."""
        ...

    @property
    def nodes(self) -> NodeTable:
        """The nodes and their usage, [R, N]."""
        ...

    @property
    def dims(self) -> Dimensions:
        """The names of the R resources, and how their quantities are formatted."""
        ...

    @property
    def total(self) -> Vector:
        """The allocatable resources of all nodes together, [R]."""
        ...

    @property
    def now(self) -> datetime:
        """The start of the cycle, UTC."""
        ...

    @property
    def uid(self) -> str:
        """The identifier of the cycle."""
        ...

    @property
    def metrics(self) -> MetricsSection | None:
        """The source of the nodes' actual load; None without one."""
        ...

    @property
    def consultant(self) -> Consultant:
        """Calls an external server of the user's."""
        ...

    @property
    def measured(self) -> Measured:
        """Quantities of queues and gangs (allocated, deserved, requested), which plugins record for metrics."""
        ...

    @property
    def evictions(self) -> Sequence[Eviction]:
        """The evictions decided so far."""
        ...

    @property
    def placer(self) -> Slots:
        """The slots of nodes at this moment; available once all plugins are open."""
        ...

    def ordered(self, tasks: list[Task]) -> list[Task]:
        """Tasks of a gang in task order."""
        ...

    def requeue_at(self, at: datetime) -> None:
        """Have a cycle run at this time, because a decision then depends on the time alone."""
        ...

    def shared(self, make: Callable[[Any], _T]) -> _T:
        """The object that `make` creates for this cycle's session; created once and shared by all callers with the same
        `make`."""
        ...
