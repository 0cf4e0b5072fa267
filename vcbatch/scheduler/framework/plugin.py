"""What a plugin may decide. A plugin overrides the methods it has an opinion on; the session asks only those.

A plugin is made anew for every cycle: `open` sees the whole snapshot once, and the other methods are asked while
actions run. They must be pure functions of the snapshot, the class or the gang they are asked about, and what `placed`
told them. Methods with arrays decide about all nodes at once.
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
"""A room that no gang fills."""


class Vote(IntEnum):
    """What a plugin says where others are heard as well; how votes combine is in `answers`."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """A vote; where it rejects, a sentence that says what is short, why in the closed vocabulary, the numbers and the
    place that they are about, and what would let the gang pass. `volcano` is Volcano's sentence where `message` is
    another: tools match on it, so that it stands in events and conditions as well."""

    vote: Vote
    message: str = ""
    reason: WaitReason = WaitReason.ADMISSION_REFUSED
    shortages: Sequence[Shortage] = ()
    place: str = ""
    remedies: Sequence[Remedy] = ()
    volcano: str = ""


class Ledger(NamedTuple):
    """What a queue holds, what is promised to it included, and the most that it may hold now; both [R].

    `word` is what the limit is called; `queue` names the queue whose limit it is, where that is one above; `ever` is
    the most that it may hold whatever others ask for, so that a gang that needs more never starts.
    """

    held: Vector
    limit: Vector
    word: str = "deserved"
    queue: str = ""
    ever: Vector | None = None


class Rejection(NamedTuple):
    """Nodes that a filter refuses, shape [N], and why in the words of kube-scheduler. `by` says what of the node it
    went by, for rules that count only nodes which others admit. `temporary` are those of the nodes, [N], that are
    refused for a state that passes by itself (not ready, cordoned, being added); None where none is. `word` is the
    reason of a gang that waits for it."""

    reason: str
    nodes: Mask
    by: Literal["affinity", "taint", ""] = ""
    temporary: Mask | None = None
    word: WaitReason = WaitReason.NODES_REFUSED

    @property
    def lasting(self) -> Mask:
        """The nodes that are refused for what they are."""
        return self.nodes if self.temporary is None else self.nodes & ~self.temporary


class EvictionKind(Enum):
    """For whom a gang's victims go."""

    PREEMPT = auto()
    """For a gang of their own queue."""
    RECLAIM = auto()
    """For a gang of another queue."""


@dataclass(frozen=True, slots=True)
class GangEviction:
    """A whole gang that others are to be evicted for, with what its pending tasks ask for together, shape [R]."""

    kind: EvictionKind
    job: Job
    need: Vector


class Protection(NamedTuple):
    """A limit that keeps pods, what it `allowed`, and until when it keeps them; None where so many may never go at
    once."""

    limit: DisruptionLimit
    allowed: str
    until: datetime | None


class PodRule(Enum):
    """A rule about which pods may be beside each other."""

    PORTS = auto()
    """Host ports that no two pods of a node have."""
    AFFINITY = auto()
    """Inter-pod affinity and anti-affinity."""
    SPREAD = auto()
    """Topology spread constraints."""


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
    word: WaitReason = WaitReason.NODES_REFUSED


class Leaning(Protocol):
    """Points of nodes that move with every task that is placed."""

    def points(self, rows: Rows, candidates: Mask) -> Floats:
        """Points of the nodes of these rows now; [len(rows)]. `candidates` has those that take a task."""
        ...

    def placed(self, row: int) -> None:
        """One more task goes to the node of this row."""
        ...


@dataclass(frozen=True, slots=True)
class DomainRequest:
    """Tasks of a gang, or of one gang inside it, that look for a domain of the network: so many, asking for `amount`
    together, [R]. `spare` is how many more of them each domain would take, [D]."""

    job: Job
    sub: SubKey | None
    count: int
    amount: Vector
    spare: Floats


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


class OrderTerm(NamedTuple):
    """What a number of a key is, for people. `sign` is 1 where the smaller number goes first, -1 where the key is the
    number's negative, as the greater goes first, and 0 where the number says nothing by itself (a flag, a rank, a
    time): `word` is then what is true of the one that goes first. `of` names what the number is of, where that isn't
    the one that stands in the order."""

    word: str
    sign: Literal[-1, 0, 1] = 1
    of: str = ""


