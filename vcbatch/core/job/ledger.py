"""The state that a job keeps between reconciliations, and its update by a reconciliation.

A decision may depend on the observed state, never on which event arrived. The little that pods can't show (that one
existed and was deleted, that one had succeeded before a client deleted it, which deletions are the controller's) is
kept here, in the job's status, and written before it is acted on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from vcbatch.api import job as api
from vcbatch.api.names import pod_name
from vcbatch.api.pod import PodPhase
from vcbatch.api.reasons import LossCause
from vcbatch.api.timestamps import format_time, parse_time
from vcbatch.core.job.causes import Failure, failure_of
from vcbatch.core.job.indices import format_indices, parse_indices
from vcbatch.core.job.plan import Plan
from vcbatch.core.job.roster import Member, Roster
from vcbatch.core.machine import Json

MOST_LOSSES = 16
MOST_COMMANDS = 16
"""While this many Commands that were executed can't be removed, no further one is taken."""


@dataclass(slots=True)
class TaskRecord:
    """The results of one task's indices in this attempt."""

    seen: set[int] = field(default_factory=set[int])
    succeeded: set[int] = field(default_factory=set[int])
    failed: set[int] = field(default_factory=set[int])
    evicted: set[int] = field(default_factory=set[int])
    carried: set[int] = field(default_factory=set[int])

    @property
    def done(self) -> set[int]:
        """Indices that succeeded in this attempt or before a suspension: they need no pod any more."""
        return self.succeeded | self.carried

    def forget(self, indices: set[int]) -> None:
        """These indices are to run again."""
        self.seen -= indices
        self.succeeded -= indices
        self.failed -= indices
        self.evicted -= indices
        self.carried -= indices


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a job that a targeted action applies to: a task, or these indices of it (a pod, a partition)."""

    task: str
    indices: frozenset[int] | None = None

    def has(self, task: str, index: int | None) -> bool:
        """Whether the pod at this index of the task belongs to the part; where the index is unknown, only a whole task
        has it."""
        return task == self.task and (self.indices is None or index in self.indices)


@dataclass(frozen=True, slots=True)
class Target:
    """A part that is being restarted: its members that were created before `retry_count` are to be deleted."""

    part: Part
    retry_count: int

    def covers(self, member: Member) -> bool:
        """Whether the pod is to be deleted for it."""
        return member.retry_count < self.retry_count and self.part.has(member.task, member.index)


@dataclass(frozen=True, slots=True)
class DelayKey:
    """The policy and the event that a running timeout belongs to."""

    event: str
    task: str
    index: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A pod that failed or vanished since the last reconciliation. `gone`: the pod object itself was deleted."""

    task: str
    index: int
    pod: str
    uid: str
    node: str
    failure: Failure
    gone: bool


