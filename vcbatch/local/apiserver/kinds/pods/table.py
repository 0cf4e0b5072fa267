"""A pod's row: what state it is in, in one word. Source: kubernetes `pkg/printers/internalversion`, `printPod`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vcbatch.local.apiserver.registry import Json
from vcbatch.local.apiserver.tables import AGE, NAME, NONE, at, column, dig, human_duration, parse_time

_COMPLETED = {
    "type": "Completed",
    "status": "True",
    "reason": "Succeeded",
    "message": "The pod has completed successfully.",
}
_FAILED = {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}


@dataclass(slots=True)
class _Summary:
    """What the statuses of the containers add up to."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: datetime | None = None

    def count(self, status: Json) -> None:
        self.restarts += status.get("restartCount") or 0
        ended = parse_time(dig(status, "lastState", "terminated", "finishedAt"))
        if ended is not None and (self.last_restart is None or self.last_restart < ended):
            self.last_restart = ended


def _sidecars(pod: Json) -> set[Any]:
    initial = dig(pod, "spec", "initContainers") or ()
    return {container.get("name") for container in initial if container.get("restartPolicy") == "Always"}


def _condition(pod: Json, kind: str) -> Json | None:
    return next((item for item in dig(pod, "status", "conditions") or () if item.get("type") == kind), None)


def _ended(terminated: Json) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _initializing(pod: Json, summary: _Summary, sidecars: _Summary) -> bool:
    """Adds up the init containers; True when one of them is what the pod waits for."""
    statuses = dig(pod, "status", "initContainerStatuses") or []
    names = _sidecars(pod)
    for index, status in enumerate(statuses):
        state = status.get("state") or {}
        summary.count(status)
        is_sidecar = status.get("name") in names
        if is_sidecar:
            sidecars.count(status)
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and not ended.get("exitCode"):
            continue
        if is_sidecar and status.get("started"):
            summary.ready += 1 if status.get("ready") else 0
            continue
        if ended is not None:
            summary.reason = f"Init:{_ended(ended)}"
        elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
            summary.reason = f"Init:{waiting['reason']}"
        else:
            summary.reason = f"Init:{index}/{len(dig(pod, 'spec', 'initContainers') or ())}"
        return True
    return False


def _running(pod: Json, summary: _Summary) -> None:
    """Adds up the regular containers; the first that waits or ended names the state."""
    has_running = False
    for status in reversed(dig(pod, "status", "containerStatuses") or []):
        summary.count(status)
        state = status.get("state") or {}
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting is not None and waiting.get("reason"):
            summary.reason = str(waiting["reason"])
        elif ended is not None:
            summary.reason = _ended(ended)
        elif status.get("ready") and state.get("running") is not None:
            has_running = True
            summary.ready += 1
    if summary.reason == "Completed" and has_running:
        ready = _condition(pod, "Ready") or {}
        summary.reason = "Running" if ready.get("status") == "True" else "NotReady"


def _summarise(pod: Json) -> _Summary:
    status = pod.get("status") or {}
    summary = _Summary(reason=status.get("reason") or status.get("phase") or "")
    scheduled = _condition(pod, "PodScheduled") or {}
    if scheduled.get("reason") == "SchedulingGated":
        summary.reason = "SchedulingGated"
    sidecars = _Summary(reason="")
    initializing = _initializing(pod, summary, sidecars)
    initialized = (_condition(pod, "Initialized") or {}).get("status") == "True"
    if not initializing or initialized:
        summary.restarts, summary.last_restart = sidecars.restarts, sidecars.last_restart
        _running(pod, summary)
    if dig(pod, "metadata", "deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            summary.reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            summary.reason = "Terminating"
    return summary


def _ready_cell(pod: Json, _now: datetime) -> str:
    total = len(dig(pod, "spec", "containers") or ()) + len(_sidecars(pod))
    return f"{_summarise(pod).ready}/{total}"


def _status_cell(pod: Json, _now: datetime) -> str:
    return _summarise(pod).reason


def _restarts_cell(pod: Json, now: datetime) -> str:
    summary = _summarise(pod)
    if summary.restarts and summary.last_restart is not None:
        return f"{summary.restarts} ({human_duration(now - summary.last_restart)} ago)"
    return str(summary.restarts)


def _ip_cell(pod: Json, _now: datetime) -> str:
    addresses = dig(pod, "status", "podIPs") or []
    return (addresses[0].get("ip") if addresses else dig(pod, "status", "podIP")) or NONE


def _gates_cell(pod: Json, _now: datetime) -> str:
    gates = dig(pod, "spec", "readinessGates") or []
    if not gates:
        return NONE
    true = {item.get("type") for item in dig(pod, "status", "conditions") or () if item.get("status") == "True"}
    return f"{sum(1 for gate in gates if gate.get('conditionType') in true)}/{len(gates)}"


COLUMNS = (
    NAME,
    column("Ready", _ready_cell),
    column("Status", _status_cell),
    column("Restarts", _restarts_cell),
    AGE,
    column("IP", _ip_cell, wide=True),
    column("Node", at("spec", "nodeName", default=NONE), wide=True),
    column("Nominated Node", at("status", "nominatedNodeName", default=NONE), wide=True),
    column("Readiness Gates", _gates_cell, wide=True),
)


def row_conditions(pod: Json) -> Sequence[Json]:
    """Marks the rows of finished pods."""
    match dig(pod, "status", "phase"):
        case "Succeeded":
            return (_COMPLETED,)
        case "Failed":
            return (_FAILED,)
        case _:
            return ()
