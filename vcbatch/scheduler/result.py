"""What a cycle decides: data for the runtime to carry out, every record naming the UID it is about.

Records that a cycle makes by the thousand are tuples, which are made several times faster than frozen dataclasses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from vcbatch.api.resources import Resource


class ClaimBinding(NamedTuple):
    """Give this claim, which waits for its first consumer, the volume of this name; where that is empty, have one made
    for the node."""

    namespace: str
    name: str
    uid: str
    volume: str
    node: str


class Bind(NamedTuple):
    """Bind this pod to this node, after `claims` are bound. The binds of one gang that is named wait for the claims of
    all of them, since some alone would be of no use."""

    namespace: str
    name: str
    uid: str
    node: str
    gang: str = ""
    claims: tuple[ClaimBinding, ...] = ()


class Held(NamedTuple):
    """A place that is kept for this pod until the cycle ends, because its gang starts as soon as pods that are ending
    are gone. `promised` where the place itself is still taken; nothing is bound yet."""

    namespace: str
    name: str
    uid: str
    node: str
    promised: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """Delete this pod, after its conditions say why. `reason` is the name of the action that took the decision."""

    namespace: str
    name: str
    uid: str
    reason: str
    message: str


class PodGroupUpdate(NamedTuple):
    """Replace the PodGroup's whole `status` (the kind has no status subresource), as of `resource_version`."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    status: Mapping[str, Any]


class PodConditionUpdate(NamedTuple):
    """Set the pod's condition `PodScheduled` to False with this reason and message."""

    namespace: str
    name: str
    uid: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatusUpdate:
    """Merge `allocated` (canonical quantities by resource name, None for a name to be removed) into the queue's
    status."""

    name: str
    uid: str
    resource_version: str
    allocated: Mapping[str, str | None]


class EventRecord(NamedTuple):
    """A core/v1 Event about one object; `type` is Normal or Warning."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    type: str
    reason: str
    message: str


class WaitReason(StrEnum):
    """Why a gang waits. A closed vocabulary: the same words in explanations, metrics and tools."""

    NOT_ENOUGH_PODS = "NotEnoughPods"
    """Fewer pods exist than the gang's minimum (in total, or of one role)."""
    QUEUE_MISSING = "QueueMissing"
    QUEUE_NOT_OPEN = "QueueNotOpen"
    QUEUE_LIMIT = "QueueLimit"
    """The queue may not hold more now."""
    CLUSTER_OVERCOMMITTED = "ClusterOvercommitted"
    """Admission: what is admitted already fills the cluster."""
    IMPOSSIBLE = "Impossible"
    """A pod asks for more than any node has at all, or no node passes its constraints: waiting won't help."""
    INSUFFICIENT = "InsufficientResources"
    """The nodes that would do don't have enough left."""
    WAITING_FOR_RELEASE = "WaitingForRelease"
    """It fits as soon as pods that are ending are gone; what it found is held for it."""
    UNSUPPORTED = "UnsupportedConstraint"
    """A pod asks for something that this scheduler doesn't understand, so it isn't placed."""
    VOLUMES = "VolumesNotReady"
    """A claim of a pod isn't there, is going, or isn't bound."""
    GATED = "SchedulingGated"


class Shortage(NamedTuple):
    """One resource that is short, in the units people write (cores, bytes, devices)."""

    resource: str
    requested: str
    available: str
    short_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why one gang waits, as data.

    `shortages` compares one pod with the node that has most left where the reason is about nodes, and the gang with
    the queue where it is about a limit. `nodes` counts how many nodes fail for each reason. `ahead` names the gangs
    before it in its queue that wait as well, best first, at most `AHEAD_SHOWN` of them; `position` counts from 1.
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
    nodes_examined: int = 0
    nodes: Mapping[str, int] | None = None
    position: int = 0
    ahead: Sequence[str] = ()


AHEAD_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleResult:
    """All decisions of one cycle, already assumed in the scheduler's own picture.

    `binds` come gang by gang, a gang's pods together. `explain` has the gangs that waited and were looked at in this
    cycle. `look_again_at` is set when time alone changes something (a message that may be refreshed then); otherwise
    the next cycle is due when something changed.
    """

    binds: Sequence[Bind] = ()
    held: Sequence[Held] = ()
    evictions: Sequence[Eviction] = ()
    podgroup_updates: Sequence[PodGroupUpdate] = ()
    pod_conditions: Sequence[PodConditionUpdate] = ()
    queue_statuses: Sequence[QueueStatusUpdate] = ()
    events: Sequence[EventRecord] = ()
    explain: Sequence[Explanation] = ()
    look_again_at: datetime | None = None
