"""What a cycle decides: data for the runtime to carry out, every record naming the UID it is about.

Records that a cycle makes by the thousand are tuples, which are made several times faster than frozen dataclasses; a
bind, of which there is one for each pod, is a struct, which is made several times faster still.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from vcbatch.api.reasons import DisruptionLimit, WaitReason
from vcbatch.api.remedies import Remedy
from vcbatch.api.resources import Resource
from vcbatch.scheduler.model.figures import Figures


class ClaimBinding(NamedTuple):
    """Give this claim, which waits for its first consumer, the volume of this name; where that is empty, have one made
    for the node. It may take `timeout` seconds."""

    namespace: str
    name: str
    uid: str
    volume: str
    node: str
    timeout: float = 600.0


class ExtendedClaim(NamedTuple):
    """What a claim asks for that is made for the extended resources of a pod, and which container gets what of it, both
    as the API has them."""

    requests: Sequence[Mapping[str, Any]]
    mappings: Sequence[Mapping[str, str]]


class DeviceBinding(NamedTuple):
    """Write down that the pod uses this claim, and give the claim these devices where `allocation` is there. Devices
    that wait for conditions may take `timeout` seconds. Where the claim is the pod's `extended` one, it has no UID: it
    is to be made first, and the pod to be told of it."""

    namespace: str
    name: str
    uid: str
    allocation: Mapping[str, Any] | None
    timeout: float = 600.0
    extended: ExtendedClaim | None = None


class Bind(msgspec.Struct, frozen=True, order=True, gc=False):
    """Bind this pod to this node, after `claims` are bound. The binds of one gang that is named wait for the claims of
    all of them, since some alone would be of no use. `annotations` are given to the pod with the binding."""

    namespace: str
    name: str
    uid: str
    node: str
    gang: str = ""
    claims: tuple[ClaimBinding, ...] = ()
    annotations: Mapping[str, str] | None = None
    devices: tuple[DeviceBinding, ...] = ()
    lock: str = ""
    """The annotation by which the node is locked from before the pod is bound until its device plugin has seen it."""


class Held(NamedTuple):
    """A place that is kept for this pod until the cycle ends, because its gang starts as soon as pods that are ending
    are gone. `promised` where the place itself is still taken; nothing is bound yet. `nominated` where it is kept
    beyond the cycle, as pods were evicted for the gang, so that the pod is to say so (`status.nominatedNodeName`)."""

    namespace: str
    name: str
    uid: str
    node: str
    promised: bool
    nominated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """Delete this pod, after its conditions say why. `reason` is the name of the action that took the decision."""

    namespace: str
    name: str
    uid: str
    reason: str
    message: str


class GateRemoval(NamedTuple):
    """Take the queue's scheduling gate, the only one it has, off this pod: there is room for it, which is kept."""

    namespace: str
    name: str
    uid: str


class PodGroupUpdate(NamedTuple):
    """Replace the PodGroup's whole `status` (the kind has no status subresource), as of `resource_version`, and merge
    `annotations` (None for one to be removed)."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    status: Mapping[str, Any]
    annotations: Mapping[str, str | None] | None = None


class PodConditionUpdate(NamedTuple):
    """Set the pod's condition `PodScheduled` to False with this reason and message, and `status.nominatedNodeName` to
    `nominated` (an empty one clears it, None leaves it alone)."""

    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    nominated: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatusUpdate:
    """Merge `allocated` (canonical quantities by resource name, None for a name to be removed) into the queue's
    status."""

    name: str
    uid: str
    resource_version: str
    allocated: Mapping[str, str | None]


class NodeShardUpdate(NamedTuple):
    """Write these fields into the NodeShard's status."""

    name: str
    uid: str
    status: Mapping[str, Any]


class EventRecord(NamedTuple):
    """A core/v1 Event about one object; `type` is Normal or Warning."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    type: str
    reason: str
    message: str


class PluginFailure(NamedTuple):
    """A plugin or an action of the user's own raised, or returned what it may not, as `did` says. `gang` is the key of
    the gang about which it was asked, empty where it wasn't about one."""

    name: str
    hook: str
    place: str
    """File and line."""
    error: str
    gang: str
    did: str = "raised"

    @property
    def sentence(self) -> str:
        """All of it, for people."""
        return f"{self.name}.{self.hook} ({self.place}) {self.did} {self.error}"


class Shortage(NamedTuple):
    """One resource that is short, in the units people write (cores, bytes, devices)."""

    resource: str
    requested: str
    available: str
    short_by: str


class ClosestDomain(NamedTuple):
    """The domain of the network that comes closest to holding a gang that none of those allowed holds: it has room for
    `room` of the `needed` pods. `limit` is the highest tier that was allowed."""

    name: str
    tier: int
    limit: int
    needed: int
    room: int


class Protected(NamedTuple):
    """So many `pods` of these `gangs` (keys) would be evicted for a gang, but for a limit, of which `allowed` is
    the value. They may go from `until` on; None where more would have to go at once than ever may."""

    pods: int
    gangs: Sequence[str]
    limit: DisruptionLimit
    allowed: str
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why one gang waits, as data.

    `shortages` has what is short at `place`: of the node on which the least must become free for the gang to fit, of
    the queue or the quota whose limit keeps it out. `remedies` together let the gang start, as far as is known; where
    several nodes are short, one is the `place` and all are among them. `nodes` counts how many nodes fail for each
    reason. `ahead` names the gangs before it in its queue that wait as well, best
    first, at most `AHEAD_SHOWN` of them; `position` counts from 1.
    """

    namespace: str
    name: str
    uid: str
    queue: str
    reason: WaitReason
    message: str
    minimum: int
    placed: int
    task: str = ""
    shortages: Sequence[Shortage] = ()
    place: str = ""
    """Where something is short, as KIND/NAME: `node/n1`, `queue/research`."""
    remedies: Sequence[Remedy] = ()
    nodes_examined: int = 0
    nodes: Mapping[str, int] | None = None
    closest: ClosestDomain | None = None
    protected: Protected | None = None
    position: int = 0
    ahead: Sequence[str] = ()
    expected_start: datetime | None = None
    """When it will start at the latest, by the limits that running gangs declare; None where nobody can say."""


AHEAD_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleResult:
    """All decisions of one cycle, already assumed in the scheduler's own snapshot.

    `binds` come gang by gang, a gang's pods together. `explain` has the gangs that waited and were looked at in this
    cycle. `requeue_at` is set when time alone changes something (a message that may be refreshed then); otherwise
    the next cycle is due when something changed.
    """

    binds: Sequence[Bind] = ()
    held: Sequence[Held] = ()
    evictions: Sequence[Eviction] = ()
    gate_removals: Sequence[GateRemoval] = ()
    podgroup_updates: Sequence[PodGroupUpdate] = ()
    pod_conditions: Sequence[PodConditionUpdate] = ()
    queue_statuses: Sequence[QueueStatusUpdate] = ()
    node_shard: NodeShardUpdate | None = None
    events: Sequence[EventRecord] = ()
    explain: Sequence[Explanation] = ()
    figures: Figures = field(default_factory=Figures)
    requeue_at: datetime | None = None
    failures: Sequence[PluginFailure] = ()
    """What plugins and actions of the user's own got wrong: the gangs concerned were set aside, or nothing was
    decided."""
