"""The inventory of a cluster: plain values without access to its server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from vcbatch.api.names import COMPONENTS_NAMESPACE

Json = dict[str, Any]

NAMES_KEPT = 5
"""Maximum number of names of one group that are kept for messages; the others are only counted."""


class Maker(StrEnum):
    """The project that a program or an object belongs to."""

    VOLCANO = "Volcano"
    VCBATCH = "vcbatch"
    UNKNOWN = "unknown"


class Role(StrEnum):
    """The function of a program. Volcano and vcbatch both have the first three."""

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
    """What could not be read, and why. `forbidden`: a permission is missing."""

    what: str
    why: str
    forbidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The tool that manages an object: `tool` is Helm, Argo CD, Flux, a field manager, or empty."""

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
    """The differences between a stored definition and the shipped one; paths of fields in the schema."""

    missing: Sequence[str] = ()
    """Fields of the shipped definition that the stored one lacks: the server drops them from objects."""
    extra: Sequence[str] = ()
    """Fields of the stored definition that the shipped one lacks: the server would drop them after the installation."""
    other: Sequence[str] = ()
    """Differences in versions, scope and subresources, as sentences."""

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra or self.other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A CustomResourceDefinition of one of Volcano's groups."""

    name: str
    owner: Owner = field(default_factory=Owner)
    known: bool = True
    """Whether vcbatch implements this kind."""
    established: bool = True
    kept: bool = False
    """Whether the live object has Helm's keep policy."""
    drift: Drift = field(default_factory=Drift)
    deleting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """One webhook of a configuration for kinds or pods that vcbatch handles."""

    kind: str
    configuration: str
    name: str
    maker: Maker = Maker.UNKNOWN
    owner: Owner = field(default_factory=Owner)
    fails_closed: bool = True
    trusted: bool = True
    """Whether it has a CA bundle."""
    target: str = ""
    """`NAMESPACE/NAME` of its Service, or its URL."""
    service: bool = True
    ready: int | None = None
    """Ready endpoints of the Service; None where that isn't known."""
    pods: bool = False
    """Whether it is called for pods."""
    matches_all_pods: bool = False
    """Whether it is called for pods of other schedulers, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionPolicy:
    """A ValidatingAdmissionPolicy or MutatingAdmissionPolicy, or a binding of one."""

    kind: str
    name: str
    maker: Maker
    owner: Owner = field(default_factory=Owner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A workload that runs a program of Volcano or vcbatch."""

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
    """The value of `--scheduler-sharding-mode`; empty where it isn't set."""
    policy: tuple[str, str] = ("", "")
    """Name of the ConfigMap with the scheduler configuration, and the key in it."""

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
    """The failing background task, as a program of vcbatch reports it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEntry:
    """A scheduler configuration in a ConfigMap. `errors`: why vcbatch's scheduler rejects it; None where it wasn't
    validated."""

    namespace: str
    name: str
    key: str
    maker: Maker
    errors: Sequence[str] | None = ()
    warnings: Sequence[str] = ()
    needs_metrics_api: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The number of objects in each group, and the first few names of each."""

    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    names: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def some(self, group: str) -> str:
        """The names of a group as `a, b and 3 more`."""
        shown, count = self.names.get(group, ()), self.counts.get(group, 0)
        listed = ", ".join(shown)
        return f"{listed} and {count - len(shown)} more" if count > len(shown) else listed


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    """A queue. `state_managers`: the field managers of `status.state`, as `MANAGER (OPERATION)`."""

    name: str
    state: str = ""
    parent: str = ""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    state_managers: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEntry:
    """A Command that no controller has executed yet."""

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
    """The whole inventory. Parts that could not be read are listed in `unread`, and empty here."""

    server: str = ""
    version: str = ""
    skew: timedelta | None = None
    """How far the server's clock is ahead of the local one."""
    components: str = COMPONENTS_NAMESPACE
    """The namespace of vcbatch's programs, installed or to be installed."""
    local: bool = False
    """Whether the server is a `vcbatch up`."""
    unread: Sequence[Unread] = ()
    cut: Sequence[str] = ()
    """Kinds with more objects than are read."""
    definitions: Sequence[Definition] = ()
    webhooks: Sequence[Webhook] = ()
    admission_policies: Sequence[AdmissionPolicy] = ()
    programs: Sequence[Program] = ()
    leases: Sequence[LeaseEntry] = ()
    policies: Sequence[PolicyEntry] = ()
    scheduler_names: Mapping[str, int] = field(default_factory=dict[str, int])
    """Unfinished pods by `spec.schedulerName`, without `default-scheduler`."""
    jobs: Tally = field(default_factory=Tally)
    """Jobs by phase."""
    job_schedulers: Mapping[str, int] = field(default_factory=dict[str, int])
    """Unfinished Jobs by `spec.schedulerName`."""
    ledgers: int = 0
    """Jobs with `status.ledger`, which only vcbatch writes."""
    pod_groups: Tally = field(default_factory=Tally)
    """PodGroups by phase."""
    old_names: Tally = field(default_factory=Tally)
    """PodGroups of unfinished Jobs whose names aren't JOB-UID, as in Volcano before 1.10, by `Job`."""
    queues: Sequence[QueueEntry] = ()
    commands: Sequence[CommandEntry] = ()
    cronjobs: Sequence[CronEntry] = ()
    flows: Tally = field(default_factory=Tally)
    shards: Sequence[str] = ()
    """The names of NodeShards."""
    virtual_devices: int = 0
    """The number of nodes with vGPUs of Volcano's device plugin."""
    colocated: int = 0
    """The number of nodes that Volcano's agent oversubscribes."""
    metrics_api: bool | None = None
    foreign: Sequence[str] = ()
    """Existing objects of the manifest to be installed that another tool manages, as `KIND/NAME in NAMESPACE`."""

    def programs_of(self, maker: Maker, *roles: Role) -> list[Program]:
        return [one for one in self.programs if one.maker is maker and (not roles or one.role in roles)]
