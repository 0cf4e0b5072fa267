"""Remedies for pods on nodes that reject them for a temporary state or for the pods on the node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from vcbatch.api.remedies import Remedy, RemedyAction
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.columns import Floats
from vcbatch.scheduler.model.objects import Task
from vcbatch.scheduler.model.remedies import wait_for
from vcbatch.scheduler.model.resources import Mask
from vcbatch.scheduler.model.result import WaitReason
from vcbatch.scheduler.reasons.nearest import most_room, nearest_places
from vcbatch.scheduler.reasons.ways_out import Refusal, binding, change, free_at

_STATES: Final = frozenset(
    {
        WaitReason.NODE_UNSCHEDULABLE,
        WaitReason.TAINT_TOLERATION,
        WaitReason.NODE_AFFINITY,
        WaitReason.NODE_USAGE,
        WaitReason.REVOCABLE_ZONE,
        WaitReason.EXTENDER,
        WaitReason.PROPORTIONAL,
        WaitReason.NODES_REFUSED,
    }
)
"""Filters for a temporary state of the node, whose end the gang may wait for."""
_PODS_THERE: Final = frozenset({WaitReason.DEVICE_SHARE, WaitReason.NUMA})
"""Filters for what pods on the node use of it, where no quantity can be named."""


def not_now(
    session: Session, task: Task, among: Mask, free: Floats, *, unplaced: int
) -> tuple[WaitReason, list[Remedy]]:
    """The temporary state that keeps `unplaced` pods like the task from nodes `among` these, and the remedies. `free`
    has the free resources of all nodes, [R, N]."""
    rejections = session.placer.static(task.cls).rejections
    words = binding([Refusal(r.reason, r.nodes, r.word) for r in rejections], among=among)
    if words[0] not in _STATES:
        return words[0], change(task, *words)
    rows, missing = most_room(task.cls, among, free, unplaced)
    left = free.copy()
    for row, count in rows.items():
        left[:, row] -= count * task.cls.request
    short = nearest_places(session, task.job, [(task.cls, missing)], among, left, lasting=True) if missing else []
    at = dict.fromkeys([*rows, *(place.row for place in short)])
    return words[0], [remedy for row in at for remedy in _opened(session, task, row)] + free_at(session, short)


def _opened(session: Session, task: Task, row: int) -> Iterable[Remedy]:
    """The remedies that would make the node admit pods like this one; empty if it does."""
    node = f"node/{session.nodes.infos[row].name}"
    for rejection in session.placer.static(task.cls).rejections:
        if not rejection.nodes[row]:
            continue
        if rejection.word is WaitReason.NODE_UNSCHEDULABLE:
            yield Remedy(RemedyAction.CHANGE, node, field="spec.unschedulable")
        else:
            yield Remedy(RemedyAction.WAIT, node)


def unless_refused(
    session: Session, task: Task, words: Sequence[WaitReason], among: Mask, free: Floats, *, unplaced: int
) -> list[Remedy]:
    """The remedies for pods like the task on nodes `among` these, which filters with these reasons reject: to wait for
    the gangs with pods there, if the filters depend on these pods; to change fields of the pods; if the gang has no
    such fields, another state of the nodes."""
    going = _others_on(session, task, _fewest(session, task, among)) if _PODS_THERE.issuperset(words) else []
    if going:
        return [remedy for key in going for remedy in wait_for(key)]
    found = change(task, *words)
    if any(word in _STATES and not change(task, word) for word in words):
        rows, _ = most_room(task.cls, among, free, unplaced)
        found += [Remedy(RemedyAction.WAIT, f"node/{session.nodes.infos[row].name}") for row in rows]
    return found


def _others_on(session: Session, task: Task, row: int) -> list[str]:
    """The other gangs with pods on the node."""
    there = session.nodes.infos[row].tasks.values()
    return sorted({other.job.key for other in there if other.job is not None and other.job is not task.job})


def _fewest(session: Session, task: Task, among: Mask) -> int:
    """The node with the fewest pods among those that would take the task if they were empty, as far as is known."""
    fitting = among.copy()
    for plugin in session.placer.plugins.filters:
        slots = plugin.caps_empty(task)
        if slots is not None and (fitting & (slots >= 1)).any():
            fitting &= slots >= 1
    rows = np.flatnonzero(fitting)
    return int(min(rows, key=lambda row: len(session.nodes.infos[row].tasks)))
