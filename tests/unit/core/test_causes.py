"""One cause per loss, whatever traces it left."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from vcbatch.api.pod import Pod
from vcbatch.api.reasons import LossCause
from vcbatch.core.job.causes import Failure, describe, failure_of

Json = dict[str, Any]


def _ended(code: int, *, at: str = "2026-11-20T12:00:00Z", name: str = "main", **more: Any) -> Json:
    return {"name": name, "state": {"terminated": {"exitCode": code, "finishedAt": at, **more}}}


def _disrupted(reason: str) -> list[Json]:
    return [{"type": "DisruptionTarget", "status": "True", "reason": reason}]


def _pod(status: Json, *, deleted: bool = False, **spec: Any) -> Pod:
    metadata: Json = {"name": "p", "uid": "u"}
    if deleted:
        metadata["deletionTimestamp"] = "2026-11-20T12:00:00Z"
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": "Failed", **status}}, Pod)


CASES: dict[str, tuple[Json, bool, LossCause]] = {
    "an exit code": ({"containerStatuses": [_ended(3)]}, False, LossCause.EXITED),
    "out of memory": ({"containerStatuses": [_ended(137, reason="OOMKilled")]}, False, LossCause.OOM_KILLED),
    "preempted, whatever its code": (
        {"conditions": _disrupted("PreemptionByScheduler"), "containerStatuses": [_ended(143)]},
        True,
        LossCause.PREEMPTED,
    ),
    "evicted by the API": ({"conditions": _disrupted("EvictionByEvictionAPI")}, True, LossCause.EVICTED),
    "tainted node": ({"conditions": _disrupted("DeletionByTaintManager")}, True, LossCause.NODE_LOST),
    "a disruption of a new kind": ({"conditions": _disrupted("Whatever")}, False, LossCause.EVICTED),
    "a disruption that was called off": (
        {
            "conditions": [{"type": "DisruptionTarget", "status": "False", "reason": "x"}],
            "containerStatuses": [_ended(1)],
        },
        False,
        LossCause.EXITED,
    ),
    "evicted by the kubelet": ({"reason": "Evicted", "message": "low on memory"}, False, LossCause.EVICTED),
    "node shutdown": ({"reason": "Terminated"}, False, LossCause.NODE_SHUTDOWN),
    "no room after all": ({"reason": "OutOfcpu"}, False, LossCause.REJECTED),
    "deadline": ({"reason": "DeadlineExceeded"}, False, LossCause.DEADLINE_EXCEEDED),
    "deleted": ({"containerStatuses": [_ended(143)]}, True, LossCause.DELETED),
    "no trace": ({}, False, LossCause.FAILED),
    "an end that the kubelet does not know": (
        {"containerStatuses": [_ended(137, reason="ContainerStatusUnknown")]},
        False,
        LossCause.STATUS_UNKNOWN,
    ),
    "an exit code beside an end that the kubelet does not know": (
        {"containerStatuses": [_ended(137, reason="ContainerStatusUnknown"), _ended(3, name="b", reason="Error")]},
        False,
        LossCause.EXITED,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_cause(case: str) -> None:
    status, deleted, cause = CASES[case]
    failure = failure_of(_pod(status, deleted=deleted))
    assert failure.cause is cause
    assert describe(pod="p", failure=failure).startswith("pod p ")


def test_exit_codes_of_every_failed_container_the_first_to_fail_first() -> None:
    """Volcano looks at the first container only."""
    status = {
        "containerStatuses": [
            _ended(0, name="a"),
            _ended(2, name="b", at="2026-11-20T12:00:09Z"),
            _ended(1, name="c", at="2026-11-20T12:00:05Z", message="boom\n"),
        ]
    }
    failure = failure_of(_pod(status))
    assert failure.exit_codes == (1, 2)
    assert failure.message == "boom"
    assert failure.at is not None
    assert failure.at.second == 9


def test_an_unknown_end_has_no_exit_code_and_no_signal() -> None:
    """The code is one that the kubelet chose: no policy for exit code 137 is meant."""
    failure = failure_of(_pod({"containerStatuses": [_ended(137, reason="ContainerStatusUnknown")]}))
    assert (failure.exit_codes, failure.signal) == ((), 0)
    assert failure.cause.infrastructure
    assert describe(pod="p", failure=failure, node="n") == "pod p is gone and left no exit status on node n"


def test_an_init_container_that_fails() -> None:
    assert failure_of(_pod({"initContainerStatuses": [_ended(4)]})).exit_codes == (4,)


def test_a_sidecar_told_to_stop_is_not_the_cause() -> None:
    status = {"initContainerStatuses": [_ended(143, name="proxy")], "containerStatuses": [_ended(1)]}
    sidecar = {"name": "proxy", "restartPolicy": "Always"}
    assert failure_of(_pod(status, initContainers=[sidecar])).exit_codes == (1,)


def test_long_messages_are_cut() -> None:
    failure = failure_of(_pod({"containerStatuses": [_ended(1, message="x" * 5000)]}))
    assert len(failure.message) <= 1024


def test_times_that_nobody_can_read_are_no_times() -> None:
    assert failure_of(_pod({"containerStatuses": [_ended(1, at="yesterday")]})).at is None


@pytest.mark.parametrize(
    ("terminated", "signal"),
    [
        (_ended(139, reason="Error"), 11),
        (_ended(137, reason="OOMKilled"), 9),
        (_ended(1, signal=6, reason="Error"), 6),
        (_ended(1, reason="Error"), 0),
        (_ended(128), 0),
        (_ended(255), 0),
    ],
)
def test_the_signal_is_told(terminated: Json, signal: int) -> None:
    failure = failure_of(_pod({"containerStatuses": [terminated]}))
    assert (failure.signal, failure.reason) == (signal, terminated["state"]["terminated"].get("reason", ""))


@pytest.mark.parametrize(
    ("failure", "reported"),
    [
        (Failure(cause=LossCause.EXITED, exit_codes=(3,)), "pod p exited with code 3 on node n"),
        (
            Failure(cause=LossCause.EXITED, exit_codes=(137,), signal=9, reason="Error", message="killed"),
            "pod p exited with code 137 by signal 9 on node n (killed)",
        ),
        (
            Failure(cause=LossCause.EXITED, exit_codes=(128,), reason="StartError", message="no such file"),
            "pod p exited with code 128 on node n (StartError: no such file)",
        ),
        (
            Failure(cause=LossCause.OOM_KILLED, exit_codes=(137,), signal=9, reason="OOMKilled"),
            "pod p was killed for using more memory than its limit on node n",
        ),
        (
            Failure(cause=LossCause.EVICTED, reason="Evicted", message="The node was low on resource: memory."),
            "pod p was evicted on node n (The node was low on resource: memory.)",
        ),
        (Failure(cause=LossCause.NODE_LOST), "pod p was lost with its node n"),
        (Failure(cause=LossCause.REJECTED, reason="OutOfcpu"), "pod p was refused by its node n (OutOfcpu)"),
        (Failure(cause=LossCause.FAILED, reason="Odd"), "pod p failed on node n (Odd)"),
    ],
)
def test_what_is_told_of_a_failure(failure: Failure, reported: str) -> None:
    assert describe(pod="p", failure=failure, node="n") == reported
