"""The table row of a pod, with its state in one word. Source: kubernetes `pkg/printers/internalversion`, `printPod`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from vcbatch.api.duration import human
from vcbatch.api.pod_summary import summarise
from vcbatch.local.apiserver.registry import Json
from vcbatch.local.apiserver.tables import AGE, NAME, NONE, at, column, dig

_COMPLETED = {
    "type": "Completed",
    "status": "True",
    "reason": "Succeeded",
    "message": "The pod has completed successfully.",
}
_FAILED = {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}


def _ready_cell(pod: Json, _now: datetime) -> str:
    summary = summarise(pod)
    return f"{summary.ready}/{summary.containers}"


def _status_cell(pod: Json, _now: datetime) -> str:
    return summarise(pod).reason


def _restarts_cell(pod: Json, now: datetime) -> str:
    summary = summarise(pod)
    if summary.restarts and summary.last_restart is not None:
        return f"{summary.restarts} ({human(now - summary.last_restart)} ago)"
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
    """The conditions that mark the rows of finished pods."""
    match dig(pod, "status", "phase"):
        case "Succeeded":
            return (_COMPLETED,)
        case "Failed":
            return (_FAILED,)
        case _:
            return ()
