"""Properties of a Job's pods: state, index and time of the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from vcbatch.api import names
from vcbatch.api.batch_job import BatchJob
from vcbatch.api.pod import ContainerStatus, Pod, PodCondition, PodPhase
from vcbatch.api.timestamps import parse_time
from vcbatch.core.workload.pods import ready_since

_PHASES: Mapping[str, int] = {PodPhase.PENDING: 0, PodPhase.UNKNOWN: 1, PodPhase.RUNNING: 2}
_EPOCH = datetime.min.replace(tzinfo=UTC)
_LONGEST_NUMBER = 10


def is_tracked(pod: Pod) -> bool:
    """Whether the pod is yet to be counted."""
    return names.POD_TRACKING in (pod.metadata.finalizers or ())


def is_leaving(pod: Pod) -> bool:
    """Whether the pod has a deletion timestamp."""
    return pod.metadata.deletion_timestamp is not None


def has_succeeded(pod: Pod) -> bool:
    return pod.status.phase == PodPhase.SUCCEEDED


def has_failed(pod: Pod, job: BatchJob) -> bool:
    """Whether the pod is a failure for the Job. A deleted pod is one at once, unless the Job waits until it has
    ended."""
    if pod.status.phase == PodPhase.FAILED:
        return True
    return is_leaving(pod) and not has_succeeded(pod) and not job.replaces_ended_only


def index_of(pod: Pod) -> int | None:
    """The pod's completion index; None where it is missing or malformed."""
    return _number((pod.metadata.annotations or {}).get(names.COMPLETION_INDEX, ""))


def index_in(pod: Pod, job: BatchJob) -> int | None:
    """The pod's index, where the Job has it; the Job may have been scaled down."""
    index = index_of(pod)
    return index if index is not None and index < job.indices else None


def counts_for(pod: Pod, job: BatchJob) -> bool:
    """Whether the result of the pod counts for the Job."""
    return not job.indexed or index_in(pod, job) is not None


def failures_before(pod: Pod) -> int:
    """The number of earlier pods of its index that failed, without ignored ones."""
    return _number((pod.metadata.annotations or {}).get(names.INDEX_FAILURES, "")) or 0


def ignored_before(pod: Pod) -> int:
    """How many pods of its index failed before it and were ignored by the failure policy."""
    return _number((pod.metadata.annotations or {}).get(names.INDEX_IGNORED_FAILURES, "")) or 0


def restarts(pod: Pod) -> int:
    """The number of in-place restarts of its containers."""
    return sum(status.restart_count for status in _statuses(pod))


def ended_at(pod: Pod) -> datetime:
    """When its last container ended; else when it last became not ready; else when its deletion was requested; else
    when it was created."""
    return _containers_end(pod) or _not_ready_since(pod) or _deletion_asked(pod) or created_at(pod)


def created_at(pod: Pod) -> datetime:
    """The time of creation; the oldest possible time where that is malformed."""
    return _time(pod.metadata.creation_timestamp) or _EPOCH


def by_worth(pods: Iterable[Pod]) -> list[Pod]:
    """The pods in order of deletion: not tracked, not placed, not running, not ready, ready for the shortest time,
    restarted most often, youngest (Kubernetes' `ActivePods`)."""
    return sorted(pods, key=_worth)


def by_index(pods: Iterable[Pod]) -> dict[int | None, list[Pod]]:
    """The pods by completion index; None has those whose index is missing or malformed."""
    groups: dict[int | None, list[Pod]] = {}
    for pod in pods:
        groups.setdefault(index_of(pod), []).append(pod)
    return groups


def _worth(pod: Pod) -> tuple[bool, bool, int, bool, float, int, float, str]:
    since = ready_since(pod)
    most_restarts = max((status.restart_count for status in pod.status.container_statuses or ()), default=0)
    return (
        is_tracked(pod),
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 0),
        since is not None,
        -since.timestamp() if since is not None else 0.0,
        -most_restarts,
        -(created_at(pod) - _EPOCH).total_seconds(),
        pod.metadata.name,
    )


def _statuses(pod: Pod) -> Sequence[ContainerStatus]:
    return [*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())]


def _containers_end(pod: Pod) -> datetime | None:
    """The end of the last container, restartable init containers included; None where one of them hasn't ended."""
    beside = {each.name for each in pod.spec.init_containers or () if each.restart_policy == "Always"}
    statuses = [
        *(pod.status.container_statuses or ()),
        *(status for status in pod.status.init_container_statuses or () if status.name in beside),
    ]
    ends: list[datetime] = []
    for status in statuses:
        end = status.state.terminated if status.state is not None else None
        at = _time(end.finished_at) if end is not None else None
        if at is None:
            return None
        ends.append(at)
    return max(ends, default=None)


def _not_ready_since(pod: Pod) -> datetime | None:
    ready = _ready(pod)
    return _time(ready.last_transition_time) if ready is not None and ready.status == "False" else None


def _deletion_asked(pod: Pod) -> datetime | None:
    at = _time(pod.metadata.deletion_timestamp)
    return at - timedelta(seconds=pod.metadata.deletion_grace_period_seconds or 0) if at is not None else None


def _ready(pod: Pod) -> PodCondition | None:
    return next((each for each in pod.status.conditions or () if each.type == "Ready"), None)


def _time(text: str | None) -> datetime | None:
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER else None
