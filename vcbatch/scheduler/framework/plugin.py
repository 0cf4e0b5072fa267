"""The plugin interface. A plugin overrides the methods it has an opinion on; the session calls only those.

A plugin is created for every cycle: `open` receives the whole snapshot once, and the other methods are called while
actions run. Their results must depend on nothing but the snapshot, their arguments, and what `placed` reported. Methods
with arrays decide about all nodes at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, IntEnum, auto
from typing import ClassVar, Literal, NamedTuple, Protocol

import numpy as np

from vcbatch.api.reasons import DisruptionLimit
from vcbatch.api.remedies import Remedy
from vcbatch.scheduler.framework.arguments import NO_ARGUMENTS, Arguments, ArgumentSpec
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.index.victims import Candidates
from vcbatch.scheduler.model.classes import Profile, TaskClass
from vcbatch.scheduler.model.columns import Columns, Floats, Rows
from vcbatch.scheduler.model.facts import Facts
from vcbatch.scheduler.model.objects import Job, Queue, Task
from vcbatch.scheduler.model.resources import Mask, Vector
from vcbatch.scheduler.model.result import Shortage, WaitReason
from vcbatch.scheduler.model.sub_gangs import SubKey

UNLIMITED = 1 << 60
"""A capacity that no gang exhausts."""


class Vote(IntEnum):
    """The vote of one plugin among several; `answers` defines how votes combine."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """A vote. A rejection comes with a message that says what is short, the reason in the closed vocabulary, the
    shortages in numbers and the queue or pool (`place`) that they refer to, and the remedies. `volcano` is Volcano's
    message where `message` differs from it: tools match it, so it appears in events and conditions as well."""

    vote: Vote
    message: str = ""
    reason: WaitReason = WaitReason.ADMISSION_REFUSED
    shortages: Sequence[Shortage] = ()
    place: str = ""
    remedies: Sequence[Remedy] = ()
    volcano: str = ""


class Ledger(NamedTuple):
    """The usage of a queue, pipelined tasks included, and its present limit; both [R].

    `word` names the kind of limit; `queue` names the queue that the limit belongs to, if it is an ancestor; `ever` is
    the limit whatever other queues request, so that a gang that needs more can never start.
    """

    held: Vector
    limit: Vector
    word: str = "deserved"
    queue: str = ""
    ever: Vector | None = None


class Rejection(NamedTuple):
    """Nodes that a filter rejects, shape [N], and the reason in kube-scheduler's words. `by` says what the filter
    depends on, for topology spread constraints, which count only nodes that certain filters admit. `temporary`, [N],
    are those nodes whose rejection is for a temporary state (not ready, cordoned, being added); None if there are none.
    `word` is the pending reason of a gang that waits for them."""

    reason: str
    nodes: Mask
    by: Literal["affinity", "taint", ""] = ""
    temporary: Mask | None = None
    word: WaitReason = WaitReason.NODES_REFUSED

    @property
    def lasting(self) -> Mask:
        """The nodes that are rejected for a permanent property."""
        return self.nodes if self.temporary is None else self.nodes & ~self.temporary


class EvictionKind(Enum):
    """The kind of preemptor that a gang's victims are evicted for."""

    PREEMPT = auto()
    """A gang of their own queue."""
    RECLAIM = auto()
    """A gang of another queue."""


@dataclass(frozen=True, slots=True)
class GangEviction:
    """An eviction for a whole gang; `need` is the sum of its pending tasks' requests, shape [R]."""

    kind: EvictionKind
    job: Job
    need: Vector


class Protection(NamedTuple):
    """A limit that protects pods from eviction, how many it `allowed`, and until when; None for `until` if it never
    allows the eviction of that many at once."""

    limit: DisruptionLimit
    allowed: str
    until: datetime | None


class PodRule(Enum):
    """A rule about which pods may be on the same node or in the same topology domain."""

    PORTS = auto()
    """Host ports, which no two pods of a node may share."""
    AFFINITY = auto()
    """Inter-pod affinity and anti-affinity."""
    SPREAD = auto()
    """Topology spread constraints."""


