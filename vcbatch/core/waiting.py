"""Why a gang waits, from objects that every user can read: the scheduler's own messages, the gangs ahead of it in its
queue, and the gangs that have to end before the limits of queues leave enough resources.

Works on objects as on the wire and loads no models, since commands and the SDK use it once and exit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, cast

from vcbatch.api import names
from vcbatch.api.loose import Json, listed, part
from vcbatch.api.messages import (
    behind_first,
    cause_of,
    expected_start,
    first_in_line,
    missing_objects,
    objects_missing,
    protected_until,
    read_wait,
)
from vcbatch.api.phases import JobPhase, PodGroupPhase, QueueState
from vcbatch.api.quantities import read
from vcbatch.api.quantity import ZERO, Quantity
from vcbatch.api.reasons import BEFORE_MISSING, BESIDE_MISSING, JobReason, PodGroupConditionType, WaitReason
from vcbatch.api.remedies import Remedy, read_remedies, sentence_of
from vcbatch.api.timestamps import parse_time

Amounts = Mapping[str, Quantity]

QUEUE_GONE: Final = "Gone"
"""Used instead of the state of a queue that doesn't exist."""

_COUNTED_TWICE: Final = ("requests.", "limits.", "count/")
_PODS: Final = "pods"
_FIRST_IN_FIRST_OUT: Final = "fifo"
"""`DequeueStrategy.FIFO`, which is defined among the models."""
_OUT_OF_LINE: Final = frozenset({WaitReason.NOT_ENOUGH_PODS, WaitReason.GATED, WaitReason.PLUGIN_FAILED})
"""Reasons with which a gang isn't tried at all, so that no other gang waits for it."""
_HOLDING: Final = frozenset({PodGroupPhase.RUNNING, PodGroupPhase.UNKNOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """A PodGroup. `name` is that of its job, or its own where it has no job; `pods` is its minimum, `asks` the requests
    of that minimum, `runs` the number of running pods."""

    namespace: str
    name: str
    uid: str
    queue: str
    phase: str
    priority: int
    pods: int
    asks: Amounts
    created: datetime | None
    runs: int = 0
    reason: WaitReason | None = None
    """Why it waits, where the scheduler reported it."""
    expected_start: datetime | None = None
    """The latest time of its start, where the scheduler wrote it."""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def holds(self) -> bool:
        """Whether it has pods on nodes."""
        return self.phase in _HOLDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A queue whose capability leaves too little, and the shortage. `ever`: whether it would leave enough once all pods
    of the queue have ended."""

    queue: str
    short_by: Amounts
    ever: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Why a job isn't running as a whole; as text, in a few lines.

    Attributes:
        phase: the job's.
        reason: one of the closed vocabularies `WaitReason` and `JobReason`, where one was written.
        message: the sentence with the numbers; empty where none was written.
        since: the time since when it applies.
        gang: the pods that have to start together; None while there is no PodGroup.
        position: its position among the waiting gangs of its queue; 0 where it is unknown.
        ahead: the gangs ahead of it.
        by_policy: whether the order is that of the scheduler's configuration. Otherwise it is by priority and then age,
        and the configuration may order them differently.
        held_up_by: in a FIFO queue, the gang ahead that blocks it until it has started.
        holds_up: the gangs behind it that it blocks, likewise.
        holders: the gangs that use the resources it waits for: those in the queue of `limit`, else in its own; oldest
        first. For a gang that waits for admission, admitted gangs that have yet to start are included.
        limit: the queue whose capability leaves too little: the nearest one where it never will leave enough, else the
        nearest.
        enough: the holders whose end would free enough below `limit`; empty where none would.
        expected_start: the latest time of its start, where the scheduler wrote it.
        evictable_from: the time from which others may be evicted for it, where the scheduler wrote it.
        would_start_if: changes that would let its whole gang start, where the scheduler wrote them.
        missing: kind and name of the missing objects that its pods name, as far as they are known.
        queue_state: the state of its queue: `Open`, `Closed` and so on, or `QUEUE_GONE`; empty where queues can't be
        read.
    """

    phase: JobPhase
    reason: WaitReason | JobReason | None
    message: str
    since: datetime | None
    gang: Gang | None
    queue: str
    position: int = 0
    ahead: Sequence[Gang] = ()
    by_policy: bool = False
    held_up_by: Gang | None = None
    holds_up: Sequence[Gang] = ()
    holders: Sequence[Gang] = ()
    limit: Limit | None = None
    enough: Sequence[Gang] = ()
    expected_start: datetime | None = None
    evictable_from: datetime | None = None
    would_start_if: Sequence[Remedy] = ()
    missing: Sequence[tuple[str, str]] = ()
    queue_state: str = ""

    def __str__(self) -> str:
        why = f" ({self.reason})" if self.reason is not None else ""
        lines = [f"{self.phase}{why}{f': {self.message}' if self.message else ''}"]
        if self.position:
            order = "" if self.by_policy else ", by priority and then age"
            lines.append(f"number {self.position} of those that wait in queue {self.queue}{order}")
        if self.held_up_by is not None:
            first = self.held_up_by
            lines.append(behind_first(queue=self.queue, first=first.key, expected=first.expected_start))
        if self.expected_start is not None:
            lines.append(f"starts by {self.expected_start:%Y-%m-%d %H:%M:%S} UTC")
        elif self.evictable_from is not None:
            lines.append(f"others may be evicted for it from {self.evictable_from:%Y-%m-%d %H:%M:%S} UTC on")
        elif self.limit is not None and not self.limit.ever:
            lines.append(f"never starts as things are: it asks for more than queue {self.limit.queue} may hold")
        elif self.enough:
            lines.append(f"starts once these have ended: {', '.join(gang.key for gang in self.enough)}")
        if self.would_start_if:
            lines.append(f"would start if you: {'; '.join(map(sentence_of, self.would_start_if))}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The objects that explain why a job waits. Any of them may be empty where it can't be read: the result then has
    less. `places` are the positions of waiting PodGroups, by UID, each in its queue, in the order of the scheduler's
    configuration; empty where they are unknown. `missing` are the missing objects that pods name, `missing_for` the
    tasks of those pods."""

    pod_groups: Sequence[Json] = ()
    queues: Sequence[Json] = ()
    priorities: Mapping[str, int] | None = None
    places: Mapping[str, int] | None = None
    missing: Sequence[tuple[str, str]] = ()
    missing_for: Sequence[str] = ()


def waiting_of(job: Json, around: Surroundings) -> Waiting:
    """Why this job waits, or its present state."""
    gangs = [gang_of(group, around.priorities or {}) for group in around.pod_groups]
    uid = str(part(job, "metadata").get("uid", ""))
    own = next((at for at, group in enumerate(around.pod_groups) if _owner(group).get("uid") == uid), None)
    gang = gangs[own] if own is not None else None
    reason, message, since = _said(job, around.pod_groups[own] if own is not None else None)
    queue = gang.queue if gang is not None else str(part(job, "spec").get("queue") or names.DEFAULT_QUEUE)
    phase = phase_of(job)
    missing = missing_objects(message)
    if around.missing and phase is JobPhase.PENDING and reason not in BEFORE_MISSING:
        said = message.partition("; ")[2] if missing else message if reason in BESIDE_MISSING else ""
        missing = [*around.missing]
        reason = JobReason.OBJECTS_MISSING if not said or reason not in BESIDE_MISSING else reason
        message = "; ".join(filter(None, (objects_missing(missing, tasks=around.missing_for), said)))
    waiting = Waiting(
        phase=phase,
        reason=reason,
        message=message,
        since=since,
        gang=gang,
        queue=queue,
        would_start_if=_would_start_if(around.pod_groups[own]) if own is not None else (),
        missing=missing,
        queue_state=_state_of(queue, around.queues),
    )
    if gang is None or phase not in (JobPhase.PENDING, JobPhase.RESTARTING):
        return waiting
    line = [one for one in gangs if one.queue == queue and _in_line(one)]
    places = around.places or {}
    by_policy = gang.uid in places
    if by_policy:
        line = sorted((one for one in line if one.uid in places), key=lambda one: places[one.uid])
    else:
        line.sort(key=turn)
    ahead = line[: line.index(gang)] if gang in line else []
    first: Gang | None = None
    held_up: Sequence[Gang] = ()
    if gang in line and _fifo(queue, around.queues):
        heads = _heads(line)
        named = first_in_line(message)
        said = [one for one, group in zip(gangs, around.pod_groups, strict=True) if named and _key(group) == named]
        first = next((one for one in said if one in line and one is not gang), heads[len(ahead)])
        held_up = [one for one, head in zip(line, heads, strict=True) if head is gang] if first is None else ()
    keeping = [one for one in gangs if one is not gang and _keeps_room(one, before=gang)]
    limited = reason in (WaitReason.QUEUE_LIMIT, WaitReason.IMPOSSIBLE, None)
    limit = _limit(gang, keeping, around.queues) if limited else None
    within = _below(limit.queue if limit is not None else queue, around.queues)
    holders = sorted((one for one in keeping if one.queue in within), key=_age)
    return replace(
        waiting,
        position=len(ahead) + 1 if gang in line else 0,
        ahead=ahead,
        by_policy=by_policy,
        held_up_by=first,
        holds_up=held_up,
        holders=holders,
        limit=limit,
        enough=_enough(holders, limit) if limit is not None and limit.ever else (),
        expected_start=expected_start(message),
        evictable_from=protected_until(message) if reason is WaitReason.VICTIMS_PROTECTED else None,
    )


def _state_of(queue: str, queues: Sequence[Json]) -> str:
    """The state of a queue. A queue that wasn't reconciled yet is open, as for admission."""
    if not queues:
        return ""
    found = next((one for one in queues if part(one, "metadata").get("name") == queue), None)
    return QUEUE_GONE if found is None else str(part(found, "status").get("state") or QueueState.OPEN)


def phase_of(job: Json) -> JobPhase:
    """The phase of a job. A job with an unknown phase, or that wasn't reconciled yet, is Pending."""
    word = part(part(job, "status"), "state").get("phase")
    return next((phase for phase in JobPhase if phase == word), JobPhase.PENDING)


def gang_of(group: Json, priorities: Mapping[str, int]) -> Gang:
    """Read a PodGroup; `priorities` are the values of PriorityClasses by name."""
    metadata, spec = part(group, "metadata"), part(group, "spec")
    name = str(_owner(group).get("name") or metadata.get("name", ""))
    said = str(_unschedulable(group).get("message") or "")
    return Gang(
        namespace=str(metadata.get("namespace", "")),
        name=name,
        uid=str(metadata.get("uid", "")),
        queue=str(spec.get("queue") or names.DEFAULT_QUEUE),
        phase=str(part(group, "status").get("phase") or PodGroupPhase.PENDING),
        priority=priorities.get(str(spec.get("priorityClassName") or ""), 0),
        pods=int(spec.get("minMember") or 0),
        asks=amounts_of(part(spec, "minResources")),
        created=_time(metadata.get("creationTimestamp")),
        runs=int(part(group, "status").get("running") or 0),
        reason=read_wait(said)[0],
        expected_start=expected_start(said),
    )


def amounts_of(resources: Json) -> dict[str, Quantity]:
    """The quantities of a minResources or a queue's status, each resource once and without the number of pods."""
    found: dict[str, Quantity] = {}
    for name, value in resources.items():
        if name != _PODS and not name.startswith(_COUNTED_TWICE):
            found[name] = read(value)
    return found


def _said(job: Json, group: Json | None) -> tuple[WaitReason | JobReason | None, str, datetime | None]:
    """The reason, message and time. The scheduler's condition has more details than the job's status, which quotes
    it."""
    state = part(part(job, "status"), "state")
    message, since = str(state.get("message") or ""), _time(state.get("lastTransitionTime"))
    word = state.get("reason")
    own = next((reason for reason in JobReason if reason == word), None)
    if own is None or own is JobReason.POD_GROUP_PENDING:
        condition = _unschedulable(group or {})
        if condition:
            reason, sentence = read_wait(str(condition.get("message") or ""))
            return reason, sentence, _time(condition.get("lastTransitionTime")) or since
    reason, sentence = read_wait(message)
    return reason or own, cause_of(sentence), since


def _unschedulable(group: Json) -> Json:
    """The condition with the scheduler's reason why a gang waits; empty where there is none."""
    for item in listed(part(group, "status"), "conditions"):
        condition = cast(Json, item) if isinstance(item, dict) else {}
        if condition.get("type") == PodGroupConditionType.UNSCHEDULABLE and condition.get("status") == "True":
            return condition
    nothing: Json = {}
    return nothing


def _would_start_if(group: Json) -> Sequence[Remedy]:
    """The remedies that the scheduler wrote for a gang that it reports as waiting."""
    notes = part(part(group, "metadata"), "annotations")
    return read_remedies(str(notes.get(names.WOULD_START_IF) or "")) if _unschedulable(group) else ()


def _keeps_room(gang: Gang, *, before: Gang) -> bool:
    """Whether the gang uses resources of its queue that the other one requests: admission counts admitted gangs,
    too."""
    return gang.holds or (gang.phase == PodGroupPhase.INQUEUE and before.phase == PodGroupPhase.PENDING)


def _in_line(gang: Gang) -> bool:
    return gang.phase in (PodGroupPhase.PENDING, PodGroupPhase.INQUEUE)


def _fifo(queue: str, queues: Sequence[Json]) -> bool:
    specs = (part(one, "spec") for one in queues if part(one, "metadata").get("name") == queue)
    return any(spec.get("dequeueStrategy") == _FIRST_IN_FIRST_OUT for spec in specs)


def _heads(line: Sequence[Gang]) -> list[Gang | None]:
    """The gang that blocks each gang of a line. A gang that can't start at present, or isn't tried, blocks none. A
    gang that waits for admission is blocked by the first such gang, else by the first one that waits for placement."""
    heads: list[Gang | None] = []
    firsts: dict[str, Gang] = {}
    for one in line:
        heads.append(firsts.get(one.phase) or firsts.get(PodGroupPhase.INQUEUE))
        if not _passed_over(one):
            firsts.setdefault(one.phase, one)
    return heads


def _passed_over(gang: Gang) -> bool:
    return gang.reason is not None and (gang.reason.hopeless or gang.reason in _OUT_OF_LINE)


def _key(group: Json) -> str:
    metadata = part(group, "metadata")
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"


def turn(gang: Gang) -> tuple[int, float, str]:
    """The sort key of waiting gangs: priority and then age, which is the order as long as no configuration is known."""
    return (-gang.priority, *_age(gang))


def _age(gang: Gang) -> tuple[float, str]:
    return (gang.created.timestamp() if gang.created is not None else 0.0, gang.key)


def _limit(gang: Gang, keeping: Sequence[Gang], queues: Sequence[Json]) -> Limit | None:
    by_name = {str(part(queue, "metadata").get("name", "")): queue for queue in queues}
    found: list[Limit] = []
    for name in _upwards(gang.queue, by_name):
        below = _below(name, queues)
        admitted = [one for one in keeping if not one.holds and one.queue in below]
        if (limit := _limit_of(by_name[name], name, gang, admitted)) is not None:
            found.append(limit)
    return next((limit for limit in found if not limit.ever), found[0] if found else None)


def _limit_of(queue: Json, name: str, gang: Gang, admitted: Sequence[Gang]) -> Limit | None:
    held = amounts_of(part(part(queue, "status"), "allocated"))
    for one in admitted:
        for resource, amount in one.asks.items():
            held[resource] = held.get(resource, ZERO) + amount
    most = {
        resource: limit
        for resource, limit in amounts_of(part(part(queue, "spec"), "capability")).items()
        # A limit of zero is no limit for cpu and memory (docs/queues.md).
        if gang.asks.get(resource) and (limit or resource not in ("cpu", "memory"))
    }
    too_large = {resource: gang.asks[resource] - limit for resource, limit in most.items()}
    too_large = {resource: amount for resource, amount in too_large.items() if amount > ZERO}
    if too_large:
        return Limit(queue=name, short_by=too_large, ever=False)
    short = {resource: held.get(resource, ZERO) + gang.asks[resource] - limit for resource, limit in most.items()}
    short = {resource: amount for resource, amount in short.items() if amount > ZERO}
    return Limit(queue=name, short_by=short) if short else None


def _upwards(name: str, by_name: Mapping[str, Json]) -> Iterator[str]:
    """The queue and its ancestors; a cycle is followed once."""
    seen: set[str] = set()
    while name in by_name and name not in seen:
        seen.add(name)
        yield name
        name = str(part(by_name[name], "spec").get("parent") or names.ROOT_QUEUE)


def _below(name: str, queues: Sequence[Json]) -> set[str]:
    """The queue and all its descendants."""
    by_name = {str(part(queue, "metadata").get("name", "")): queue for queue in queues}
    return {name} | {other for other in by_name if name in _upwards(other, by_name)}


def _enough(holders: Iterable[Gang], limit: Limit) -> list[Gang]:
    """The first holders that together use at least the shortage; empty where all of them together use less."""
    left: dict[str, Quantity] = dict(limit.short_by)
    taken: list[Gang] = []
    for holder in holders:
        if not left:
            break
        if not any(holder.asks.get(resource) for resource in left):
            continue
        taken.append(holder)
        left = {resource: amount - holder.asks.get(resource, ZERO) for resource, amount in left.items()}
        left = {resource: amount for resource, amount in left.items() if amount > ZERO}
    return [] if left else taken


def _owner(group: Json) -> Json:
    for item in listed(part(group, "metadata"), "ownerReferences"):
        owner = cast(Json, item) if isinstance(item, dict) else {}
        if owner.get("controller"):
            return owner
    nobody: Json = {}
    return nobody


def _time(text: Any) -> datetime | None:
    try:
        return parse_time(text) if isinstance(text, str) and text else None
    except ValueError:
        return None
