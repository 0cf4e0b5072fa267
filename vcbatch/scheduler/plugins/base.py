"""What a plugin may decide. A plugin overrides the methods it has an opinion on; the session asks only those.

A plugin is made anew for every cycle: `open` sees the whole picture once, and the other methods are asked while
actions run. They must be pure functions of the picture, the class or the gang they are asked about, and what `placed`
told them. Methods with arrays decide about all nodes at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np

from vcbatch.scheduler.arguments import NO_ARGUMENTS, ArgumentSpec, ArgumentValue
from vcbatch.scheduler.classes import Profile, TaskClass
from vcbatch.scheduler.columns import Columns, Floats, Rows
from vcbatch.scheduler.model import Job, Queue, Task
from vcbatch.scheduler.resources import Mask, Vector

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session

UNLIMITED = 1 << 60
"""A room that no gang fills."""


class Vote(IntEnum):
    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """A vote, with what is short where it rejects."""

    vote: Vote
    message: str = ""


class Ledger(NamedTuple):
    """What a queue holds, what is promised to it included, and the most that it may hold now; both [R]."""

    held: Vector
    limit: Vector


class Rejection(NamedTuple):
    """Nodes that a filter refuses, shape [N], and why in the words of kube-scheduler. `by` says what of the node it
    went by, for rules that count only nodes which others admit."""

    reason: str
    nodes: Mask
    by: Literal["affinity", "taint", ""] = ""


class Eligible:
    """Which nodes a topology spread constraint counts, by what it honours."""

    def __init__(self, static: Sequence[Rejection], count: int) -> None:
        self._static = static
        self._count = count

    def nodes(self, *, affinity: bool, taints: bool) -> Mask:
        """The nodes left by the filters that went by node affinity or by taints."""
        mask = np.ones(self._count, dtype=bool)
        for rejection in self._static:
            if (affinity and rejection.by == "affinity") or (taints and rejection.by == "taint"):
                mask &= ~rejection.nodes
        return mask


class Cap(NamedTuple):
    """How many more tasks of a class each node may take, whatever its resources say, and why not more."""

    reason: str
    slots: Floats


class Normalise(Enum):
    """How raw preferences become 0 to 100 over the nodes that are candidates now."""

    NONE = auto()
    """They are points already."""
    MAX = auto()
    """100 * s // max; all 0 where the maximum is 0."""
    REVERSED = auto()
    """100 - 100 * s // max; all 100 where the maximum is 0."""


class Preference(NamedTuple):
    """Points for each node by what it is, shape [N]; `raw` of all nodes, normalised over the candidates."""

    raw: Floats
    weight: float
    normalise: Normalise


class Plugin:
    """Base of all plugins, built in or a user's own. Every method here is the answer of one without an opinion."""

    ARGUMENTS: ClassVar[ArgumentSpec] = NO_ARGUMENTS
    """The arguments it reads; anything else in the policy is an error."""
    HIERARCHICAL: ClassVar[bool] = False
    """Whether `enableHierarchy` may be set."""
    BY_AMOUNTS: ClassVar[bool] = False
    """Whether `scores`, and `caps` for a class without host ports, go by amounts on the node alone (`Columns`, not its
    `rows`), so that nodes with equal amounts get equal answers and one that is known needn't be asked for again."""

    def __init__(self, arguments: Mapping[str, ArgumentValue]) -> None:
        self.arguments = arguments

    def open(self, session: Session) -> None:
        """The cycle begins. Keep what later answers need."""

    # Order: the smaller key first; keys of one method are compared with each other only.

    def job_key(self, job: Job) -> float:
        """Where a gang stands in its queue."""
        return 0

    def task_key(self, task: Task) -> float:
        """Where a task stands in its gang."""
        return 0

    def queue_key(self, queue: Queue) -> tuple[float, ...]:
        """Where a queue stands."""
        return ()

    # Gangs

    def job_valid(self, job: Job) -> str | None:
        """Why the gang can't run as it is (a sentence), None where it could."""
        return None

    def job_ready(self, job: Job) -> bool:
        """Whether enough of the gang is placed for it to start."""
        return True

    def tasks_until_ready(self, job: Job, role: str) -> int:
        """How many more tasks of this role have to be placed, at least, before `job_ready` can turn true. Larger
        answers let whole runs be placed at once; 1 is always right."""
        return 1

    def job_pipelined(self, job: Job) -> Vote:
        """Whether what the gang got, promised resources included, is to be held for it."""
        return Vote.ABSTAIN

    # Queues

    def enqueueable(self, job: Job) -> Verdict:
        """Whether a pending gang may be admitted."""
        return Verdict(Vote.ABSTAIN)

    def enqueued(self, job: Job) -> None:
        """A gang was admitted."""

    def overused(self, queue: Queue) -> str | None:
        """Why the queue gets nothing more in this action (a sentence), None where it may."""
        return None

    def room(self, queue: Queue, request: Vector) -> int:
        """How many tasks with this request the queue may still take."""
        return UNLIMITED

    def ledger(self, queue: Queue) -> Ledger | None:
        """What the queue holds and may hold, for people; None where this plugin limits nothing."""
        return None

    def limit_stamp(self, queue: Queue) -> object:
        """Something that compares equal as long as `overused` and `room` answer the same for this queue."""
        return None

    # Nodes

    def rejections(self, profile: Profile) -> Sequence[Rejection]:
        """Filters by what nodes are. Kept until a node changes, also across cycles."""
        return ()

    def preferences(self, profile: Profile) -> Sequence[Preference]:
        """Scores by what nodes are. Kept as `rejections` are."""
        return ()

    def caps(self, cls: TaskClass, rows: Rows) -> Sequence[Cap]:
        """Limits per node other than resources, now; shape [len(rows)]."""
        return ()

    def scores(self, cls: TaskClass, columns: Columns) -> Floats | None:
        """Points of nodes by what is on them; elementwise over `columns`, so any shape it has."""
        return None

    def couples(self, task: Task) -> bool:
        """Whether `task_rejections` or `task_scores` have anything to say about this task. Such tasks are placed one
        at a time."""
        return False

    def task_rejections(self, task: Task, static: Sequence[Rejection]) -> Sequence[Rejection]:
        """Filters by which pods are where. `static` is what all `rejections` said of the task's profile."""
        return ()

    def task_scores(self, task: Task, candidates: Rows, static: Sequence[Rejection]) -> Floats | None:
        """Points by which pods are where, for the candidate rows, normalised over them."""
        return None

    # Bookkeeping

    def placed(self, job: Job, cls: TaskClass, count: int) -> None:
        """So many tasks of the class were placed (negative: taken back), on free or on promised resources."""