class Eligible:
    """Which nodes a topology spread constraint counts, according to its node inclusion policies."""

    def __init__(self, static: Sequence[Rejection], count: int) -> None:
        self._static = static
        self._count = count

    def nodes(self, *, affinity: bool, taints: bool) -> Mask:
        """The nodes left by the filters that depend on node affinity or on taints."""
        mask = np.ones(self._count, dtype=bool)
        for rejection in self._static:
            if (affinity and rejection.by == "affinity") or (taints and rejection.by == "taint"):
                mask &= ~rejection.nodes
        return mask


class Cap(NamedTuple):
    """How many more tasks of a class each node may take, whatever its resources allow, and the reason for the limit."""

    reason: str
    slots: Floats
    word: WaitReason = WaitReason.NODES_REFUSED


class Leaning(Protocol):
    """Scores of nodes that change with every task that is placed."""

    def points(self, rows: Rows, candidates: Mask) -> Floats:
        """The present scores of the nodes of these rows; [len(rows)]. `candidates` has those that have a slot."""
        ...

    def placed(self, row: int) -> None:
        """Update the scores: one more task is placed on the node of this row."""
        ...


@dataclass(frozen=True, slots=True)
class DomainRequest:
    """Tasks of a gang, or of one of its sub-gangs, that need a network topology domain: `count` tasks that request
    `amount` together, [R]. `spare` is how many more of them each domain has slots for, [D]."""

    job: Job
    sub: SubKey | None
    count: int
    amount: Vector
    spare: Floats


class Normalise(Enum):
    """How raw preferences are normalised to 0 to 100 over the present candidate nodes."""

    NONE = auto()
    """They are scores already."""
    MAX = auto()
    """100 * s // max; all 0 where the maximum is 0."""
    REVERSED = auto()
    """100 - 100 * s // max; all 100 where the maximum is 0."""


class Preference(NamedTuple):
    """Scores of nodes by their own properties, shape [N]; `raw` for all nodes, normalised over the candidates."""

    raw: Floats
    weight: float
    normalise: Normalise


class OrderTerm(NamedTuple):
    """The description of one number of a sort key, for users. `sign` is 1 where the smaller number is served first, -1
    where the key is the negative of a number of which the greater is served first, and 0 where the number has no
    meaning by itself (a flag, a rank, a time): `word` then describes the one that is served first. `of` names the
    object that the number describes, if that isn't the one being sorted."""

    word: str
    sign: Literal[-1, 0, 1] = 1
    of: str = ""


