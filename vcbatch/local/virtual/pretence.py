"""The simulated behaviour of a pod on a virtual node: from its annotations, else from its commands.

The annotations, all below `test.vcbatch.io/`. Those of a container apply to every container of `spec.containers`, or
with `.NAME` to the one container of that name (init containers only so).

    run-seconds        duration of a run, or `inf`
    exit-code          exit code: 0 to 255; `1,1,0` has one per run, the last for all later runs
    end-reason         reason of a failure, e.g. `OOMKilled` (which makes the exit code 137)
    start-seconds      time to pull its image and to start it first
    stop-seconds       time that the pod takes to end when it is deleted, or `inf`: its whole grace period
    stop-exit-code     exit code of its containers then (143; 137 where the grace period ran out)
    evict-seconds      time until the kubelet evicts the pod

An image of a registry below `.invalid` can't be pulled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vcbatch.api.names import PRETENCE_PREFIX
from vcbatch.api.podspec.restarts import is_sidecar
from vcbatch.api.reasons import ContainerReason
from vcbatch.local.virtual import commands

Json = dict[str, Any]

_NUMBER = r"[0-9]{1,9}(\.[0-9]{1,3})?"
_CODE = r"(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ENDLESS = "inf"
_RUN, _CODES, _REASON, _START = "run-seconds", "exit-code", "end-reason", "start-seconds"
_STOP, _STOP_CODE, _EVICT = "stop-seconds", "stop-exit-code", "evict-seconds"
_REQUESTS: Mapping[str, tuple[re.Pattern[str], str]] = {
    _RUN: (re.compile(rf"{_NUMBER}|inf"), "seconds, or inf"),
    _START: (re.compile(_NUMBER), "seconds"),
    _STOP: (re.compile(rf"{_NUMBER}|inf"), "seconds, or inf"),
    _EVICT: (re.compile(_NUMBER), "seconds"),
    _CODES: (re.compile(rf"{_CODE}(,{_CODE})*"), "exit codes from 0 to 255, joined by commas"),
    _STOP_CODE: (re.compile(_CODE), "an exit code from 0 to 255"),
    _REASON: (re.compile(r"[A-Za-z]{1,64}"), "a reason of up to 64 letters"),
}
_OF_CONTAINERS = frozenset({_RUN, _CODES, _REASON, _START})
_NO_REGISTRY = re.compile(r"[^/]+\.invalid(:[0-9]+)?/.*", re.DOTALL)
_KILLED, _TERMINATED = 137, 143


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretence:
    """One simulated run of a container. `seconds` is None if it runs until the pod is deleted."""

    seconds: float | None
    exit_code: int = 0
    reason: str = ContainerReason.COMPLETED


class PodPretence:
    """The simulated behaviour of one pod. It doesn't change with time."""

    def __init__(self, pod: Json) -> None:
        annotations: Mapping[str, str] = pod["metadata"].get("annotations") or {}
        self._requests = {
            key.removeprefix(PRETENCE_PREFIX): value
            for key, value in sorted(annotations.items())
            if key.startswith(PRETENCE_PREFIX)
        }
        spec: Json = pod["spec"]
        self._init = {container["name"] for container in spec.get("initContainers") or ()}
        self._mains: list[Json] = list(spec.get("containers") or ())

    def misunderstood(self) -> str:
        """Which annotation is invalid, and its allowed values; empty where all are valid."""
        for key, value in self._requests.items():
            request, _, container = key.partition(".")
            allowed = _REQUESTS.get(request)
            if allowed is None or (container and request not in _OF_CONTAINERS):
                return f"annotation {PRETENCE_PREFIX}{key} is none that a virtual node knows: {', '.join(_REQUESTS)}"
            if not allowed[0].fullmatch(value):
                return f"annotation {PRETENCE_PREFIX}{key}: {value[:64]!r}: must be {allowed[1]}"
        return ""

    def run(self, container: Json, *, restarts: int) -> Pretence:
        """The next run of a container with so many restarts."""
        reading = commands.read(container)
        seconds, code = reading.seconds, reading.exit_code
        runs, codes, reason = (self._of(container, request) for request in (_RUN, _CODES, _REASON))
        ends_anyway = codes or (container["name"] in self._init and not is_sidecar(container))
        if not reading.known and ends_anyway:
            seconds = 0.0
        if runs:
            seconds = None if runs == _ENDLESS else float(runs)
        if codes:
            choice = codes.split(",")
            code = int(choice[min(restarts, len(choice) - 1)])
        elif reason == ContainerReason.OOM_KILLED:
            code = _KILLED
        failure = reason or str(ContainerReason.ERROR)
        return Pretence(seconds=seconds, exit_code=code, reason=failure if code else ContainerReason.COMPLETED)

    def start_seconds(self, container: Json) -> float:
        """Seconds until the container is created."""
        return float(self._of(container, _START) or 0)

    def pulls(self, container: Json) -> bool:
        """Whether the container's image can be pulled."""
        return not _NO_REGISTRY.fullmatch(container.get("image") or "")

    def stop(self, *, grace_seconds: float) -> tuple[float, bool]:
        """Seconds that a deleted pod takes to end, and whether it is killed then."""
        wanted = self._requests.get(_STOP, "0")
        deaf = wanted == _ENDLESS or any(commands.ignores_sigterm(container) for container in self._mains)
        if deaf or float(wanted) >= grace_seconds:
            return grace_seconds, True
        return float(wanted), False

    def stopped(self, container: Json, *, grace_seconds: float) -> int:
        """The exit code of a container of a deleted pod."""
        wanted = self._requests.get(_STOP, "0")
        if wanted == _ENDLESS or commands.ignores_sigterm(container) or float(wanted) >= grace_seconds:
            return _KILLED
        return int(self._requests.get(_STOP_CODE, _TERMINATED))

    @property
    def evicted_after(self) -> float | None:
        """Seconds from the pod's start until its eviction; None without one."""
        wanted = self._requests.get(_EVICT)
        return float(wanted) if wanted else None

    def _of(self, container: Json, request: str) -> str:
        name = container["name"]
        own = self._requests.get(f"{request}.{name}", "")
        return own or ("" if name in self._init else self._requests.get(request, ""))
