"""The inventory of a cluster: plain values, without a server behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from vcbatch.api.names import COMPONENTS_NAMESPACE

Json = dict[str, Any]

NAMES_KEPT = 5
"""How many names of one group are kept for messages; the others are counted."""


class Maker(StrEnum):
    """Whose a program or an object is."""

    VOLCANO = "Volcano"
    VCBATCH = "vcbatch"
    UNKNOWN = "unknown"


class Role(StrEnum):
    """What a program does. The first three are in both systems."""

    SCHEDULER = "scheduler"
    CONTROLLERS = "controllers"
    ADMISSION = "admission"
    AGENT_SCHEDULER = "agent scheduler"
    HYPERNODES = "HyperNode controller"
    AGENT = "agent"
    DASHBOARD = "dashboard"
    VGPU = "vGPU device plugin"
    GPU = "GPU-sharing device plugin"
    DESCHEDULER = "descheduler"
    GLOBAL = "volcano-global"
    TOPOLOGY = "NUMA topology discovery"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """What could not be read, and why. `forbidden`: for want of a right."""

    what: str
    why: str
    forbidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Which tool keeps an object: `tool` is Helm, Argo CD, Flux, a field manager, or empty."""

    tool: str = ""
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        if not self.name:
            return self.tool or "unknown"
        return f"{self.tool} {'release ' if self.tool == 'Helm' else ''}{self.name}" + (
            f" in {self.namespace}" if self.namespace else ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How a stored definition differs from the shipped one; paths of fields in the schema."""

    missing: Sequence[str] = ()
    """Fields of ours that the stored one doesn't have: the server would drop them from objects."""
    extra: Sequence[str] = ()
    """Fields of the stored one that ours doesn't have: the server would drop them once ours is installed."""
    other: Sequence[str] = ()
    """Versions, scope and subresources, as sentences."""

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra or self.other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A CustomResourceDefinition of one of Volcano's groups."""

    name: str
    owner: Owner = field(default_factory=Owner)
    known: bool = True
    """Whether vcbatch has this kind."""
    established: bool = True
    kept: bool = False
    """Whether the live object has Helm's keep policy."""
    drift: Drift = field(default_factory=Drift)
    deleting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """One webhook of a configuration that concerns kinds or pods of ours."""

    kind: str
    configuration: str
    name: str
    maker: Maker = Maker.UNKNOWN
    owner: Owner = field(default_factory=Owner)
    fails_closed: bool = True
    trusted: bool = True
    """Whether it carries a CA bundle."""
    target: str = ""
    """`NAMESPACE/NAME` of its Service, or its URL."""
    service: bool = True
    ready: int | None = None
    """Endpoints of the Service that are ready; None where that isn't known."""
    pods: bool = False
    """Whether it is asked about pods."""
    matches_all_pods: bool = False
    """Whether it is asked about pods of other schedulers, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionPolicy:
    """A ValidatingAdmissionPolicy or MutatingAdmissionPolicy, or a binding of one."""

    kind: str
    name: str
    maker: Maker
    owner: Owner = field(default_factory=Owner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A workload that runs a program of Volcano's or of ours."""

    kind: str
    namespace: str
    name: str
    maker: Maker
    role: Role
    owner: Owner = field(default_factory=Owner)
    replicas: int = 0
    ready: int = 0
    image: str = ""
    selector: Mapping[str, str] = field(default_factory=dict[str, str])
    scheduler_names: Sequence[str] = ()
    leader_elect: bool = True
    sharding: str = ""
    """`--scheduler-sharding-mode`; empty where none is set."""
    policy: tuple[str, str] = ("", "")
    """Name of the ConfigMap with the scheduler's policy, and the key in it."""

    @property
    def title(self) -> str:
        return f"{self.kind.lower()}/{self.name} in {self.namespace}"

    @property
    def running(self) -> bool:
        return self.replicas > 0 or self.ready > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseEntry:
    """The Lease of a program."""

    namespace: str
    name: str
    maker: Maker
    holder: str = ""
    renewed: datetime | None = None
    duration: timedelta = timedelta(seconds=15)
    failing: str = ""
    """The background task that fails, as a program of ours says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEntry:
    """A scheduler's policy in a ConfigMap. `errors`: why our scheduler refuses it; None where that wasn't validated."""

    namespace: str
    name: str
    key: str
    maker: Maker
    errors: Sequence[str] | None = ()
    warnings: Sequence[str] = ()
    needs_metrics_api: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many objects are in each group, and the names of the first few of each."""

    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    names: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def some(self, group: str) -> str:
        """`a, b and 3 more`."""
        shown, count = self.names.get(group, ()), self.counts.get(group, 0)
        listed = ", ".join(shown)
        return f"{listed} and {count - len(shown)} more" if count > len(shown) else listed


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    """A queue. `state_managers`: who owns `status.state`, as `MANAGER (OPERATION)`."""

    name: str
    state: str = ""
    parent: str = ""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    state_managers: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEntry:
    """A Command that nobody has carried out yet."""

    namespace: str
    name: str
    action: str = ""
    target: str = ""
    created: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CronEntry:
    """A CronJob of Volcano's API."""

    namespace: str
    name: str
    suspended: bool = False
    active: int = 0
    time_zone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """All of it. What could not be read is in `unread`, and empty here."""

    server: str = ""
    version: str = ""
    skew: timedelta | None = None
    """How far the server's clock is ahead of ours."""
    components: str = COMPONENTS_NAMESPACE
    """The namespace in which our programs are, or are to be."""
    local: bool = False
    """The server is a `vcbatch up`."""
    unread: Sequence[Unread] = ()
    cut: Sequence[str] = ()
    """Kinds of which there are more objects than are read."""
    definitions: Sequence[Definition] = ()
    webhooks: Sequence[Webhook] = ()
    admission_policies: Sequence[AdmissionPolicy] = ()
    programs: Sequence[Program] = ()
    leases: Sequence[LeaseEntry] = ()
    policies: Sequence[PolicyEntry] = ()
    scheduler_names: Mapping[str, int] = field(default_factory=dict[str, int])
    """Pods that have not ended, by `spec.schedulerName`, `default-scheduler` left out."""
    jobs: Tally = field(default_factory=Tally)
    """By phase."""
    job_schedulers: Mapping[str, int] = field(default_factory=dict[str, int])
    """Unfinished Jobs by `spec.schedulerName`."""
    ledgers: int = 0
    """Jobs with `status.ledger`, which only vcbatch writes."""
    pod_groups: Tally = field(default_factory=Tally)
    """By phase."""
    old_names: Tally = field(default_factory=Tally)
    """PodGroups of unfinished Jobs that aren't named JOB-UID, as Volcano named them before 1.10, by `Job`."""
    queues: Sequence[QueueEntry] = ()
    commands: Sequence[CommandEntry] = ()
    cronjobs: Sequence[CronEntry] = ()
    flows: Tally = field(default_factory=Tally)
    shards: Sequence[str] = ()
    """Names of NodeShards."""
    virtual_devices: int = 0
    """Nodes with vGPUs of Volcano's device plugin."""
    colocated: int = 0
    """Nodes that Volcano's agent oversubscribes."""
    metrics_api: bool | None = None
    foreign: Sequence[str] = ()
    """Objects of the manifest to be installed that exist and that another tool keeps, as `KIND/NAME in NAMESPACE`."""

    def programs_of(self, maker: Maker, *roles: Role) -> list[Program]:
        return [one for one in self.programs if one.maker is maker and (not roles or one.role in roles)]
