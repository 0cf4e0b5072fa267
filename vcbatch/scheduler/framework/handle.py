"""What plugins see of a cycle."""

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
    """Where tasks can be placed, as far as plugins ask for it."""

    @property
    def log(self) -> Sequence[tuple[object, Sequence[int]]]:
        """The rows of the nodes on which something changed in this cycle, change by change, with what was placed."""
        ...

    def slots(self, cls: TaskClass, rows: Rows, *, promising: bool) -> Floats:
        """How many tasks of the class the nodes of these rows take, filters included, on what is free or, `promising`,
        on what will be; [len(rows)]."""
        ...


class Handle(Protocol):
    """A cycle as plugins see it, from `open` on.

    Attributes:
        lenient: whether plugins let pods go that they only protect for a time: in trials that are taken back.
        beyond_shares: whether queues may be left with less than they deserve: in trials that are taken back.
        withheld: how often plugins kept pods that they protect for a time; they count it up.
    """

    lenient: bool
    beyond_shares: bool
    withheld: int

    @property
    def state(self) -> Snapshot:
        """The snapshot, with `memory` that lasts from cycle to cycle."""
        ...

    @property
    def nodes(self) -> NodeTable:
        """The nodes and what is used of them, [R, N]."""
        ...

    @property
    def dims(self) -> Dimensions:
        """The names of the R resources, and how their amounts are written."""
        ...

    @property
    def total(self) -> Vector:
        """What all nodes offer, [R]."""
        ...

    @property
    def now(self) -> datetime:
        """When the cycle began, UTC."""
        ...

    @property
    def uid(self) -> str:
        """Names the cycle."""
        ...

    @property
    def metrics(self) -> MetricsSection | None:
        """Where the real load of nodes is measured; None where it isn't."""
        ...

    @property
    def consultant(self) -> Consultant:
        """Asks a server of the user's own."""
        ...

    @property
    def measured(self) -> Measured:
        """What queues and gangs hold, deserve and ask for, which plugins fill in for people."""
        ...

    @property
    def evictions(self) -> Sequence[Eviction]:
        """What was decided to be evicted so far."""
        ...

    @property
    def placer(self) -> Slots:
        """Where tasks can be placed now; there once all plugins are open."""
        ...

    def ordered(self, tasks: list[Task]) -> list[Task]:
        """Tasks of a gang in task order."""
        ...

    def requeue_at(self, at: datetime) -> None:
        """Something changes by time alone: have a cycle then, whatever else happens."""
        ...

    def shared(self, make: Callable[[Any], _T]) -> _T:
        """The one object that `make` makes of this cycle's session, for all who ask for it by that."""
        ...