@dataclass(slots=True, kw_only=True)
class Ledger:
    """A working copy of `status.ledger` with `version` and `retryCount`; a decision changes it and dumps it once."""

    version: int
    retry_count: int
    resumes: int
    infrastructure_retries: int
    ran_seconds: int
    not_before: datetime | None
    """No pods are created before this time: the backoff after losses by the infrastructure."""
    restarting_job: bool
    targets: list[Target]
    tasks: dict[str, TaskRecord]
    delayed: dict[DelayKey, datetime]
    commands: list[str]
    losses: list[api.PodLoss]
    released: bool
    """Whether the job's dependencies and begin time were met once."""
    dependencies: list[api.SeenDependency]

    @property
    def own_retries(self) -> int:
        """The number of restarts that the job's own failures caused."""
        return self.retry_count - self.resumes - self.infrastructure_retries

    def doomed(self, member: Member) -> bool:
        """Whether this pod belongs to a part that is being restarted, or to an earlier attempt."""
        if member.version < self.version:
            return not (member.phase == PodPhase.SUCCEEDED and member.index in self.tasks[member.task].carried)
        return any(target.covers(member) for target in self.targets)

    def end_attempt(self) -> None:
        """End the attempt: its pods are of an older version from now on, and no policy applies to them."""
        self.version += 1
        self.not_before = None
        self.targets = []
        self.delayed = {}
        for record in self.tasks.values():
            record.seen = set()

    def restart_all(self) -> None:
        """Restart every index."""
        self.restarting_job = True
        self.tasks = {name: TaskRecord() for name in self.tasks}

    def begin_resumed(self) -> None:
        """Restart every index that hadn't succeeded."""
        self.restarting_job = True
        self.tasks = {name: TaskRecord(carried=record.done) for name, record in self.tasks.items()}

    def aim(self, part: Part) -> None:
        """Restart this part: the earlier results of its members are discarded."""
        self.targets.append(Target(part, self.retry_count))
        record = self.tasks[part.task]
        record.forget(record.seen | record.failed | record.done if part.indices is None else set(part.indices))
        self.delayed = {key: since for key, since in self.delayed.items() if not part.has(key.task, key.index)}

    def drop_met_targets(self, roster: Roster) -> None:
        """Remove the targets all of whose pods are deleted."""
        if self.targets:
            members = list(roster.all())
            self.targets = [target for target in self.targets if any(target.covers(member) for member in members)]

    def end_wait(self, now: datetime, *, longest: timedelta) -> None:
        """Remove a backoff that is over, or that is longer than possible (the clock was set back)."""
        if self.not_before is not None and not now < self.not_before <= now + longest:
            self.not_before = None

    def add_losses(self, losses: Sequence[Loss], *, now: datetime) -> None:
        """Record the first losses of an attempt, which usually cause the others."""
        for loss in losses:
            if len(self.losses) >= MOST_LOSSES and self.losses[0].version == self.version:
                return
            self.losses = [*self.losses[-MOST_LOSSES + 1 :], _evidence(loss, version=self.version, now=now)]

    def remember_command(self, uid: str, *, present: set[str]) -> None:
        """Record an executed Command, and drop those that no longer exist."""
        self.commands = [*(known for known in self.commands if known in present), uid]

    def dump(self) -> Json:
        """`status.ledger`, without empty fields."""
        wire: Json = {
            "tasks": {name: dumped for name, record in self.tasks.items() if (dumped := _dump_record(record))},
            "restartingJob": self.restarting_job,
            "restarting": [_dump_target(target) for target in self.targets],
            "resumes": self.resumes,
            "infrastructureRetries": self.infrastructure_retries,
            "ranSeconds": self.ran_seconds,
            "notBefore": format_time(self.not_before) if self.not_before else None,
            "delayed": [_dump_delay(key, since) for key, since in self.delayed.items()],
            "commands": self.commands,
            "losses": [loss.dump() for loss in self.losses],
            "released": self.released,
            "dependencies": [dependency.dump() for dependency in self.dependencies],
        }
        return {key: value for key, value in wire.items() if value}


def read_ledger(plan: Plan) -> Ledger:
    """The stored ledger, without tasks and indices that the spec no longer has."""
    status = plan.job.status
    stored = status.ledger
    tasks: dict[str, TaskRecord] = {}
    for name, task in plan.tasks.items():
        record = stored.tasks.get(name)
        tasks[name] = _read_record(record, below=task.replicas) if record else TaskRecord()
    return Ledger(
        version=status.version,
        retry_count=status.retry_count,
        resumes=stored.resumes,
        infrastructure_retries=stored.infrastructure_retries,
        ran_seconds=max(stored.ran_seconds, 0),
        not_before=_read_time(stored.not_before),
        restarting_job=stored.restarting_job,
        targets=[_read_target(target, plan) for target in stored.restarting if target.task in plan.tasks],
        tasks=tasks,
        delayed={key: since for key, since in map(_read_delay, stored.delayed) if since and _concerns(plan, key)},
        commands=list(stored.commands),
        losses=list(stored.losses),
        released=stored.released,
        dependencies=list(stored.dependencies),
    )


def has_only_seen_more(ledger: Ledger, before: Ledger) -> bool:
    """Whether the reconciliation added only existing pods to the stored ledger."""
    if any(not before.tasks[name].seen <= record.seen for name, record in ledger.tasks.items()):
        return False
    tasks = {name: replace(record, seen=before.tasks[name].seen) for name, record in ledger.tasks.items()}
    return replace(ledger, tasks=tasks) == before


def observe(ledger: Ledger, *, plan: Plan, roster: Roster, departed: Roster) -> list[Loss]:
    """Update the ledger of a live attempt and return the pods lost since it was written. `departed` are the last
    observed states of deleted pods: a pod that is evicted, or lost with its node, is often deleted before it is
    observed.

    A loss is returned once: its index changes sets with the status write that reacts to it. A pod that failed because
    of the infrastructure, or while it was being deleted, doesn't fail its index for good: once it is deleted the index
    may run again.
    """
    losses: list[Loss] = []
    for name, members in roster.places.items():
        record = ledger.tasks[name]
        for member in members.values():
            if member.version >= ledger.version and not ledger.doomed(member):
                loss = _observe_member(record, member)
                if loss:
                    losses.append(loss)
        record.seen |= _made_lately(departed.places[name], ledger)
        for index in sorted(record.seen - members.keys()):
            record.seen.discard(index)
            if index not in record.done and index not in record.failed and index not in record.evicted:
                last = departed.places[name].get(index)
                current = last if last is not None and last.version >= ledger.version else None
                losses.append(_vanished(plan, name, index, last=current))
            record.evicted.discard(index)
    return losses


