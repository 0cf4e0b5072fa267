"""The words that stand for a pod's state."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from vcbatch.local.apiserver.kinds.pods.table import COLUMNS, row_conditions

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def status(name: str = "c", **more: Any) -> dict[str, Any]:
    return {"name": name, "restartCount": 0, "ready": False, **more}


def running(name: str = "c", *, ready: bool = True, **more: Any) -> dict[str, Any]:
    return status(name, ready=ready, started=True, state={"running": {}}, **more)


def waiting(reason: str, **more: Any) -> dict[str, Any]:
    return status(state={"waiting": {"reason": reason}}, **more)


def ended(*, code: int = 0, reason: str = "", signal: int = 0, name: str = "c", **more: Any) -> dict[str, Any]:
    return status(name, state={"terminated": {"exitCode": code, "reason": reason, "signal": signal}}, **more)


def cells(
    *statuses: dict[str, Any],
    init: list[dict[str, Any]] | None = None,
    metadata: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    **pod_status: Any,
) -> dict[str, Any]:
    pod_status.setdefault("phase", "Running")
    names = [one["name"] for one in statuses] or ["c"]
    initial = [{"name": one["name"]} for one in init or []]
    pod = {
        "metadata": {"name": "p", "creationTimestamp": "2026-01-01T11:00:00Z", **(metadata or {})},
        "spec": {"containers": [{"name": name} for name in names], "initContainers": initial, **(spec or {})},
        "status": {"containerStatuses": list(statuses), "initContainerStatuses": init or [], **pod_status},
    }
    return {column.name: column.cell(pod, NOW) for column in COLUMNS}


@pytest.mark.parametrize(
    ("shown", "ready", "word"),
    [
        (cells(phase="Pending"), "0/1", "Pending"),
        (cells(waiting("ContainerCreating"), phase="Pending"), "0/1", "ContainerCreating"),
        (cells(running()), "1/1", "Running"),
        (cells(running(), running("d", ready=False)), "1/2", "Running"),
        (cells(ended(reason="Completed"), phase="Succeeded"), "0/1", "Completed"),
        (cells(ended(code=1, reason="Error"), phase="Failed"), "0/1", "Error"),
        (cells(ended(code=3), phase="Failed"), "0/1", "ExitCode:3"),
        (cells(ended(code=137, signal=9), phase="Failed"), "0/1", "Signal:9"),
        (cells(waiting("CrashLoopBackOff")), "0/1", "CrashLoopBackOff"),
        (cells(phase="Failed", reason="Evicted"), "0/1", "Evicted"),
        (cells(ended(reason="Completed"), running("d")), "1/2", "NotReady"),
        (
            cells(ended(reason="Completed"), running("d"), conditions=[{"type": "Ready", "status": "True"}]),
            "1/2",
            "Running",
        ),
        (cells(running(), metadata={"deletionTimestamp": "x"}), "1/1", "Terminating"),
        (cells(phase="Succeeded", metadata={"deletionTimestamp": "x"}), "0/1", "Succeeded"),
        (cells(running(), reason="NodeLost", metadata={"deletionTimestamp": "x"}), "1/1", "Unknown"),
        (
            cells(phase="Pending", conditions=[{"type": "PodScheduled", "reason": "SchedulingGated"}]),
            "0/1",
            "SchedulingGated",
        ),
        (cells(init=[running("i", ready=False)], phase="Pending"), "0/1", "Init:0/1"),
        (cells(init=[ended(name="i"), status("j", state={"waiting": {}})], phase="Pending"), "0/1", "Init:1/2"),
        (cells(init=[ended(code=1, reason="Error", name="i")], phase="Pending"), "0/1", "Init:Error"),
        (cells(init=[ended(code=2, name="i")], phase="Pending"), "0/1", "Init:ExitCode:2"),
        (cells(init=[waiting("CrashLoopBackOff")], phase="Pending"), "0/1", "Init:CrashLoopBackOff"),
        (
            cells(running(), init=[running("i")], spec={"initContainers": [{"name": "i", "restartPolicy": "Always"}]}),
            "2/2",
            "Running",
        ),
    ],
)
def test_one_word_for_the_state(shown: dict[str, Any], ready: str, word: str) -> None:
    assert (shown["Ready"], shown["Status"]) == (ready, word)


def test_restarts_tell_when_the_last_one_was() -> None:
    before = {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T11:55:30Z"}}
    assert cells(running(restartCount=3, lastState=before))["Restarts"] == "3 (4m30s ago)"
    assert cells(running(restartCount=3))["Restarts"] == "3"


def test_wide_columns() -> None:
    shown = cells(
        running(),
        podIPs=[{"ip": "127.0.0.2"}],
        conditions=[{"type": "a", "status": "True"}],
        spec={"nodeName": "n", "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]},
    )
    assert [shown[name] for name in ("IP", "Node", "Nominated Node", "Readiness Gates")] == [
        "127.0.0.2",
        "n",
        "<none>",
        "1/2",
    ]


@pytest.mark.parametrize(("phase", "reason"), [("Succeeded", "Succeeded"), ("Failed", "Failed"), ("Running", None)])
def test_rows_of_finished_pods_are_marked(phase: str, reason: str | None) -> None:
    assert [one["reason"] for one in row_conditions({"status": {"phase": phase}})] == ([reason] if reason else [])
