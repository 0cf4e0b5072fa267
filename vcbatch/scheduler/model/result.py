"""The decisions of a cycle: data for the runtime to carry out; every record has the UID of its object.

Records that a cycle creates by the thousand are tuples, which are created several times faster than frozen dataclasses;
a bind, one per pod, is a struct, which is created several times faster still.
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
    """Bind this claim, which waits for its first consumer, to the volume of this name; if the name is empty, have a
    volume provisioned for the node. It may take `timeout` seconds."""

    namespace: str
    name: str
    uid: str
    volume: str
    node: str
    timeout: float = 600.0


class ExtendedClaim(NamedTuple):
    """The requests of a claim that is created for the extended resources of a pod, and the mapping of its devices to
    containers, both in the form of the API."""

    requests: Sequence[Mapping[str, Any]]
    mappings: Sequence[Mapping[str, str]]


class DeviceBinding(NamedTuple):
    """Record that the pod uses this claim, and allocate these devices to the claim if `allocation` is given. Devices
    that wait for conditions may take `timeout` seconds. The pod's `extended` claim has no UID: it is to be created
    first, and written to the pod's status."""

    namespace: str
    name: str
    uid: str
    allocation: Mapping[str, Any] | None
    timeout: float = 600.0
    extended: ExtendedClaim | None = None


class Bind(msgspec.Struct, frozen=True, order=True, gc=False):
    """Bind this pod to this node, after `claims` are bound. If `gang` is set, its binds wait for the claims of all of
    them, since some of its pods alone can't run. `annotations` are added to the pod with the binding."""

    namespace: str
    name: str
    uid: str
    node: str
    gang: str = ""
    claims: tuple[ClaimBinding, ...] = ()
    annotations: Mapping[str, str] | None = None
    devices: tuple[DeviceBinding, ...] = ()
    lock: str = ""
    """The annotation by which the node is locked from before the pod is bound until its device plugin has observed
    it."""


class Held(NamedTuple):
    """A node that is kept for this pod until the cycle ends, because its gang starts as soon as terminating pods have
    ended. `promised` if the pod is pipelined, its resources being still in use; nothing is bound yet. `nominated` if
    the node is kept beyond the cycle, because pods were evicted for the gang, so that the pod's
    `status.nominatedNodeName` is set."""

    namespace: str
    name: str
    uid: str
    node: str
    promised: bool
    nominated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """Delete this pod, after setting its condition with the reason. `reason` is the name of the deciding action."""

    namespace: str
    name: str
    uid: str
    reason: str
    message: str


class GateRemoval(NamedTuple):
    """Remove the queue's scheduling gate, the pod's only one: the queue has capacity for the pod, which is reserved."""

    namespace: str
    name: str
    uid: str


class PodGroupUpdate(NamedTuple):
    """Replace the PodGroup's whole `status` (the kind has no status subresource), as of `resource_version`, and merge
    `annotations` (None removes one)."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    status: Mapping[str, Any]
    annotations: Mapping[str, str | None] | None = None


class PodConditionUpdate(NamedTuple):
    """Set the pod's condition `PodScheduled` to False with this reason and message, and `status.nominatedNodeName` to
    `nominated` (empty clears it, None leaves it unchanged)."""

    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    nominated: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatusUpdate:
    """Merge `allocated` (canonical quantities by resource name, None removes a name) into the queue's status."""

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
    """A custom plugin or action raised an error, or returned an invalid result, as `did` says. `gang` is the key of the
    gang for which it was called, empty if it wasn't for one."""

    name: str
    hook: str
    place: str
    """File and line."""
    error: str
    gang: str
    did: str = "raised"

    @property
    def sentence(self) -> str:
        """The failure as a sentence for users."""
        return f"{self.name}.{self.hook} ({self.place}) {self.did} {self.error}"


class Shortage(NamedTuple):
    """One resource that is short, in units for users (cores, bytes, devices)."""

    resource: str
    requested: str
    available: str
    short_by: str


class ClosestDomain(NamedTuple):
    """The closest network topology domain for a gang that fits none of the allowed ones: it has slots for `room` of the
    `needed` pods. `limit` is the highest allowed tier."""

    name: str
    tier: int
    limit: int
    needed: int
    room: int


class Protected(NamedTuple):
    """The `pods` of these `gangs` (keys) that would be evicted for a gang if a limit, whose value is `allowed`, didn't
    protect them. They may be evicted from `until` on; None if more would have to be evicted at once than is ever
    allowed."""

    pods: int
    gangs: Sequence[str]
    limit: DisruptionLimit
    allowed: str
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why one gang is pending, as data.

    `shortages` has what is short at `place`: on the node that needs the least release for the gang to fit, or in the
    queue or quota whose limit blocks it. `remedies` together let the gang start, as far as is known; if several nodes
    are short, one is the `place` and all are among the remedies. `nodes` counts how many nodes fail for each reason.
    `ahead` names the pending gangs before it in its queue, the first ones first, at most `AHEAD_SHOWN`; `position`
    counts from 1.
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
    """The object that `shortages` refer to, as KIND/NAME: `node/n1`, `queue/research`."""
    remedies: Sequence[Remedy] = ()
    nodes_examined: int = 0
    nodes: Mapping[str, int] | None = None
    closest: ClosestDomain | None = None
    protected: Protected | None = None
    position: int = 0
    ahead: Sequence[str] = ()
    expected_start: datetime | None = None
    """When it will start at the latest, by the declared limits of running gangs; None if that isn't known."""


AHEAD_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleResult:
    """All decisions of one cycle, already assumed in the scheduler's own snapshot.

    `binds` are ordered gang by gang, a gang's pods together. `explain` has the pending gangs that were checked in this
    cycle. `requeue_at` is set if time alone changes something (such as a message that may be refreshed then); otherwise
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
    """The failures of custom plugins and actions: their gangs were set aside, or nothing was decided."""