def _made_lately(departed: Mapping[int, Member], ledger: Ledger) -> set[int]:
    """Indices of pods that were deleted before the ledger recorded that they existed. Every restart records the pods
    before it, so these were created since the last one."""
    return {
        index
        for index, member in departed.items()
        if member.version >= ledger.version and member.retry_count >= ledger.retry_count and not ledger.doomed(member)
    }


def _observe_member(record: TaskRecord, member: Member) -> Loss | None:
    index = member.index
    record.seen.add(index)
    if member.phase == PodPhase.SUCCEEDED:
        record.succeeded.add(index)
    elif member.phase != PodPhase.FAILED:
        record.evicted.discard(index)
    elif index not in record.failed and index not in record.evicted:
        failure = failure_of(member.pod)
        (record.evicted if failure.cause.infrastructure else record.failed).add(index)
        return _loss(member, failure)
    return None


def _loss(member: Member, failure: Failure) -> Loss:
    return Loss(
        task=member.task,
        index=member.index,
        pod=member.name,
        uid=member.uid,
        node=member.pod.spec.node_name,
        failure=failure,
        gone=False,
    )


def _vanished(plan: Plan, task: str, index: int, *, last: Member | None) -> Loss:
    """The loss of a pod that no longer exists: it was deleted, unless its last observed state has a cause."""
    failure = Failure(cause=LossCause.DELETED)
    if last is not None and (said := failure_of(last.pod)).cause.infrastructure:
        failure = said
    return Loss(
        task=task,
        index=index,
        pod=pod_name(plan.job.name, task, index),
        uid=last.uid if last is not None else "",
        node=last.pod.spec.node_name if last is not None else "",
        failure=failure,
        gone=True,
    )


def _evidence(loss: Loss, *, version: int, now: datetime) -> api.PodLoss:
    given: Json = {
        "pod": loss.pod,
        "uid": loss.uid,
        "cause": str(loss.failure.cause),
        "exitCode": loss.failure.exit_codes[0] if loss.failure.exit_codes else None,
        "signal": loss.failure.signal or None,
        "reason": loss.failure.reason,
        "node": loss.node,
        "message": loss.failure.message,
        "version": version,
        "time": format_time(loss.failure.at or now),
    }
    return api.PodLoss.parse({key: value for key, value in given.items() if value not in (None, "")})


def _read_record(record: api.TaskLedger, *, below: int) -> TaskRecord:
    return TaskRecord(
        seen=parse_indices(record.seen, below=below),
        succeeded=parse_indices(record.succeeded, below=below),
        failed=parse_indices(record.failed, below=below),
        evicted=parse_indices(record.evicted, below=below),
        carried=parse_indices(record.carried, below=below),
    )


def _dump_record(record: TaskRecord) -> Json:
    sets = {
        "seen": record.seen,
        "succeeded": record.succeeded,
        "failed": record.failed,
        "evicted": record.evicted,
        "carried": record.carried,
    }
    return {key: format_indices(indices) for key, indices in sets.items() if indices}


def _read_target(target: api.RestartTarget, plan: Plan) -> Target:
    indices = None
    if target.indices:
        indices = frozenset(parse_indices(target.indices, below=plan.tasks[target.task].replicas))
    return Target(Part(target.task, indices), target.retry_count)


def _dump_target(target: Target) -> Json:
    wire: Json = {"task": target.part.task, "retryCount": target.retry_count}
    indices = target.part.indices
    return wire if indices is None else {**wire, "indices": format_indices(set(indices))}


def _read_delay(delay: api.DelayedPolicy) -> tuple[DelayKey, datetime | None]:
    key = DelayKey(delay.event, delay.task, delay.index)
    return key, _read_time(delay.since)


def _concerns(plan: Plan, key: DelayKey) -> bool:
    if not key.task:
        return True
    task = plan.tasks.get(key.task)
    return task is not None and (key.index is None or 0 <= key.index < task.replicas)


def _read_time(text: str | None) -> datetime | None:
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None


def _dump_delay(key: DelayKey, since: datetime) -> Json:
    wire: Json = {"event": key.event, "since": format_time(since)}
    if key.task:
        wire["task"] = key.task
    return wire if key.index is None else {**wire, "index": key.index}
