"""What a scheduler assumes beyond the observed objects: decisions that no watch has confirmed yet. A new scheduler that
receives them together with the objects continues as this one would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from vcbatch.scheduler.model.objects import HOLDING, Phase, TaskStatus
from vcbatch.scheduler.model.promise import Promise
from vcbatch.scheduler.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """`binds`: by the pod's UID, the node's name. `evictions`: the UIDs of pods. `phases`: by `namespace/name`, the
    phases of PodGroups that differ from the last observed ones. `nominations`: by the pod's UID, the node that is
    reserved for it, where the pod's status doesn't name it yet. `promises`: by `namespace/name` of the PodGroup, until
    when the nodes of its pods are reserved. `lacking`: by the same, since when it has too few pods for them."""

    binds: Mapping[str, str] = field(default_factory=dict[str, str])
    evictions: Sequence[str] = ()
    phases: Mapping[str, str] = field(default_factory=dict[str, str])
    nominations: Mapping[str, str] = field(default_factory=dict[str, str])
    promises: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    lacking: Mapping[str, datetime] = field(default_factory=dict[str, datetime])


def assumed(state: Snapshot) -> Assumed:
    """The assumptions at this moment, between cycles."""
    tasks = state.tasks.items()
    return Assumed(
        binds={uid: task.node for uid, task in tasks if task.status is TaskStatus.BINDING},
        evictions=[uid for uid, task in tasks if task.evicting],
        phases={
            key: job.phase.wire
            for key, job in state.jobs.items()
            if job.group is not None and job.phase is not Phase.parse(job.group.status.phase)
        },
        nominations={uid: task.nominated for uid, task in tasks if task.nominating},
        promises={key: promise.until for key, promise in state.promised.items() if promise is not None},
        lacking={key: p.lacking for key, p in state.promised.items() if p is not None and p.lacking is not None},
    )


def assume(state: Snapshot, what: Assumed) -> None:
    """Apply the assumptions of another scheduler; pods and nodes that don't exist are left out."""
    state.settle()
    if state.claimed.enabled:
        state.claimed.open(state.tasks)
    for uid, node in what.binds.items():
        task, row = state.tasks.get(uid), state.row(node)
        if task is not None and row is not None and task.job is not None and task.status is TaskStatus.PENDING:
            state.shift([task], TaskStatus.ALLOCATED, [row])
            state.bind([task])
    for uid in what.evictions:
        task = state.tasks.get(uid)
        if task is not None and task.status in HOLDING:
            state.evict(task)
            state.evicted(task)
    state.nodes.leaving = None
    for key, phase in what.phases.items():
        job = state.jobs.get(key)
        if job is not None:
            state.set_phase(job, Phase.parse(phase))
            state.touched[key] = job
    for uid, node in what.nominations.items():
        task = state.tasks.get(uid)
        if task is not None:
            task.nominate(node)
    for key, until in what.promises.items():
        job = state.jobs.get(key)
        if job is not None:
            state.promised[key] = Promise.to(job, until=until, lacking=what.lacking.get(key))
