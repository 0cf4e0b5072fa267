"""Why `job logs` has nothing to print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from vcbatch.api.duration import human
from vcbatch.api.pod import TERMINAL_PHASES
from vcbatch.cli.base.fields import dig, objects, text
from vcbatch.sdk.log_sources import LogSource
from vcbatch.sdk.past_logs import PastLogs

Json = Mapping[str, Any]

_SHOWN = 3


def why_nothing(past: PastLogs, pods: Mapping[str, Json], *, waiting: str) -> list[str]:
    """The reasons, one per line. `pods` are the job's pods by their UID, `waiting` is the reason why the job waits, or
    ""."""
    name = past.request.name
    if not past.sources:
        if waiting:
            return [waiting]
        return [f"{name} has no pods: {_not_kept(past)}"]
    started = [source for source in past.sources if source.started]
    reasons = list(_unstarted(past.sources, pods))
    if not started:
        return [*([waiting] if waiting else []), *reasons] or [f"the pods of {name} have not started"]
    there = [source for source in started if source.live is not None or any(not run.removed for run in source.runs)]
    if not there:
        return []  # each removed log was reported
    return [_printed_nothing(past, there, pods), *reasons]


def _not_kept(past: PastLogs) -> str:
    kept = past.kept
    if not kept.supported:
        return "they were deleted, and their logs with them, or not created yet (this server keeps no logs)"
    if not kept.enabled:
        return "logs of deleted pods are not kept here (vcbatch up --log-retention 0)"
    age = human(timedelta(seconds=kept.retention_seconds))
    return f"none has started, or their logs were removed ({age} after their end, or for their size)"


def _printed_nothing(past: PastLogs, sources: Sequence[LogSource], pods: Mapping[str, Json]) -> str:
    request = past.request
    if request.tail == 0:
        return "--tail 0 prints only new lines, with -f"
    where = "its pod" if len(sources) == 1 else f"its {len(sources)} pods"
    if request.since is not None:
        return f"{request.name} has printed nothing since {request.since:%Y-%m-%d %H:%M:%S} UTC"
    running = any(
        source.live is not None and text(pods.get(source.uid, {}), "status", "phase") not in TERMINAL_PHASES
        for source in sources
    )
    return f"{request.name} has printed nothing{' yet' if running else ''} ({where} {_verb(sources, running=running)})"


def _verb(sources: Sequence[LogSource], *, running: bool) -> str:
    if not running:
        return "ended" if len(sources) == 1 else "have ended"
    return "runs" if len(sources) == 1 else "run"


def _unstarted(sources: Sequence[LogSource], pods: Mapping[str, Json]) -> Iterator[str]:
    """The reasons of pods that have not started, equal ones once."""
    found: dict[str, list[str]] = {}
    for source in sources:
        if not source.started and (pod := pods.get(source.uid)) is not None:
            found.setdefault(_reason(pod), []).append(f"{source.task}/{source.index}")
    for reason, places in list(found.items())[:_SHOWN]:
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        has = "have" if more else "has"
        yield f"{places[0]}{more} {has} not started: {reason}"
    if len(found) > _SHOWN:
        yield f"{len(found) - _SHOWN} more reasons: vcbatch job describe NAME"


def _reason(pod: Json) -> str:
    for kind in ("initContainerStatuses", "containerStatuses"):
        for status in objects(pod, "status", kind):
            reason = text(status, "state", "waiting", "reason")
            if reason:
                message = text(status, "state", "waiting", "message")
                return f"{reason}: {message}" if message else reason
    for condition in objects(pod, "status", "conditions"):
        if text(condition, "type") == "PodScheduled" and text(condition, "status") != "True":
            message = text(condition, "message")
            return f"not scheduled: {message}" if message else "not scheduled"
    return text(pod, "status", "reason") or ("Pending" if dig(pod, "spec", "nodeName") else "not scheduled yet")
