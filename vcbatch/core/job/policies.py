"""The action that a job's lifecycle policies request for the observed events
(Volcano `pkg/controllers/job/job_controller_util.go`, applyPolicies).

Events are found by comparing the observed state with the ledger, so that none is missed while no controller runs: pods
lost since the last reconciliation, and conditions that are true now (a task done, a task that restarts too often, a
gang broken, a pod pending for too long).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from vcbatch.api.duration import MalformedDuration, parse_duration
from vcbatch.api.job import Action, Event, LifecyclePolicy
from vcbatch.api.pod import Pod, PodPhase
from vcbatch.api.podgroup import PodGroup, PodGroupPhase
from vcbatch.api.reasons import LossCause
from vcbatch.api.timestamps import parse_time
from vcbatch.core.job.causes import Failure, describe, failure_of
from vcbatch.core.job.ledger import DelayKey, Ledger, Loss, Part
from vcbatch.core.job.plan import UNLIMITED_RESTARTS, Plan, Task
from vcbatch.core.job.roster import Member, Roster

_TARGETED = frozenset({Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION})
_WHOLE = frozenset({Action.RESTART_JOB, Action.ABORT_JOB, Action.COMPLETE_JOB, Action.TERMINATE_JOB})

_DELAY_OUTLIVES_POD = (Event.POD_FAILED, Event.POD_EVICTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """An event that policies may match. `readings` are tried in order against all policies: an eviction that left a
    failed pod is matched as PodEvicted where any policy has that event, else as PodFailed with its exit codes."""

    readings: tuple[tuple[Event, tuple[int, ...]], ...]
    task: str = ""
    index: int | None = None
    at: datetime | None = None
    cause: str = ""
    infrastructure: bool = False
    timed_only: bool = False
    """Only policies with a timeout match this event (PodPending)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An action that a policy requests now. `targets` are the parts that a targeted action applies to."""

    action: Action
    event: Event
    cause: str
    infrastructure: bool
    targets: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What policies request: an order now, or a reconciliation when the first timeout is over. `delayed` are the
    (action, timeout, cause) of policies whose timeout starts with this reconciliation."""

    order: Order | None = None
    due: datetime | None = None
    delayed: tuple[tuple[Action, timedelta, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _Match:
    happening: Happening
    action: Action
    event: Event
    delay: timedelta


def judge(
    plan: Plan, roster: Roster, ledger: Ledger, losses: Sequence[Loss], pod_group: PodGroup | None, *, now: datetime
) -> Verdict:
    """Match events against the policies. Timeouts that start or end are recorded in the ledger.

    Where one reconciliation finds several events, the first that concerns the whole job decides, as it would if they
    came one by one; without one, all the parts to restart are restarted together and use one retry.
    """
    if not plan.policies and not any(task.policies for task in plan.tasks.values()):
        return Verdict()
    immediate: list[_Match] = []
    waiting: dict[DelayKey, datetime] = {}
    due: datetime | None = None
    began: list[tuple[Action, timedelta, str]] = []
    for match in _matches(plan, _happenings(plan, roster, ledger, losses, pod_group)):
        if not match.delay:
            immediate.append(match)
            continue
        happening = match.happening
        key = DelayKey(match.event, happening.task, happening.index)
        since = ledger.delayed.get(key) or happening.at or now
        ends = since + match.delay
        if ends <= now:
            immediate.append(match)
            continue
        if not happening.timed_only:
            waiting[key] = since
            if key not in ledger.delayed:
                began.append((match.action, match.delay, happening.cause))
        due = ends if due is None else min(due, ends)
    ledger.delayed = waiting
    return Verdict(order=_order(plan, immediate), due=due, delayed=tuple(began))


def task_completed(ledger: Ledger, task: Task) -> bool:
    """Whether a task is done, and became so in this attempt."""
    record = ledger.tasks[task.name]
    return bool(record.succeeded) and task.replicas > 0 and len(record.done) >= task.replicas


def task_failed(ledger: Ledger, task: Task, members: Iterable[Member]) -> bool:
    """Whether the containers of a task's live pods restarted `maxRetry` times in sum (-1: never too often)."""
    if task.replicas == 0 or task.container_restarts == UNLIMITED_RESTARTS:
        return False
    live = (
        member
        for member in members
        if member.phase in (PodPhase.RUNNING, PodPhase.PENDING) and not ledger.doomed(member)
    )
    return sum(_restarts(member.pod) for member in live) >= task.container_restarts


def _order(plan: Plan, matches: Sequence[_Match]) -> Order | None:
    if not matches:
        return None
    first = next((match for match in matches if match.action in _WHOLE), None)
    if first is not None:
        return Order(
            action=first.action,
            event=first.event,
            cause=first.happening.cause,
            infrastructure=first.happening.infrastructure,
        )
    targets = dict.fromkeys(_part(plan, match) for match in matches if match.happening.task)
    if not targets:
        return None
    return Order(
        action=matches[0].action,
        event=matches[0].event,
        cause=matches[0].happening.cause,
        infrastructure=all(match.happening.infrastructure for match in matches),
        targets=tuple(targets),
    )


def _part(plan: Plan, match: _Match) -> Part:
    """The part to restart. In a task without partitions each pod is a part of its own."""
    task, index = plan.tasks[match.happening.task], match.happening.index
    if index is None or match.action is Action.RESTART_TASK:
        return Part(task.name)
    if match.action is Action.RESTART_PARTITION and task.partition_size:
        return Part(task.name, frozenset(task.partition_of(index)))
    return Part(task.name, frozenset({index}))


def _matches(plan: Plan, happenings: Iterable[Happening]) -> Iterator[_Match]:
    for happening in happenings:
        match = _match(plan, happening)
        if match is not None:
            yield match


def _match(plan: Plan, happening: Happening) -> _Match | None:
    """The first policy that matches: the task's policies, then the job's, each in the order written."""
    task = plan.tasks.get(happening.task)
    for event, exit_codes in happening.readings:
        for policy in (*(task.policies if task else ()), *plan.policies):
            delay = _delay(policy)
            if happening.timed_only and delay is None:
                continue
            if not _answers(policy, event, exit_codes):
                continue
            action = _action(policy)
            if action is None:
                return None
            return _Match(happening, action, event, delay or timedelta())
    return None


def _answers(policy: LifecyclePolicy, event: Event, exit_codes: tuple[int, ...]) -> bool:
    if event in policy.all_events or Event.ANY in policy.all_events:
        return True
    return policy.exit_code is not None and policy.exit_code in exit_codes


def _action(policy: LifecyclePolicy) -> Action | None:
    """The policy's action on a live job; None where it has none (SyncJob, ResumeJob, an unknown action)."""
    return next((action for action in (*_WHOLE, *_TARGETED) if action == policy.action), None)


def _delay(policy: LifecyclePolicy) -> timedelta | None:
    """The timeout; None where there is none or it is malformed (admission rejects it)."""
    try:
        return parse_duration(policy.timeout) if policy.timeout else None
    except MalformedDuration:
        return None


def _happenings(
    plan: Plan, roster: Roster, ledger: Ledger, losses: Sequence[Loss], pod_group: PodGroup | None
) -> Iterator[Happening]:
    order = {name: position for position, name in enumerate(plan.tasks)}
    recent = sorted(losses, key=lambda loss: (_when(loss), order[loss.task], loss.index))
    yield from map(_of_loss, recent)
    yield from _of_delays(roster, ledger, fresh={(loss.task, loss.index) for loss in losses})
    yield from _of_tasks(plan, roster, ledger)
    if pod_group is not None and pod_group.status.phase == PodGroupPhase.UNKNOWN:
        yield Happening(readings=((Event.JOB_UNKNOWN, ()),), cause=f"pod group {pod_group.name} lost part of its gang")
    yield from _of_pending(plan, roster, ledger)


def _when(loss: Loss) -> datetime:
    """The sort key: losses without a time come last, since their cause is the least certain."""
    return loss.failure.at or datetime.max.replace(tzinfo=UTC)


def _of_loss(loss: Loss) -> Happening:
    failure = loss.failure
    failed = (Event.POD_FAILED, failure.exit_codes)
    evicted: tuple[Event, tuple[int, ...]] = (Event.POD_EVICTED, ())
    either_way = (evicted, failed) if failure.cause.infrastructure else (failed,)
    readings = (evicted,) if loss.gone else either_way
    return Happening(
        readings=readings,
        task=loss.task,
        index=loss.index,
        at=failure.at,
        cause=describe(pod=loss.pod, failure=failure, node=loss.node),
        infrastructure=failure.cause.infrastructure,
    )


def _of_delays(roster: Roster, ledger: Ledger, *, fresh: set[tuple[str, int]]) -> Iterator[Happening]:
    """Losses whose policy still waits for its timeout. A running replacement cancels the loss (volcano#5507)."""
    for key in ledger.delayed:
        members = roster.places.get(key.task)
        if key.event not in _DELAY_OUTLIVES_POD or key.index is None or members is None:
            continue
        if (key.task, key.index) in fresh:
            continue
        member = members.get(key.index)
        if member is not None and member.phase in (PodPhase.RUNNING, PodPhase.SUCCEEDED):
            continue
        event = Event(key.event)
        evicted = event is Event.POD_EVICTED
        failure = Failure(cause=LossCause.EVICTED if evicted else LossCause.FAILED)
        codes: tuple[int, ...] = ()
        if member is not None and member.phase == PodPhase.FAILED:
            failure = failure_of(member.pod)
            codes = failure.exit_codes
        name = member.name if member is not None else f"of task {key.task}, index {key.index},"
        yield Happening(
            readings=((event, () if evicted else codes),),
            task=key.task,
            index=key.index,
            at=ledger.delayed[key],
            cause=describe(pod=name, failure=failure),
            infrastructure=evicted,
        )


def _of_tasks(plan: Plan, roster: Roster, ledger: Ledger) -> Iterator[Happening]:
    for task in plan.tasks.values():
        if task_completed(ledger, task):
            yield Happening(
                readings=((Event.TASK_COMPLETED, ()),), task=task.name, cause=f"task {task.name} is completed"
            )
        if task_failed(ledger, task, roster.places[task.name].values()):
            yield Happening(
                readings=((Event.TASK_FAILED, ()),),
                task=task.name,
                cause=f"containers of task {task.name} restarted {task.container_restarts} times or more",
            )


def _of_pending(plan: Plan, roster: Roster, ledger: Ledger) -> Iterator[Happening]:
    for task in plan.tasks.values():
        if not any(_waits_for_pending(policy) for policy in (*task.policies, *plan.policies)):
            continue
        for index, member in roster.places[task.name].items():
            if member.phase != PodPhase.PENDING or member.terminating or ledger.doomed(member):
                continue
            created = _created(member.pod)
            if created is not None:
                yield Happening(
                    readings=((Event.POD_PENDING, ()),),
                    task=task.name,
                    index=index,
                    at=created,
                    cause=f"pod {member.name} is pending since {member.pod.metadata.creation_timestamp}",
                    timed_only=True,
                )


def _waits_for_pending(policy: LifecyclePolicy) -> bool:
    events = policy.all_events
    return bool(policy.timeout) and (Event.POD_PENDING in events or Event.ANY in events)


def _created(pod: Pod) -> datetime | None:
    try:
        return parse_time(pod.metadata.creation_timestamp) if pod.metadata.creation_timestamp else None
    except ValueError:
        return None


def _restarts(pod: Pod) -> int:
    statuses = (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    return sum(status.restart_count for status in statuses)