class Plugin:
    """The base class of all plugins, built in or custom. Each method here returns the neutral result."""

    ARGUMENTS: ClassVar[ArgumentSpec] = NO_ARGUMENTS
    """The arguments of the plugin; any other argument in the scheduler configuration is an error."""
    HIERARCHICAL: ClassVar[bool] = False
    """Whether `enableHierarchy` may be set."""
    SHARES_PLACES: ClassVar[bool] = False
    """Whether serving one gang or queue also moves others back in the order."""
    VICTIMS_BY_STANDING: ClassVar[bool] = False
    """Whether victims are the same for two gangs of one queue with the same priority and the same allocation: if no
    eviction helps one of them, the search is skipped for the other."""
    KEEPS_VICTIMS: ClassVar[bool] = False
    """Whether `preemptable` only protects some candidates from eviction, whatever their priority: a tier in which no
    other plugin answers then returns victims of higher priority than the preemptor."""
    BY_AMOUNTS: ClassVar[bool] = False
    """Whether `scores`, and `caps` for a class without host ports, depend on quantities of the node alone (`Columns`,
    not its `rows`), so that results are the same for nodes with equal quantities and can be reused."""

    BY_QUEUE: ClassVar[bool] = False
    """Whether `rejections`, `preferences`, `caps` or `scores` depend on the queue; profiles then include it."""
    BY_TERMS: ClassVar[bool] = False
    """Whether `couples` is true only for tasks with inter-pod terms or claims, and while pods on nodes have such
    terms."""

    ACTS_IN: ClassVar[str] = ""
    """The action without which the plugin has no effect: a scheduler configuration with the plugin and without the
    action is rejected."""

    TELLS_IMPOSSIBLE: ClassVar[bool] = False
    """Whether `enqueueable` may return that a gang can never be admitted in the present cluster. It is then called even
    where another plugin of its tier rejects the gang for now."""

    NEEDS_METRICS: ClassVar[bool] = False
    """Whether the plugin has no effect if the scheduler configuration has no section `metrics`."""

    pod_rules: frozenset[PodRule] = frozenset()
    """The rules about other pods that its filters enforce; set in `open`."""

    barring: bool = False
    """Whether `barred` can reject any task in this cycle."""

    JOB_TERM: ClassVar[OrderTerm | None] = None
    """The description of `job_key` for users; None if it isn't described."""
    REMEMBERS_ORDER: ClassVar[bool] = False
    """Whether keys depend on earlier cycles: a scheduler that has just started may return others."""

    ready_by_number: ClassVar[bool] = False
    """Whether a gang without minimums of roles and sub-gangs is ready by the number of its placed tasks alone,
    best-effort tasks included. A class that overrides `job_ready` has to set it itself."""
    tasks_by_priority: ClassVar[bool] = False
    """Whether `task_key` is the same for tasks of the same priority. A class that overrides it has to set this
    itself."""

    UNWANTED: ClassVar[str] = "it had better run elsewhere"
    """The reason that is reported for pods that `unwanted` returns (a sentence)."""

    def __init_subclass__(cls) -> None:
        """Reset the attributes that describe a method in classes that override the method."""
        super().__init_subclass__()
        if "job_ready" in cls.__dict__ and "ready_by_number" not in cls.__dict__:
            cls.ready_by_number = False
        if "task_key" in cls.__dict__ and "tasks_by_priority" not in cls.__dict__:
            cls.tasks_by_priority = False

    def __init__(self, arguments: Arguments) -> None:
        self.arguments = arguments
        self.hierarchical = False
        """Whether the scheduler configuration sets `enableHierarchy` for it."""

    @classmethod
    def of_mode(cls, *, hierarchical: bool) -> type[Plugin]:
        """The class to use, if `enableHierarchy` selects another one."""
        return cls

    def open(self, session: Handle) -> None:
        """Open the session of a cycle. Keep what later methods need."""

    def close(self, session: Handle) -> None:
        """Close the session: all decisions are made, and pipelined tasks are still in place. State for the next cycle
        goes to `session.state.memory`."""

    # Order: the smaller key first; keys of one method are compared with each other only.

    def job_key(self, job: Job) -> float:
        """The sort key of a gang in its queue."""
        return 0

    def job_keys(self, rows: Rows) -> Floats | None:
        """`job_key` of many gangs, by their rows in the job table; [len(rows)]. None to have `job_key` called for each,
        which is also done for a class that overrides `job_key` alone."""
        return None

    def task_key(self, task: Task) -> float:
        """The sort key of a task in its gang."""
        return 0

    def queue_key(self, queue: Queue) -> tuple[float, ...]:
        """The sort key of a queue."""
        return ()

    def queue_terms(self, queue: Queue) -> Sequence[OrderTerm]:
        """The descriptions of the numbers of `queue_key` for users, in their order; empty if they aren't described."""
        return ()

    def queue_kin(self, queue: Queue) -> tuple[object, int] | None:
        """The group of queues whose keys always have the same first numbers, whatever is placed, and how many numbers
        these are; None if that isn't known. It saves recomputing the keys of all queues when one of them was served."""
        return None

    # Gangs

    def job_valid(self, job: Job) -> str | None:
        """Why the gang can't run with its present pods (a sentence); None if it can."""
        return None

    def job_ready(self, job: Job) -> bool:
        """Whether enough of the gang is placed for it to start."""
        return True

    def tasks_until_ready(self, job: Job, role: str) -> int:
        """The least number of tasks of this role that have to be placed before `job_ready` can turn true. Larger
        results let whole runs be placed at once; 1 is always correct."""
        return 1

    def job_pipelined(self, job: Job) -> Vote:
        """Whether the resources that the gang was placed on, those being released included, are to be reserved for
        it."""
        return Vote.ABSTAIN

    def job_starving(self, job: Job) -> bool:
        """Whether the gang may have other pods evicted for what it lacks. The first tier in which a plugin implements
        this decides, and all plugins of that tier must agree."""
        return False

    # Victims. None means no opinion; an empty result leaves the decision to the next tier.

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> Sequence[Task] | None:
        """Which of the candidates, pods of one node in victim order, may be evicted for a task of their own queue."""
        return None

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> Sequence[Task] | None:
        """Which of the candidates, pods of one node in victim order, may be evicted for a task of another queue."""
        return None

    def possible_victims(self, kind: EvictionKind, job: Job, cls: TaskClass, candidates: Candidates) -> Mask | None:
        """Which of the candidates, [K], pods of other gangs on many nodes, `preemptable` or `reclaimable` might return
        for a task of this class and gang: True at least for those, until an eviction is rolled back or the cycle ends.
        It excludes nodes before single pods are checked. None if that isn't known; a plugin that returns a mask never
        abstains."""
        return None

    def evictable(self, eviction: GangEviction, candidates: Sequence[Task]) -> Sequence[Task] | None:
        """Which of the candidates, pods of many nodes, may be evicted for a whole gang."""
        return None

    def share_left(self, queue: Queue, victims: Sequence[Task]) -> Sequence[Shortage]:
        """What the queue would lack of its deserved share without all of these pods of it: for each resource the
        deserved quantity, the quantity that it would still use, and the difference. Empty if the pods may be evicted
        for a whole gang."""
        return ()

    def preemptive(self, queue: Queue, request: Vector) -> bool:
        """Whether the queue may have pods of other queues evicted for this request, shape [R]. All plugins must
        agree."""
        return True

    def victim_queue_key(self, victim: Queue, preemptor: Queue) -> tuple[float, ...]:
        """The sort key of a queue among those that lose pods for a task of `preemptor`; the smaller loses pods first.
        Among equal keys the last queue in queue order loses pods first."""
        return ()

    def unwanted(self, running: Sequence[Task]) -> Sequence[Task] | None:
        """Which running pods should be moved to other nodes, independently of pending gangs (the shuffle action)."""
        return None

    def movable(self, unwanted: Sequence[Task]) -> Sequence[Task] | None:
        """Which of the running pods that another plugin wants to move may be moved now. All plugins with an opinion
        must agree."""
        return None

    def protection(self, victims: Sequence[Task]) -> Protection | None:
        """The limit by which these pods may not all be evicted now, although they may be later. Called when the plugin
        protected pods and incremented `Handle.withheld`; while `Handle.lenient` is set it protects none of those."""
        return None

    # Queues

    def queue_error(self, queue: Queue) -> str | None:
        """Why no gang of this queue can be admitted or placed, however much capacity is free (a sentence); None if one
        can."""
        return None

    def enqueueable(self, job: Job) -> Verdict:
        """Whether a pending gang may be admitted."""
        return Verdict(Vote.ABSTAIN)

    def admission_key(self, job: Job) -> object:
        """The inputs of `enqueueable` besides the gang's queue, minResources and gated pods. Once a gang is rejected,
        gangs that are equal in all of these are rejected too, because admissions only ever reduce capacity."""
        return job.uid

    def admission_needed(self, job: Job) -> bool:
        """Whether `enqueueable` has to be called for a gang even though it has no minResources."""
        return False

    def enqueued(self, job: Job) -> None:
        """Called after a gang was admitted."""

    def count_admission(self, job: Job, sign: int) -> None:
        """Add (`sign` 1) or remove (-1) the minResources of an admitted gang without placed pods, for the next
        decisions of this cycle."""

    def overused(self, queue: Queue) -> str | None:
        """Why no more is allocated to the queue in this action (a sentence); None if it may be."""
        return None

    def room(self, queue: Queue, request: Vector) -> int:
        """How many tasks with this request the queue has capacity for."""
        return UNLIMITED

    def room_of(self, job: Job, request: Vector) -> int:
        """How many tasks of this gang with this request its queue has capacity for, including the capacity that is
        reserved for the gang (`reserve`)."""
        return UNLIMITED if job.queue is None else self.room(job.queue, request)

    def barred(self, task: Task) -> Verdict | None:
        """Why this task may not be placed on behalf of its queue now, for a reason that its request doesn't show; None
        if it may. Called while `barring` is set, for tasks with device claims, one at a time."""
        return None

    def reserve(self, job: Job, cls: TaskClass, count: int) -> None:
        """Reserve queue capacity for `count` tasks of the gang whose gates are being removed; a negative count releases
        it. `room` counts reserved capacity as used, and `room_of` doesn't for this gang."""

    def ledger(self, queue: Queue, request: Vector) -> Ledger | None:
        """The usage and the limit of the queue for users: among it and its ancestors that with the least capacity for
        this request. None if this plugin limits nothing."""
        return None

    def limit_stamp(self, queue: Queue) -> object:
        """A value that compares equal as long as `overused` and `room` return the same for this queue."""
        return None

    # Nodes

    def rejections(self, profile: Profile) -> Sequence[Rejection]:
        """Filters by properties of nodes. Results are kept until a node changes, also between cycles."""
        return ()

    def preferences(self, profile: Profile) -> Sequence[Preference]:
        """Scores by properties of nodes. Results are kept like those of `rejections`."""
        return ()

    def caps(self, cls: TaskClass, rows: Rows) -> Sequence[Cap]:
        """Present limits per node other than resources; shape [len(rows)]."""
        return ()

    def caps_later(self, cls: TaskClass, rows: Rows) -> Sequence[Cap]:
        """Limits as those of `caps`, once the pods that are terminating have ended."""
        return self.caps(cls, rows)

    def caps_empty(self, task: Task) -> Floats | None:
        """How many pods like the task each node takes while no pod is on it, [N], by limits other than resources and
        `rejections`; None if this plugin limits nothing. Properties of a node that aren't known yet don't limit."""
        return None

    def scores(self, cls: TaskClass, columns: Columns) -> Floats | None:
        """Scores of nodes by the resources used on them; elementwise over `columns`, in any shape that it has."""
        return None

    def couples(self, task: Task) -> bool:
        """Whether `task_rejections` or `task_scores` have results for this task. Such tasks are placed one at a
        time."""
        return False

    def task_rejections(self, task: Task, static: Sequence[Rejection]) -> Sequence[Rejection]:
        """Filters by the pods on nodes. `static` are the results of all plugins' `rejections` for the task's
        profile."""
        return ()

    def task_scores(self, task: Task, candidates: Rows, static: Sequence[Rejection]) -> Floats | None:
        """Scores by the pods on nodes, for the candidate rows, normalised over them."""
        return None

    def leaning(self, job: Job, sub: SubKey | None, cls: TaskClass, domain: int | None) -> Leaning | None:
        """Scores for the next tasks of a gang, or of a sub-gang, that change with each placement. `domain` is the
        number of the network topology domain in which they are placed; None if all nodes are allowed."""
        return None

    # Network topology domains, by their numbers in the tree (`vcbatch.scheduler.topology.domains`)

    def domain_scores(self, request: DomainRequest, domains: Rows) -> Floats | None:
        """Scores of domains that have enough slots for the tasks; [len(domains)]."""
        return None

    def domain_order(
        self, job: Job, sub: SubKey | None, groups: Sequence[Rows], *, evicting: bool
    ) -> Sequence[Rows] | None:
        """The order in which domains are tried. `groups` has the domains with enough slots by number, grouped by tier,
        the lowest tier first. `evicting` is set if pods are to be evicted in them. The first plugin with a result
        decides."""
        return None

    # Accounting

    def placed(self, job: Job, cls: TaskClass, count: int) -> None:
        """`count` tasks of the class were placed on free resources or on those being released; a negative count means
        that placements were rolled back or pods evicted."""

    def moved(self, task: Task, row: int, step: int) -> None:
        """One task was placed on the node of this row (`step` 1), or its placement was rolled back or it was evicted
        (-1). Called in addition to `placed`, for plugins with their own accounting per pod or node."""

    def binding_annotations(self, task: Task, row: int) -> Mapping[str, str]:
        """The annotations that the pod gets with its binding to this node."""
        return {}

    def node_lock(self, task: Task) -> str:
        """The annotation by which the node is locked while the pod is being bound; empty if it isn't locked."""
        return ""

    @classmethod
    def ignored_resources(cls, arguments: Arguments, facts: Facts) -> frozenset[str]:
        """Names of resources in pods and nodes that all other plugins ignore, because this one accounts for them. The
        result may depend on the ConfigMaps among `facts` that the plugin reads."""
        return frozenset()

    @classmethod
    def devices_by_claim(cls, arguments: Arguments) -> bool:
        """Whether the plugin rejects nodes that lack the devices of a pod's ResourceClaims."""
        return False

    @classmethod
    def config_maps(cls, arguments: Arguments) -> frozenset[tuple[str, str]]:
        """The ConfigMaps that the plugin reads (`state.facts`), as namespace and name."""
        return frozenset()
