"""What is read out of a pod that ended, at the edges, and how it is told again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tests.support.job_world import Json, job_object
from vcbatch.api.job import Action, Job
from vcbatch.api.pod import Pod
from vcbatch.api.podgroup import PodGroup
from vcbatch.api.reasons import JobReason, LossCause
from vcbatch.api.resources import JOBS
from vcbatch.core.job import events
from vcbatch.core.job.causes import Failure, describe, failure_of, is_being_taken
from vcbatch.core.job.ledger import Loss
from vcbatch.core.job.status import Explanation
from vcbatch.core.machine import Emit, EventType, ObjectRef

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def ended(code: int, *, at: str | None = "2026-11-20T12:00:00Z", name: str = "main", **more: Any) -> Json:
    return {"name": name, "state": {"terminated": {"exitCode": code, "finishedAt": at, **more}}}


def failed(*, spec: Json | None = None, **status: Any) -> Pod:
    metadata = {"name": "p", "uid": "u"}
    return msgspec.convert({"metadata": metadata, "spec": spec or {}, "status": {"phase": "Failed", **status}}, Pod)


# One pod -------------------------------------------------------------------------------------------------------------


def test_all_that_is_read_out_of_a_pod() -> None:
    first = ended(139, name="a", at="2026-11-20T12:00:01Z", reason="Error", message="  dumped core \n")
    then = ended(1, name="b", at="2026-11-20T12:00:02Z", reason="Other", message="later")
    assert failure_of(failed(containerStatuses=[then, first])) == Failure(
        cause=LossCause.EXITED,
        exit_codes=(139, 1),
        reason="Error",
        signal=11,
        at=NOON + timedelta(seconds=2),
        message="dumped core",
    )


def test_what_a_pod_says_itself_comes_before_its_containers() -> None:
    pod = failed(reason="Evicted", message="low", containerStatuses=[ended(143, reason="Error", message="term")])
    assert failure_of(pod) == Failure(
        cause=LossCause.EVICTED, exit_codes=(143,), reason="Evicted", signal=15, at=NOON, message="low"
    )


def test_a_pod_that_says_nothing() -> None:
    assert failure_of(failed()) == Failure(cause=LossCause.FAILED)
    assert failure_of(failed(containerStatuses=[{"name": "main"}, {"name": "b", "state": {}}])) == Failure(
        cause=LossCause.FAILED
    )


def test_a_container_that_does_not_say_when_it_ended() -> None:
    """It is taken for the first: it may have been."""
    statuses = [ended(2, name="a"), ended(3, name="b", at=None)]
    failure = failure_of(failed(containerStatuses=statuses))
    assert (failure.exit_codes, failure.at) == ((3, 2), NOON)
    assert failure_of(failed(containerStatuses=statuses[1:])).at is None


def test_the_first_container_with_a_word_is_quoted() -> None:
    statuses = [ended(1, name="a", message=" \n"), ended(1, name="b", at="2026-11-20T12:00:09Z", message="why")]
    assert failure_of(failed(containerStatuses=statuses)).message == "why"


@pytest.mark.parametrize(("code", "signal"), [(128, 0), (129, 1), (191, 63), (192, 64), (193, 0)])
def test_codes_that_stand_for_signals(code: int, signal: int) -> None:
    assert failure_of(failed(containerStatuses=[ended(code)])).signal == signal


def test_long_reasons_and_messages_are_cut() -> None:
    failure = failure_of(failed(reason="r" * 200, message="m" * 2000))
    assert (failure.reason, failure.message) == ("r" * 125 + "...", "m" * 1021 + "...")
    failure = failure_of(failed(reason="r" * 128, message="m" * 1024))
    assert (failure.reason, failure.message) == ("r" * 128, "m" * 1024)


@pytest.mark.parametrize(
    ("init", "main", "codes"),
    [
        ([ended(1, name="i")], [], (1,)),
        ([ended(0, name="i")], [ended(1)], (1,)),
        ([ended(4, name="i", at="2026-11-20T11:00:00Z")], [ended(1)], (4, 1)),
        ([ended(4, name="sidecar")], [], (4,)),
        ([ended(4, name="sidecar")], [ended(0)], (4,)),
        ([ended(4, name="sidecar", at="2026-11-20T11:00:00Z")], [ended(1)], (1,)),
        ([{"name": "i"}], [ended(1)], (1,)),
    ],
)
def test_whose_exit_codes_count(init: list[Json], main: list[Json], codes: tuple[int, ...]) -> None:
    spec = {"initContainers": [{"name": "i"}, {"name": "sidecar", "restartPolicy": "Always"}]}
    failure = failure_of(failed(spec=spec, initContainerStatuses=init, containerStatuses=main))
    assert failure.exit_codes == codes


REASONS = {
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
    "OutOfmemory": LossCause.REJECTED,
    "RanOutOf": LossCause.EXITED,
    "outofcpu": LossCause.EXITED,
}


@pytest.mark.parametrize("reason", REASONS)
def test_a_pod_s_own_reason(reason: str) -> None:
    assert failure_of(failed(reason=reason, containerStatuses=[ended(1)])).cause is REASONS[reason]


def condition(reason: str, *, kind: str = "DisruptionTarget", status: str = "True") -> Json:
    return {"type": kind, "status": status, "reason": reason}


@pytest.mark.parametrize(
    ("phase", "conditions", "is_taken"),
    [
        ("Failed", [condition("PreemptionByScheduler")], True),
        ("Failed", [condition("PreemptionByKubeScheduler")], True),
        ("Failed", [condition("Other", kind="Ready"), condition("DeletionByPodGC")], True),
        ("Failed", [condition("TerminationByKubelet")], False),
        ("Failed", [condition("EvictionByEvictionAPI", status="False")], False),
        ("Failed", [condition("EvictionByEvictionAPI", kind="Ready")], False),
        ("Failed", [], False),
        ("Running", [condition("PreemptionByScheduler")], False),
    ],
)
def test_a_failed_pod_that_will_be_deleted(phase: str, conditions: list[Json], is_taken: bool) -> None:
    assert is_being_taken(failed(phase=phase, conditions=conditions)) is is_taken


@pytest.mark.parametrize(
    ("failure", "node", "reported"),
    [
        (Failure(cause=LossCause.EXITED), "", "pod p exited"),
        (Failure(cause=LossCause.EXITED, exit_codes=(3, 4)), "", "pod p exited with code 3"),
        (
            Failure(cause=LossCause.EXITED, exit_codes=(129,), signal=1),
            "n",
            "pod p exited with code 129 by signal 1 on node n",
        ),
        (
            Failure(cause=LossCause.OOM_KILLED, exit_codes=(137,)),
            "",
            "pod p was killed for using more memory than its limit",
        ),
        (Failure(cause=LossCause.EVICTED), "", "pod p was evicted"),
        (Failure(cause=LossCause.PREEMPTED), "n", "pod p was preempted on node n"),
        (Failure(cause=LossCause.NODE_LOST), "", "pod p was lost with its node"),
        (Failure(cause=LossCause.NODE_SHUTDOWN), "n", "pod p ended with the shutdown of its node n"),
        (Failure(cause=LossCause.REJECTED), "", "pod p was refused by its node"),
        (Failure(cause=LossCause.DELETED), "n", "pod p was deleted on node n"),
        (Failure(cause=LossCause.DEADLINE_EXCEEDED), "", "pod p ran longer than its activeDeadlineSeconds"),
        (Failure(cause=LossCause.FAILED, reason="Completed", message="m"), "", "pod p failed (m)"),
        (Failure(cause=LossCause.FAILED, reason="Odd", message="m"), "", "pod p failed (Odd: m)"),
        (Failure(cause=LossCause.EVICTED, reason="NodeLost"), "", "pod p was evicted"),
    ],
)
def test_a_loss_in_words(failure: Failure, node: str, reported: str) -> None:
    assert describe(pod="p", failure=failure, node=node) == reported


# Events --------------------------------------------------------------------------------------------------------------

JOB = Job.parse(job_object(uid="u"))
REF = ObjectRef(resource=JOBS, namespace="ns", name="j", uid="u")


def loss(index: int, cause: LossCause, **more: Any) -> Loss:
    failure = Failure(cause=cause, **more)
    return Loss(task="w", index=index, pod=f"j-w-{index}", uid="", node="n", failure=failure, gone=False)


def test_losses_are_told_by_who_is_to_blame() -> None:
    lost = [
        *(loss(index, LossCause.EXITED, exit_codes=(index,)) for index in range(1, 6)),
        loss(6, LossCause.EVICTED),
        *(loss(index, LossCause.NODE_LOST) for index in range(7, 9)),
    ]
    assert list(events.losses(JOB, lost)) == [
        Emit(
            ref=REF,
            type=EventType.WARNING,
            reason="PodFailed",
            message="pod j-w-1 exited with code 1 on node n; pod j-w-2 exited with code 2 on node n;"
            " pod j-w-3 exited with code 3 on node n; and 2 more",
        ),
        Emit(
            ref=REF,
            type=EventType.WARNING,
            reason="PodEvicted",
            message="pod j-w-6 was evicted on node n; pod j-w-7 was lost with its node n;"
            " pod j-w-8 was lost with its node n",
        ),
    ]
    assert not list(events.losses(JOB, []))


def test_a_warning_is_cut_where_it_is_too_long() -> None:
    assert events.warning(JOB, JobReason.PVC_ERROR, "x" * 2000) == Emit(
        ref=REF, type=EventType.WARNING, reason="PVCError", message="x" * 1021 + "..."
    )


def test_what_is_told_of_actions() -> None:
    assert [
        events.executing(JOB, Action.RESTART_JOB, "why"),
        events.command_issued(JOB, Action.ABORT_JOB),
        *events.delayed(
            JOB, [(Action.ABORT_JOB, timedelta(seconds=90), "why"), (Action.RESTART_JOB, timedelta(1), "")]
        ),
    ] == [
        Emit(ref=REF, type=EventType.NORMAL, reason=reason, message=message)
        for reason, message in (
            ("ExecuteAction", "Start to execute action RestartJob: why"),
            (
                "CommandIssued",
                "Start to execute command AbortJob, and clean it up to make sure executed not more than once.",
            ),
            ("ExecuteAction", "Execute action AbortJob after 1m30s: why"),
            ("ExecuteAction", "Execute action RestartJob after 24h0m0s"),
        )
    ]


def test_a_gang_in_trouble_is_told_in_volcano_s_words() -> None:
    assert events.pod_group_pending(JOB, Explanation("NotEnoughResources", "0/1 nodes")) == Emit(
        ref=REF,
        type=EventType.WARNING,
        reason="PodGroupPending",
        message="PodGroup ns:j unschedulable, reason: 0/1 nodes",
    )


def held(kind: str, time: str | None, *, status: str = "True", reason: str = "r") -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": kind, "lastTransitionTime": time}


@pytest.mark.parametrize(
    ("conditions", "trouble"),
    [
        ([], None),
        ([held("Unschedulable", "1", status="False")], None),
        ([held("Unschedulable", "1")], Explanation("r", "Unschedulable")),
        ([held("Unschedulable", "1", reason="")], Explanation("PodGroupPending", "Unschedulable")),
        ([held("Unschedulable", "1"), held("Scheduled", "2")], None),
        ([held("Scheduled", "1"), held("Unschedulable", "2")], Explanation("r", "Unschedulable")),
        ([held("Unschedulable", "2"), held("Scheduled", "1")], Explanation("r", "Unschedulable")),
        ([held("Unschedulable", None), held("Scheduled", "1")], None),
        ([held("Unschedulable", "1"), held("Scheduled", "2", status="False")], Explanation("r", "Unschedulable")),
    ],
)
def test_what_keeps_a_gang_from_starting(conditions: list[Json], trouble: Explanation | None) -> None:
    assert events.pod_group_trouble(PodGroup.parse({"status": {"conditions": conditions}})) == trouble


def test_no_gang_has_no_trouble() -> None:
    assert events.pod_group_trouble(None) is None
