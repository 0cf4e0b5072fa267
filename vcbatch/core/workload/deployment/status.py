"""A Deployment's status: counts over its ReplicaSets, whether it is available, and whether it progresses.

`kubectl rollout status` reads the counts, `observedGeneration` and the reason of Progressing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from vcbatch.api import names
from vcbatch.api.apps import Condition, DeploymentStatus
from vcbatch.api.model import Json
from vcbatch.api.reasons import DeploymentConditionReason as Reason
from vcbatch.api.timestamps import format_time, parse_time
from vcbatch.core.workload.allowance import allowance
from vcbatch.core.workload.deployment.history import pending_annotations
from vcbatch.core.workload.deployment.view import UNLIMITED, Family, revision_of
from vcbatch.core.workload.replicaset import REPLICA_FAILURE

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Pods of all ReplicaSets of a Deployment; `updated` those of the newest alone."""

    replicas: int
    updated: int
    ready: int
    available: int
    terminating: int


def counts_of(family: Family) -> Counts:
    """The sum of the ReplicaSets' counts."""
    return Counts(
        replicas=sum(each.status.replicas for each in family.all),
        updated=family.new.status.replicas if family.new is not None else 0,
        ready=sum(each.status.ready_replicas for each in family.all),
        available=sum(each.status.available_replicas for each in family.all),
        terminating=sum(each.status.terminating_replicas for each in family.all),
    )


def is_complete(family: Family, counts: Counts) -> bool:
    """Whether all pods have the present template and are available, and no others are left."""
    return counts.updated == counts.replicas == counts.available == family.replicas


def next_status(family: Family, *, collisions: int, refusal: str, now: datetime) -> Json:
    """The whole next status. `refusal`: why the new ReplicaSet can't be created."""
    deployment, counts = family.deployment, counts_of(family)
    numbers = {
        "observedGeneration": deployment.metadata.generation,
        "replicas": counts.replicas,
        "updatedReplicas": counts.updated,
        "readyReplicas": counts.ready,
        "availableReplicas": counts.available,
        "unavailableReplicas": max(counts.replicas - counts.available, 0),
    }
    status: Json = {key: value for key, value in numbers.items() if value}
    status["terminatingReplicas"] = counts.terminating
    if collisions:
        status["collisionCount"] = collisions
    found = [
        _available(family, counts, now),
        progressing(family, counts, refusal, now),
        *_failures(family, now),
    ]
    conditions = [msgspec.to_builtins(each) for each in found if each is not None]
    if conditions:
        status["conditions"] = conditions
    return status


def progress_due(family: Family, status: Json) -> datetime | None:
    """When a rollout without progress is reported as failed."""
    deadline = family.deployment.spec.progress_deadline_seconds
    held: list[Json] = status.get("conditions") or []
    condition = next((each for each in held if each["type"] == PROGRESSING), None)
    if condition is None or condition["status"] == "False" or condition["reason"] in (Reason.COMPLETE, Reason.PAUSED):
        return None
    if deadline is None or deadline == UNLIMITED:
        return None
    return _after(condition.get("lastUpdateTime"), deadline + 1)


def _available(family: Family, counts: Counts, now: datetime) -> Condition:
    least = family.replicas - allowance(family.deployment.spec.strategy, family.replicas).unavailable
    if counts.available >= least:
        text = "Deployment has minimum availability."
        return _renewed(family, AVAILABLE, "True", Reason.MINIMUM_AVAILABLE, text, now)
    text = "Deployment does not have minimum availability."
    return _renewed(family, AVAILABLE, "False", Reason.MINIMUM_UNAVAILABLE, text, now)


def progressing(family: Family, counts: Counts, refusal: str, now: datetime) -> Condition | None:
    """The condition Progressing; None where the Deployment has no deadline. The reason is the latest change: the
    ReplicaSet was created or found, more of its pods exist or are ready, the rollout is complete, or nothing changed
    until the deadline."""
    deployment, held = family.deployment, _held(family, PROGRESSING)
    deadline = deployment.spec.progress_deadline_seconds
    if deadline is None or deadline == UNLIMITED:
        return None

    def condition(status: str, reason: Reason, text: str) -> Condition:
        return _renewed(family, PROGRESSING, status, reason, text, now)

    if deployment.spec.paused:
        if held is not None and held.reason == Reason.DEADLINE_EXCEEDED:
            return held
        return condition("Unknown", Reason.PAUSED, "Deployment is paused")
    if held is not None and held.reason == Reason.PAUSED:
        return condition("Unknown", Reason.RESUMED, "Deployment is resumed")
    if refusal:
        return condition("False", Reason.CREATE_ERROR, refusal)
    new = family.new
    if new is None:
        return held
    name = f'ReplicaSet "{new.metadata.name}"'
    reported = pending_annotations(family, new)
    if revision_of(deployment.metadata.annotations) != revision_of(reported):
        if names.REVISION_HISTORY in reported:
            return condition("True", Reason.FOUND, f'Found new replica set "{new.metadata.name}"')
        return condition("True", Reason.CREATED, f'Created new replica set "{new.metadata.name}"')
    if held is not None and held.reason == Reason.COMPLETE and counts.replicas == counts.updated:
        return held
    if is_complete(family, counts):
        return condition("True", Reason.COMPLETE, f"{name} has successfully progressed.")
    if held is None or _advanced(deployment.status, counts):
        return _touched(condition("True", Reason.UPDATED, f"{name} is progressing."), now)
    due = _after(held.last_update_time, deadline)
    if held.reason not in (Reason.COMPLETE, Reason.DEADLINE_EXCEEDED) and due is not None and due < now:
        return condition("False", Reason.DEADLINE_EXCEEDED, f"{name} has timed out progressing.")
    return held


def _advanced(before: DeploymentStatus, counts: Counts) -> bool:
    return (
        counts.updated > before.updated_replicas
        or counts.replicas - counts.updated < before.replicas - before.updated_replicas
        or counts.ready > before.ready_replicas
        or counts.available > before.available_replicas
    )


def _failures(family: Family, now: datetime) -> Sequence[Condition]:
    """Why pods of a ReplicaSet can't be created, that of the new one first."""
    newest_first = reversed(family.all)
    reported = (each for one in newest_first for each in one.status.conditions or () if each.type == REPLICA_FAILURE)
    found = next(reported, None)
    if found is None:
        return []
    return [_renewed(family, REPLICA_FAILURE, found.status, found.reason, found.message, now)]


def _held(family: Family, kind: str) -> Condition | None:
    return next((each for each in family.deployment.status.conditions or () if each.type == kind), None)


def _renewed(family: Family, kind: str, status: str, reason: str, message: str, now: datetime) -> Condition:
    """The stored condition where its contents are equal; its times change only with its contents."""
    held = _held(family, kind)
    if held is not None and (held.status, held.reason) == (status, reason):
        return held
    moment = format_time(now)
    return Condition(
        type=kind,
        status=status,
        reason=str(reason),
        message=message,
        last_update_time=moment,
        last_transition_time=held.last_transition_time if held is not None and held.status == status else moment,
    )


def _touched(condition: Condition, now: datetime) -> Condition:
    return msgspec.structs.replace(condition, last_update_time=format_time(now))


def _after(moment: str | None, seconds: int) -> datetime | None:
    return parse_time(moment) + timedelta(seconds=seconds) if moment else None
