"""Which objects still need their queue: unfinished Jobs, PodGroups that may have pods to run, and pods on nodes.

The queue controller uses it to decide whether a queue is Closed, and admission whether a queue may be deleted. Objects
may have any shape. An object that is being deleted never starts another pod, so it needs its queue only while its pods
are on nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from vcbatch.api import names
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json
from vcbatch.api.names import DEFAULT_QUEUE
from vcbatch.api.phases import JobPhase, PodGroupPhase
from vcbatch.api.resources import BATCH_JOBS, JOBS, PODGROUPS, PODS, Resource

_FINISHED = frozenset(phase.value for phase in JobPhase if phase.finished)
_HOLDING = frozenset({PodGroupPhase.RUNNING.value, PodGroupPhase.UNKNOWN.value})
_PHASES = ("Running", "Inqueue", "Pending", "Unknown", "Completed")
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueWork:
    """The unfinished work of one queue.

    Attributes:
        groups: the number of unfinished PodGroups by phase.
        members: the owners of these PodGroups, such as `Job ns/a`, or the PodGroups themselves: `PodGroup ns/g`.
        jobs: the unfinished Jobs that have none of these PodGroups, as `namespace/name`, with their phases.
        held: the number of pods on nodes that none of the above needs, by their owners: objects that are being deleted,
        no longer exist or have ended.
        placed: the number of pods of the queue that have a node, at least according to its PodGroups.
    """

    groups: Mapping[str, int] = field(default_factory=dict[str, int])
    members: Sequence[str] = ()
    jobs: Mapping[str, str] = field(default_factory=dict[str, str])
    held: Mapping[str, int] = field(default_factory=dict[str, int])
    placed: int = 0

    @property
    def text(self) -> str:
        """The work as text, such as `1 PodGroups (1 Running): Job ns/c and 1 unfinished Jobs (ns/a Aborted)`; empty
        where there is none."""
        parts: list[str] = []
        if self.groups:
            phases = ", ".join(f"{count} {phase}" for phase, count in sorted(self.groups.items(), key=_order))
            named = f": {_some(self.members)}" if self.members else ""
            parts.append(f"{sum(self.groups.values())} PodGroups ({phases}){named}")
        if self.jobs:
            named = _some([f"{name} {phase}" for name, phase in sorted(self.jobs.items())])
            parts.append(f"{len(self.jobs)} unfinished Jobs ({named})")
        if self.held:
            named = _some([f"{count} of {owner}" for owner, count in sorted(self.held.items())])
            parts.append(f"{sum(self.held.values())} Pods that still hold nodes ({named})")
        return " and ".join(parts)


def names_work(refusal: str) -> bool:
    """Whether a queue's deletion was rejected because of the work in it, in the words of `QueueWork.text`."""
    return any(words in refusal for words in (" PodGroups (", " unfinished Jobs (", " Pods that still hold nodes ("))


def work_in(
    queue: str,
    *,
    jobs: Iterable[Json],
    groups: Iterable[Json],
    batch_jobs: Iterable[Json] = (),
    pods: Iterable[Json] | None = None,
    leaving: Callable[[str], bool] = lambda namespace: False,
) -> QueueWork:
    """The unfinished work of a queue, of all Jobs, PodGroups and batch/v1 Jobs, and of the pods where they are given.

    Objects that are being deleted aren't counted, nor are those in a namespace that is being deleted (`leaving`), nor
    the PodGroup of a Job that has ended or no longer exists: the garbage collector or the Job's controller deletes it.
    Their pods are counted while they are on nodes. The Completed PodGroup of an unfinished batch/v1 Job counts, as the
    Job's next pod may not exist yet.
    """
    stored = [job for job in jobs if is_unfinished_job(job) and not leaving(_namespace(job))]
    unfinished = {_uid(job) for job in stored}
    going_on = {_uid(job) for job in batch_jobs if is_unfinished_batch_job(job)}
    counts: dict[str, int] = {}
    members: set[str] = set()
    with_group: set[str] = set()
    counted: set[tuple[str, str]] = set()
    queues: dict[tuple[str, str], str] = {}
    placed = 0
    for group in groups:
        key = (_namespace(group), _name(group))
        queues[key] = queue_of(group)
        if queues[key] != queue or being_deleted(group) or leaving(_namespace(group)):
            continue
        of_job, of_batch_job = controller_of(group, JOBS), controller_of(group, BATCH_JOBS)
        if (of_job and of_job not in unfinished) or (of_batch_job and of_batch_job not in going_on):
            continue
        if not is_unfinished_group(group) and not of_batch_job:
            continue
        phase = phase_of_group(group) or PodGroupPhase.PENDING.value
        counts[phase] = counts.get(phase, 0) + 1
        members.add(_owner_of(group) or f"{PODGROUPS.kind} {'/'.join(key)}")
        with_group.add(of_job)
        counted.add(key)
        if phase in _HOLDING:
            running = part(group, "status").get("running")
            placed += max(running if isinstance(running, int) else 0, 1)
    without = [job for job in stored if queue_of(job) == queue and _uid(job) not in with_group]
    held: dict[str, int] = {}
    if pods is not None:
        placed = 0
        own = {_uid(job) for job in without}
        for pod in pods:
            key = (_namespace(pod), str(_annotations(pod).get(names.GROUP_NAME) or ""))
            if not holds_node(pod) or (queues.get(key) or queue_of_pod(_annotations(pod))) != queue:
                continue
            placed += 1
            if key not in counted and controller_of(pod, JOBS) not in own:
                owner = _owner_of(pod) or f"{PODS.kind} {_namespace(pod)}/{_name(pod)}"
                held[owner] = held.get(owner, 0) + 1
    return QueueWork(
        groups=counts,
        members=tuple(sorted(members)),
        jobs={f"{_namespace(job)}/{_name(job)}": phase_of_job(job) for job in without},
        held=held,
        placed=placed,
    )


