"""Pods and the PodGroup whose overdue deletion a job waits for, with the cause of each delay."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from vcbatch.api import messages
from vcbatch.api.job import JobPhase
from vcbatch.api.timestamps import parse_time
from vcbatch.core.job.context import JobContext
from vcbatch.core.job.roster import Member

_OVERDUE = timedelta(seconds=5)
"""`metadata.deletionTimestamp` is the end of the grace period; a kubelet takes a little longer."""
_MOST_NAMED = 3
_DRAINING = frozenset({JobPhase.RESTARTING, JobPhase.ABORTING, JobPhase.COMPLETING, JobPhase.TERMINATING})


def waited_for(context: JobContext) -> str:
    """The objects whose overdue deletion the job waits for; empty where there are none."""
    held = [
        _reported(member)
        for member in _deleted(context)
        if _is_overdue(member.pod.metadata.deletion_timestamp, context)
    ]
    group = context.view.pod_group
    if group is not None and _drains_group(context) and _is_overdue(group.metadata.deletion_timestamp, context):
        held.append(f"PodGroup {group.name} ({_held_by(group.metadata.finalizers)})")
    if not held:
        return ""
    more = f" and {len(held) - _MOST_NAMED} more" if len(held) > _MOST_NAMED else ""
    return f"{messages.WAITS_UNTIL_GONE}{', '.join(held[:_MOST_NAMED])}{more}"


def next_overdue(context: JobContext) -> datetime | None:
    """When the next of them becomes overdue."""
    times = [_overdue_at(member.pod.metadata.deletion_timestamp) for member in _deleted(context)]
    group = context.view.pod_group
    if group is not None and _drains_group(context):
        times.append(_overdue_at(group.metadata.deletion_timestamp))
    return min((time for time in times if time is not None and time > context.now), default=None)


def drains(phase: JobPhase) -> bool:
    """Whether a job in that phase only waits for the deletion of pods."""
    return phase in _DRAINING


def _deleted(context: JobContext) -> Iterator[Member]:
    """The pods that are being deleted and whose end the job needs: those of a previous attempt, and those whose index
    isn't done."""
    tasks = context.ledger.tasks
    for member in context.roster.all():
        if not member.terminating:
            continue
        record = tasks[member.task]
        if context.ledger.doomed(member) or member.index not in record.done | record.failed:
            yield member


def _drains_group(context: JobContext) -> bool:
    return context.phase is JobPhase.RESTARTING and context.ledger.restarting_job


def _reported(member: Member) -> str:
    pod = member.pod
    why: list[str] = []
    if pod.metadata.finalizers:
        why.append(_held_by(pod.metadata.finalizers))
    if pod.spec.node_name and not member.finished:
        why.append(f"node {pod.spec.node_name} hasn't said that it ended")
    return f"pod {member.name} ({'; '.join(why) or 'its deletion was asked for'})"


def _held_by(finalizers: list[str] | None) -> str:
    if not finalizers:
        return "its deletion was asked for"
    return f"held by finalizer{'s' if len(finalizers) > 1 else ''} {', '.join(finalizers)}"


def _is_overdue(deleted: str | None, context: JobContext) -> bool:
    time = _overdue_at(deleted)
    return time is not None and time <= context.now


def _overdue_at(deleted: str | None) -> datetime | None:
    try:
        return parse_time(deleted) + _OVERDUE if deleted else None
    except (ValueError, OverflowError):
        return None