class Plugin:
    """Base of all plugins, built in or a user's own. Every method here is the answer of one without an opinion."""

    ARGUMENTS: ClassVar[ArgumentSpec] = NO_ARGUMENTS
    """The arguments it reads; anything else in the policy is an error."""
    HIERARCHICAL: ClassVar[bool] = False
    """Whether `enableHierarchy` may be set."""
    SHARES_PLACES: ClassVar[bool] = False
    """Whether serving one gang or queue moves others back in the order too."""
    VICTIMS_BY_STANDING: ClassVar[bool] = False
    """Whether victims are the same for two gangs of one queue that have the same priority and hold the same: what one
    can't be helped with the other needn't ask for."""
    KEEPS_VICTIMS: ClassVar[bool] = False
    """Whether `preemptable` only keeps some candidates from being evicted, whatever their priority: a tier in which
    nobody else answers names victims of higher priority than the preemptor."""
    BY_AMOUNTS: ClassVar[bool] = False
    """Whether `scores`, and `caps` for a class without host ports, go by amounts on the node alone (`Columns`, not its
    `rows`), so that nodes with equal amounts get equal answers and one that is known needn't be asked for again."""

    BY_QUEUE: ClassVar[bool] = False
    """Whether `rejections`, `preferences`, `caps` or `scores` go by the queue; a profile names it then."""
    BY_TERMS: ClassVar[bool] = False
    """Whether `couples` is true at most of tasks with inter-pod terms or claims, and where pods on nodes have such
    terms."""

    ACTS_IN: ClassVar[str] = ""
    """The action without which the plugin decides nothing: a policy that names the plugin alone is refused."""

    TELLS_IMPOSSIBLE: ClassVar[bool] = False
    """Whether `enqueueable` may say that a gang is never admitted as things are. It is asked then even where another
    plugin of its tier refuses the gang for now."""

    NEEDS_METRICS: ClassVar[bool] = False
    """Whether it decides nothing where the policy has no section `metrics`."""

    pod_rules: frozenset[PodRule] = frozenset()
    """The rules about other pods that its filters enforce; found out in `open`."""

    barring: bool = False
    """Whether `barred` has anything to say in this cycle."""

    JOB_TERM: ClassVar[OrderTerm | None] = None
    """What `job_key` is, for people; None where nothing is said about it."""
    REMEMBERS_ORDER: ClassVar[bool] = False
    """Whether keys go by what happened before: a scheduler that has just started may answer otherwise."""

    ready_by_number: ClassVar[bool] = False
    """Whether a gang without minimums of roles and gangs inside it is ready by the number of its placed tasks alone,
    those that ask for nothing included. A class that overrides `job_ready` says so itself."""
    tasks_by_priority: ClassVar[bool] = False
    """Whether `task_key` is the same for tasks of the same priority. A class that overrides it says so itself."""

    UNWANTED: ClassVar[str] = "it had better run elsewhere"
    """What pods that `unwanted` names are told (a sentence)."""

    def __init_subclass__(cls) -> None:
        """What is known of a method isn't known of another that overrides it."""
        super().__init_subclass__()
        if "job_ready" in cls.__dict__ and "ready_by_number" not in cls.__dict__:
            cls.ready_by_number = False
        if "task_key" in cls.__dict__ and "tasks_by_priority" not in cls.__dict__:
            cls.tasks_by_priority = False

    def __init__(self, arguments: Arguments) -> None:
        self.arguments = arguments
        self.hierarchical = False
        """Whether the policy sets `enableHierarchy` for it."""

    @classmethod
    def of_mode(cls, *, hierarchical: bool) -> type[Plugin]:
        """The class to be used, where it is another with `enableHierarchy`."""
        return cls

    def open(self, session: Handle) -> None:
        """The cycle begins. Keep what later answers need."""

    def close(self, session: Handle) -> None:
        """The cycle's decisions are made; what is only held is still in place. What is to be remembered for the next
        cycle goes to `session.state.memory`."""

    # Order: the smaller key first; keys of one method are compared with each other only.

    def job_key(self, job: Job) -> float:
        """Where a gang stands in its queue."""
        return 0

    def job_keys(self, rows: Rows) -> Floats | None:
        """`job_key` of many gangs, by their rows in the job table; [len(rows)]. None where `job_key` is to be asked for
        each, as it is of a class that overrides nothing but it."""
        return None

    def task_key(self, task: Task) -> float:
        """Where a task stands in its gang."""
        return 0

    def queue_key(self, queue: Queue) -> tuple[float, ...]:
        """Where a queue stands."""
        return ()

    def queue_terms(self, queue: Queue) -> Sequence[OrderTerm]:
        """What the numbers of `queue_key` are, for people, in their order; empty where nothing is said about them."""
        return ()

    def queue_kin(self, queue: Queue) -> tuple[object, int] | None:
        """What names the queues whose keys begin alike with this one's, whatever is placed, and in how many numbers
        they do; None where that isn't known. Saves asking for the keys of all when one of them was served."""
        return None

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

    def job_starving(self, job: Job) -> bool:
        """Whether the gang may have others evicted for what it lacks. The first tier in which some plugin answers
        decides, and all of that tier must agree."""
        return False

    # Victims. None is no opinion; an empty answer leaves the decision to the next tier.

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> Sequence[Task] | None:
        """Which of the candidates, pods of one node in victim order, may be evicted for a task of their queue."""
        return None

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> Sequence[Task] | None:
        """Which of the candidates, pods of one node in victim order, may be evicted for a task of another queue."""
        return None

    def possible_victims(self, kind: EvictionKind, job: Job, cls: TaskClass, candidates: Candidates) -> Mask | None:
        """Which of the candidates, [K], of other gangs and of many nodes, `preemptable` or `reclaimable` might name for
        a task of this class and gang: True at least for those, until somebody is spared or the cycle ends. Rules out
        nodes before single pods are looked at. None where that isn't known; a plugin that answers never abstains."""
        return None

    def evictable(self, eviction: GangEviction, candidates: Sequence[Task]) -> Sequence[Task] | None:
        """Which of the candidates, pods of many nodes, may be evicted for a whole gang."""
        return None

    def share_left(self, queue: Queue, victims: Sequence[Task]) -> Sequence[Shortage]:
        """What the queue would lack of what it deserves without all of these pods of it: of each resource what it
        deserves, what it would have of it, and the difference. Nothing where they may be evicted for a whole gang."""
        return ()

    def preemptive(self, queue: Queue, request: Vector) -> bool:
        """Whether the queue may have pods of other queues evicted for this request, shape [R]. All must agree."""
        return True

    def victim_queue_key(self, victim: Queue, preemptor: Queue) -> tuple[float, ...]:
        """Where a queue stands among those that lose pods for a task of `preemptor`; the smaller loses first. Where all
        plugins answer the same, the queue that comes last in queue order loses first."""
        return ()

    def unwanted(self, running: Sequence[Task]) -> Sequence[Task] | None:
        """Which running pods had better be moved away, whoever waits (the shuffle action)."""
        return None

    def movable(self, unwanted: Sequence[Task]) -> Sequence[Task] | None:
        """Which of the running pods that others had better see moved away may go now. All who answer must agree."""
        return None

    def protection(self, victims: Sequence[Task]) -> Protection | None:
        """By which limit these pods may not all be evicted now, though they could be later. Asked where the plugin kept
        pods for which it raised `Handle.withheld`; while `Handle.lenient` it keeps none of those."""
        return None

    # Queues

    def queue_error(self, queue: Queue) -> str | None:
        """Why no gang of this queue can be admitted or placed, whatever there is room for (a sentence)."""
        return None

    def enqueueable(self, job: Job) -> Verdict:
        """Whether a pending gang may be admitted."""
        return Verdict(Vote.ABSTAIN)

    def admission_key(self, job: Job) -> object:
        """What the answer of `enqueueable` goes by, besides the gang's queue, minResources and gated pods: of gangs
        alike in these the others aren't asked once one was refused, since admissions only ever take room."""
        return job.uid

    def admission_needed(self, job: Job) -> bool:
        """Whether `enqueueable` is to be asked about a gang even though it has no minResources."""
        return False

    def enqueued(self, job: Job) -> None:
        """A gang was admitted."""

    def count_admission(self, job: Job, sign: int) -> None:
        """The room that an admitted gang without any place counts for is taken (`sign` 1) or given back (-1) for what
        is asked next in this cycle."""

    def overused(self, queue: Queue) -> str | None:
        """Why the queue gets nothing more in this action (a sentence), None where it may."""
        return None

    def room(self, queue: Queue, request: Vector) -> int:
        """How many tasks with this request the queue may still take."""
        return UNLIMITED

    def room_of(self, job: Job, request: Vector) -> int:
        """The same for tasks of one gang, where its queue keeps room for it."""
        return UNLIMITED if job.queue is None else self.room(job.queue, request)

    def barred(self, task: Task) -> Verdict | None:
        """Why the task's queue may not hold this very task now, by what its request doesn't say; None where it may.
        Asked where `barring`, for tasks that claim devices, one after the other."""
        return None

    def reserve(self, job: Job, cls: TaskClass, count: int) -> None:
        """Room of the gang's queue is kept for so many of its tasks, whose gates are opened; negative: not after all.
        What is kept is nobody else's: `room` counts it as taken, `room_of` this gang doesn't."""

    def ledger(self, queue: Queue, request: Vector) -> Ledger | None:
        """What the queue holds and may hold, for people: of it and the queues above it the one with the least room for
        this request. None where this plugin limits nothing."""
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

    def caps_later(self, cls: TaskClass, rows: Rows) -> Sequence[Cap]:
        """The same once what is being released is gone."""
        return self.caps(cls, rows)

    def caps_empty(self, task: Task) -> Floats | None:
        """How many pods like the task each node takes that has no pod on it, [N], by other limits than resources and
        `rejections`; None where this plugin limits nothing. What isn't known of a node yet limits nothing."""
        return None

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

    def leaning(self, job: Job, sub: SubKey | None, cls: TaskClass, domain: int | None) -> Leaning | None:
        """Points for the next tasks of a gang (of one gang inside it) that move with each of them. `domain` is the
        number of the domain of the network in which they are placed, None where any node will do."""
        return None

    # Domains of the network, by their numbers in the tree (`vcbatch.scheduler.topology.domains`)

    def domain_scores(self, request: DomainRequest, domains: Rows) -> Floats | None:
        """Points for domains that have room for the tasks; [len(domains)]."""
        return None

    def domain_order(
        self, job: Job, sub: SubKey | None, groups: Sequence[Rows], *, evicting: bool
    ) -> Sequence[Rows] | None:
        """In which order domains are tried that by count have room, given by tier, near ones first. `evicting` where
        others are to be evicted from them. The first plugin with an answer decides."""
        return None

    # Bookkeeping

    def placed(self, job: Job, cls: TaskClass, count: int) -> None:
        """So many tasks of the class were placed on free or on promised resources. Negative: taken back, or evicted."""

    def moved(self, task: Task, row: int, step: int) -> None:
        """One task was placed on the node of this row (`step` 1), or taken back or evicted from it (-1). Called besides
        `placed`, for plugins that keep their own accounting per pod or node."""

    def binding_annotations(self, task: Task, row: int) -> Mapping[str, str]:
        """What the pod is to be told with its binding to this node."""
        return {}

    def node_lock(self, task: Task) -> str:
        """The annotation by which the node is to be locked while the pod is bound; empty where it isn't."""
        return ""

    @classmethod
    def ignored_resources(cls, arguments: Arguments, facts: Facts) -> frozenset[str]:
        """Names that pods and nodes may say amounts of, and that count for nobody, as this plugin sees to them. Of
        `facts` it may go by the ConfigMaps that it reads."""
        return frozenset()

    @classmethod
    def devices_by_claim(cls, arguments: Arguments) -> bool:
        """Whether it refuses nodes that lack the devices that a pod claims."""
        return False

    @classmethod
    def config_maps(cls, arguments: Arguments) -> frozenset[tuple[str, str]]:
        """The ConfigMaps it reads (`state.facts`), as namespace and name."""
        return frozenset()
