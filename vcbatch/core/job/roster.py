"""A job's pods as members of their tasks: the index and the attempt of each pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from vcbatch.api import names
from vcbatch.api.pod import Pod, PodPhase
from vcbatch.api.reasons import PodConditionType
from vcbatch.core.job.plan import Plan

FINISHED = (PodPhase.SUCCEEDED, PodPhase.FAILED)


@dataclass(frozen=True, slots=True)
class Member:
    """One pod of the job. `version` is the attempt that created it, `retry_count` the job's count at that time."""

    pod: Pod
    task: str
    index: int
    version: int
    retry_count: int

    @property
    def name(self) -> str:
        return self.pod.metadata.name

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def phase(self) -> str:
        return self.pod.status.phase or PodPhase.PENDING

    @property
    def terminating(self) -> bool:
        return self.pod.metadata.deletion_timestamp is not None

    @property
    def finished(self) -> bool:
        return self.pod.status.phase in FINISHED


@dataclass(frozen=True, slots=True)
class Roster:
    """`places` has the member at each index that the spec has, `surplus` those beyond (scaled down)."""

    places: Mapping[str, Mapping[int, Member]]
    surplus: Sequence[Member]

    def all(self) -> Iterator[Member]:
        """Every pod, including those beyond the spec."""
        for members in self.places.values():
            yield from members.values()
        yield from self.surplus

    def placed(self) -> Iterator[Member]:
        """The pods at indices of the spec."""
        for members in self.places.values():
            yield from members.values()


def read_of_pod(pod: Pod) -> object:
    """The properties of a pod that a decision about its job reads: where they are equal, so is the decision. The node
    is left out: it matters once the pod is lost, and is read then."""
    meta, status = pod.metadata, pod.status
    conditions = [reported for reported in status.conditions or () if reported.type != PodConditionType.POD_SCHEDULED]
    return (
        (meta.deletion_timestamp, meta.annotations, meta.owner_references, conditions),
        (status.phase, status.reason, status.message, status.container_statuses, status.init_container_statuses),
    )


def roster_of(plan: Plan, pods: Sequence[Pod]) -> Roster:
    """Sort the pods into their tasks. Pods of another owner (by UID), without Volcano's annotations or of a task that
    the spec doesn't have are ignored."""
    places: dict[str, dict[int, Member]] = {name: {} for name in plan.tasks}
    surplus: list[Member] = []
    uid = plan.job.uid
    for pod in pods:
        owner = pod.metadata.controller_owner()
        if owner is None or owner.uid != uid:
            continue
        member = _member(pod)
        if member is None or member.task not in places:
            continue
        expected = names.pod_name(plan.job.name, member.task, member.index)
        if member.index < plan.tasks[member.task].replicas and pod.metadata.name == expected:
            places[member.task][member.index] = member
        else:
            surplus.append(member)
    # Pods come in any order; the same snapshot has to give exactly the same decision.
    ordered = {name: {index: members[index] for index in sorted(members)} for name, members in places.items()}
    return Roster(ordered, sorted(surplus, key=lambda member: (member.task, member.index, member.name)))


def _member(pod: Pod) -> Member | None:
    annotations = pod.metadata.annotations or {}
    task = annotations.get(names.TASK_SPEC)
    version = _number(annotations.get(names.JOB_VERSION))
    if task is None or version is None:
        return None
    index = _number(annotations.get(names.TASK_INDEX))
    if index is None:  # pods created by Volcano 1.8 have it in their name only
        index = _number(pod.metadata.name.rpartition("-")[2])
    if index is None:
        return None
    return Member(pod, task, index, version, _number(annotations.get(names.JOB_RETRY_COUNT)) or 0)


@lru_cache(maxsize=1 << 16)
def _number(text: str | None) -> int | None:
    """A small number in an annotation. Cached, since all pods of all jobs have the same few values."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None
