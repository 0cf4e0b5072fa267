"""The state of a pod in one word. Source: kubernetes `pkg/printers/internalversion`, `printPod`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from vcbatch.api.loose import Json, listed, part
from vcbatch.api.timestamps import parse_time


@dataclass(slots=True)
class PodSummary:
    """The summary of the container statuses: `reason` is the word that kubectl shows as the pod's status; `ready` of
    its `containers` are ready."""

    reason: str
    ready: int = 0
    containers: int = 0
    restarts: int = 0
    last_restart: datetime | None = None

    def count(self, status: Json) -> None:
        restarts = status.get("restartCount")
        self.restarts += restarts if isinstance(restarts, int) else 0
        ended = _time(part(part(status, "lastState"), "terminated").get("finishedAt"))
        if ended is not None and (self.last_restart is None or self.last_restart < ended):
            self.last_restart = ended


def summarise(pod: Json) -> PodSummary:
    """Summarise a pod as on the wire."""
    spec, status = part(pod, "spec"), part(pod, "status")
    summary = PodSummary(
        reason=str(status.get("reason") or status.get("phase") or ""),
        containers=len(listed(spec, "containers")) + len(_sidecars(spec)),
    )
    if _condition(status, "PodScheduled").get("reason") == "SchedulingGated":
        summary.reason = "SchedulingGated"
    sidecars = PodSummary(reason="")
    initializing = _initializing(spec, status, summary, sidecars)
    initialized = _condition(status, "Initialized").get("status") == "True"
    if not initializing or initialized:
        summary.restarts, summary.last_restart = sidecars.restarts, sidecars.last_restart
        _running(status, summary)
    if part(pod, "metadata").get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            summary.reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            summary.reason = "Terminating"
    return summary


def _sidecars(spec: Json) -> set[str]:
    initial = _items(spec, "initContainers")
    return {str(container.get("name")) for container in initial if container.get("restartPolicy") == "Always"}


def _condition(status: Json, kind: str) -> Json:
    found: Json = {}
    return next((item for item in _items(status, "conditions") if item.get("type") == kind), found)


def _ended(terminated: Json) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _initializing(spec: Json, pod_status: Json, summary: PodSummary, sidecars: PodSummary) -> bool:
    """Add the init containers to the summary; True when the pod waits for one of them."""
    names = _sidecars(spec)
    for index, status in enumerate(_items(pod_status, "initContainerStatuses")):
        state = part(status, "state")
        summary.count(status)
        is_sidecar = str(status.get("name")) in names
        if is_sidecar:
            sidecars.count(status)
        has_ended, ended, waiting = "terminated" in state, part(state, "terminated"), part(state, "waiting")
        if has_ended and not ended.get("exitCode"):
            continue
        if is_sidecar and status.get("started"):
            summary.ready += 1 if status.get("ready") else 0
            continue
        if has_ended:
            summary.reason = f"Init:{_ended(ended)}"
        elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
            summary.reason = f"Init:{waiting['reason']}"
        else:
            summary.reason = f"Init:{index}/{len(listed(spec, 'initContainers'))}"
        return True
    return False


def _running(pod_status: Json, summary: PodSummary) -> None:
    """Add the regular containers to the summary; the first that waits or has ended gives the reason."""
    has_running = False
    for status in reversed(list(_items(pod_status, "containerStatuses"))):
        summary.count(status)
        state = part(status, "state")
        waiting = part(state, "waiting")
        if waiting.get("reason"):
            summary.reason = str(waiting["reason"])
        elif "terminated" in state:
            summary.reason = _ended(part(state, "terminated"))
        elif status.get("ready") and "running" in state:
            has_running = True
            summary.ready += 1
    if summary.reason == "Completed" and has_running:
        summary.reason = "Running" if _condition(pod_status, "Ready").get("status") == "True" else "NotReady"


def _items(obj: Json, key: str) -> Iterable[Json]:
    return (cast(Json, item) for item in listed(obj, key) if isinstance(item, dict))


def _time(text: Any) -> datetime | None:
    try:
        return parse_time(text) if isinstance(text, str) else None
    except ValueError:
        return None
