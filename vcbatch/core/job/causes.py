"""The cause of the loss of a pod: exactly one, found in one place.

An eviction ends in a failed pod as often as a crash does, and policies, retry budgets and users have to distinguish the
two (volcano#5885, volcano#2560). A pod's status is read from the most to the least specific part: the DisruptionTarget
condition (KEP-3329), the reason that a kubelet or the node controller set, the containers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from vcbatch.api.messages import shorten
from vcbatch.api.pod import Container, ContainerStatus, Pod, PodPhase, StateTerminated
from vcbatch.api.reasons import ContainerReason, LossCause, PodConditionType
from vcbatch.api.timestamps import parse_time

_MESSAGE_LIMIT = 1024
_REASON_LIMIT = 128
_SIGNALLED = 128
_LAST_SIGNAL = 64
"""The exit code of a process that a signal ended, in shells and container runtimes, is 128 plus its number."""

_BY_DISRUPTION = {
    "PreemptionByScheduler": LossCause.PREEMPTED,
    "PreemptionByKubeScheduler": LossCause.PREEMPTED,
    "EvictionByEvictionAPI": LossCause.EVICTED,
    "DeletionByTaintManager": LossCause.NODE_LOST,
    "DeletionByPodGC": LossCause.NODE_LOST,
}

_BY_STATUS_REASON = {
    "Evicted": LossCause.EVICTED,
    "Preempting": LossCause.PREEMPTED,
    "NodeLost": LossCause.NODE_LOST,
    "NodeShutdown": LossCause.NODE_SHUTDOWN,
    "Shutdown": LossCause.NODE_SHUTDOWN,
    "Terminated": LossCause.NODE_SHUTDOWN,
    "DeadlineExceeded": LossCause.DEADLINE_EXCEEDED,
    "NodeAffinity": LossCause.REJECTED,
    "NodeName": LossCause.REJECTED,
    "UnexpectedAdmissionError": LossCause.REJECTED,
}

_IN_WORDS = {
    LossCause.EXITED: "exited",
    LossCause.OOM_KILLED: "was killed for using more memory than its limit",
    LossCause.EVICTED: "was evicted",
    LossCause.PREEMPTED: "was preempted",
    LossCause.NODE_LOST: "was lost with its node",
    LossCause.NODE_SHUTDOWN: "ended with the shutdown of its node",
    LossCause.STATUS_UNKNOWN: "is gone and left no exit status",
    LossCause.REJECTED: "was refused by its node",
    LossCause.DELETED: "was deleted",
    LossCause.DEADLINE_EXCEEDED: "ran longer than its activeDeadlineSeconds",
    LossCause.FAILED: "failed",
}


_REPORTED_ALREADY = frozenset({"Error", "Completed", "OOMKilled", "ContainerStatusUnknown", *_BY_STATUS_REASON})
"""Reasons that add nothing to the text of their cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How a pod ended. `exit_codes` are those of its failed containers, the earliest first, as far as they are known;
    `reason`, `signal` (0: none) and `message` are those of the first one, or the pod's own; `at` is when the last of
    them ended, None where it is unknown."""

    cause: LossCause
    exit_codes: tuple[int, ...] = ()
    reason: str = ""
    signal: int = 0
    at: datetime | None = None
    message: str = ""


def failure_of(pod: Pod) -> Failure:
    """Find the cause for a pod in phase Failed."""
    ended = sorted(_failed_containers(pod), key=lambda state: state.finished_at or "")
    times = [time for time in map(_time, ended) if time is not None]
    return Failure(
        cause=_cause(pod, ended),
        exit_codes=tuple(state.exit_code for state in ended if not _is_unknown(state)),
        reason=shorten(pod.status.reason or (ended[0].reason if ended else ""), limit=_REASON_LIMIT),
        signal=_signal(ended[0]) if ended else 0,
        at=max(times, default=None),
        message=shorten(_message(pod, ended), limit=_MESSAGE_LIMIT),
    )


def is_being_taken(pod: Pod) -> bool:
    """Whether a failed pod is about to be deleted by the client that made it fail: the condition is set just before the
    deletion (KEP-3329; only a pod that a kubelet itself terminates stays)."""
    return pod.status.phase == PodPhase.FAILED and _disruption(pod) in _BY_DISRUPTION


def describe(*, pod: str, failure: Failure, node: str = "") -> str:
    """One sentence for messages: the pod, its failure, its node, and its last message."""
    what = _IN_WORDS[failure.cause]
    if failure.cause is LossCause.EXITED and failure.exit_codes:
        what = f"{what} with code {failure.exit_codes[0]}"
        if failure.signal:
            what = f"{what} by signal {failure.signal}"
    if node:
        what = f"{what} {node}" if what.endswith("its node") else f"{what} on node {node}"
    reported = failure.reason if failure.reason not in _REPORTED_ALREADY else ""
    detail = ": ".join(part for part in (reported, failure.message) if part)
    return f"pod {pod} {what} ({detail})" if detail else f"pod {pod} {what}"


def _cause(pod: Pod, ended: list[StateTerminated]) -> LossCause:
    disruption = _disruption(pod)
    if disruption is not None:
        return _BY_DISRUPTION.get(disruption, LossCause.EVICTED)
    reason = pod.status.reason
    if reason in _BY_STATUS_REASON:
        return _BY_STATUS_REASON[reason]
    if reason.startswith("OutOf"):
        return LossCause.REJECTED
    if pod.metadata.deletion_timestamp is not None:
        return LossCause.DELETED
    if any(state.reason == "OOMKilled" for state in ended):
        return LossCause.OOM_KILLED
    if ended and all(map(_is_unknown, ended)):
        return LossCause.STATUS_UNKNOWN
    return LossCause.EXITED if ended else LossCause.FAILED


def _is_unknown(state: StateTerminated) -> bool:
    """Whether the kubelet doesn't know how the container ended: the kubelet then chose the exit code (137; Kubernetes
    `pkg/kubelet/kubelet_pods.go`)."""
    return state.reason == ContainerReason.STATUS_UNKNOWN


def _disruption(pod: Pod) -> str | None:
    """The reason of the condition DisruptionTarget, where its status is True; None otherwise."""
    for condition in pod.status.conditions or ():
        if condition.type == PodConditionType.DISRUPTION_TARGET and condition.status == "True":
            return condition.reason
    return None


def _failed_containers(pod: Pod) -> Iterator[StateTerminated]:
    """The final state of each failed container. Restartable init containers (KEP-753) are left out where a regular one
    failed too: they are stopped when the pod ends, and their exit code then isn't its cause."""
    regular = [state for state in map(_terminated, pod.status.container_statuses or ()) if state]
    failed = [state for state in regular if state.exit_code != 0]
    sidecars = {container.name for container in pod.spec.init_containers or () if _restarts(container)}
    for status in pod.status.init_container_statuses or ():
        state = _terminated(status)
        if state and state.exit_code != 0 and not (failed and status.name in sidecars):
            yield state
    yield from failed


def _terminated(status: ContainerStatus) -> StateTerminated | None:
    return status.state.terminated if status.state else None


def _restarts(container: Container) -> bool:
    return container.restart_policy == "Always"


def _time(state: StateTerminated) -> datetime | None:
    try:
        return parse_time(state.finished_at) if state.finished_at else None
    except ValueError:
        return None


def _signal(state: StateTerminated) -> int:
    """The signal that ended the process, from the kubelet's status or from the exit code."""
    if state.signal:
        return state.signal
    if _is_unknown(state):
        return 0
    reported = state.exit_code - _SIGNALLED
    return reported if 0 < reported <= _LAST_SIGNAL else 0


def _message(pod: Pod, ended: list[StateTerminated]) -> str:
    return pod.status.message or next((state.message.strip() for state in ended if state.message.strip()), "")