def _some(named: Sequence[str]) -> str:
    more = [f"{len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else []
    return ", ".join([*named[:_MOST_NAMED], *more])


def _order(entry: tuple[str, int]) -> tuple[int, str]:
    phase, _ = entry
    return (_PHASES.index(phase) if phase in _PHASES else len(_PHASES), phase)


def queue_of(obj: Json) -> str:
    """The queue of a Job or PodGroup."""
    return part(obj, "spec").get("queue") or DEFAULT_QUEUE


def queue_of_pod(annotations: Mapping[str, Any]) -> str:
    """The queue that a pod's annotations name; empty where they name none."""
    return str(annotations.get(names.QUEUE_NAME) or annotations.get(names.SCHEDULING_QUEUE_NAME) or "")


def holds_node(pod: Json) -> bool:
    """Whether the pod uses resources of a node: it is bound, and hasn't ended."""
    phase = part(pod, "status").get("phase")
    return bool(part(pod, "spec").get("nodeName")) and phase not in ("Succeeded", "Failed")


def phase_of_job(job: Json) -> str:
    """The Job's phase; `Pending` where it has none yet."""
    return str(part(part(job, "status"), "state").get("phase") or JobPhase.PENDING.value)


def is_unfinished_job(job: Json) -> bool:
    """Whether the Job may start another pod: it hasn't ended and isn't being deleted. An Aborted Job may be resumed."""
    return phase_of_job(job) not in _FINISHED and not being_deleted(job)


def phase_of_group(group: Json) -> str:
    """The PodGroup's phase; empty before a scheduler has written one."""
    return str(part(group, "status").get("phase") or "")


def is_unfinished_group(group: Json) -> bool:
    """Whether the PodGroup has pods to run, or waits for them."""
    return phase_of_group(group) != PodGroupPhase.COMPLETED


def is_unfinished_batch_job(job: Json) -> bool:
    """Whether a batch/v1 Job may create another pod."""
    conditions = _objects(part(job, "status"), "conditions")
    ended = any(one.get("type") in ("Complete", "Failed") and one.get("status") == "True" for one in conditions)
    return not ended and not being_deleted(job)


def being_deleted(obj: Json) -> bool:
    """Whether the object has a deletion timestamp."""
    return bool(part(obj, "metadata").get("deletionTimestamp"))


def controller_of(obj: Json, resource: Resource) -> str:
    """The UID of the controller of this object, if it is of that kind; else empty."""
    for owner in _objects(part(obj, "metadata"), "ownerReferences"):
        if owner.get("controller"):
            mine = (owner.get("apiVersion"), owner.get("kind")) == (resource.api_version, resource.kind)
            return str(owner.get("uid") or "") if mine else ""
    return ""


def _owner_of(obj: Json) -> str:
    """Kind, namespace and name of the controller of the object; empty where it has none."""
    for owner in _objects(part(obj, "metadata"), "ownerReferences"):
        if owner.get("controller"):
            return f"{owner.get('kind')} {_namespace(obj)}/{owner.get('name')}"
    return ""


def _annotations(obj: Json) -> Json:
    return part(part(obj, "metadata"), "annotations")


def _objects(obj: Json, key: str) -> list[Json]:
    """The objects in the list at `key`."""
    return [cast(Json, one) for one in listed(obj, key) if isinstance(one, dict)]


def _namespace(obj: Json) -> str:
    return str(part(obj, "metadata").get("namespace") or "")


def _name(obj: Json) -> str:
    return str(part(obj, "metadata").get("name") or "")


def _uid(obj: Json) -> str:
    return str(part(obj, "metadata").get("uid") or "")
