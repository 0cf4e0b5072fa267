"""A pod's status from the states of its containers, as Kubernetes computes it.

Sources: Kubernetes `pkg/kubelet/kubelet_pods.go` (getPhase, convertToAPIContainerStatuses) and
`pkg/kubelet/status/generate.go` (conditions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from vcbatch.api.messages import shorten
from vcbatch.api.pod import TERMINAL_PHASES, PodPhase
from vcbatch.api.podspec.restarts import is_sidecar, may_restart_all, restarts
from vcbatch.api.reasons import ContainerReason, KubeletConditionReason, PodConditionType
from vcbatch.api.timestamps import format_time, parse_time
from vcbatch.local.kubelet import lifecycle
from vcbatch.local.kubelet.lifecycle import FRESH, ContainerState, Ended, Running, State, Waiting

Json = dict[str, Any]
States = Mapping[str, ContainerState]

MAX_TERMINATION_MESSAGE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The kubelet's own decision about a pod: it ends as Failed with this reason, whatever the states of its
    containers."""

    reason: str
    message: str


def phase(spec: Json, states: States, verdict: Verdict | None = None) -> PodPhase:
    """The pod's phase, from its containers alone unless the kubelet has a `verdict`."""
    if verdict is not None:
        return PodPhase.RUNNING if _anything_running(states) else PodPhase.FAILED
    if lifecycle.all_restart(spec, states) or any(state.renewed for state in states.values()):
        return PodPhase.RUNNING
    early = _init_phase(spec, states)
    if early is not None:
        return early
    mains = [(c, states.get(c["name"], FRESH)) for c in spec.get("containers") or ()]
    if any(isinstance(state.state, Waiting) and state.last is None for _, state in mains):
        return PodPhase.PENDING
    if _anything_running(states) or any(_comes_back(spec, container, state) for container, state in mains):
        return PodPhase.RUNNING
    well = all(state.outcome is not None and state.outcome.exit_code == 0 for _, state in mains)
    return PodPhase.SUCCEEDED if well else PodPhase.FAILED


def _comes_back(spec: Json, container: Json, state: ContainerState) -> bool:
    end = state.outcome
    return end is not None and restarts(spec, container, end.exit_code)


def _init_phase(spec: Json, states: States) -> PodPhase | None:
    """Pending or Failed while an init container has yet to succeed, else None."""
    for container in spec.get("initContainers") or ():
        state = states.get(container["name"], FRESH)
        if is_sidecar(container):
            if not _ever_started(state):
                return PodPhase.PENDING
            continue
        end = state.outcome
        if end is not None and end.exit_code == 0:
            continue
        failed = end is not None and not restarts(spec, container, end.exit_code)
        return PodPhase.FAILED if failed and not _anything_running(states) else PodPhase.PENDING
    return None


def _ever_started(state: ContainerState) -> bool:
    return state.outcome is not None or (isinstance(state.state, Running) and state.state.started)


def _anything_running(states: States) -> bool:
    return any(isinstance(state.state, Running) for state in states.values())


def initialized(spec: Json, states: States) -> bool:
    """Whether the pod's containers may start."""
    return not _uninitialized(spec, states)


def _uninitialized(spec: Json, states: States) -> list[str]:
    names: list[str] = []
    for container in spec.get("initContainers") or ():
        state = states.get(container["name"], FRESH)
        end = state.outcome
        done = _ever_started(state) if is_sidecar(container) else end is not None and end.exit_code == 0
        if not done:
            names.append(container["name"])
    return names


def pod_status(
    *,
    spec: Json,
    states: States,
    previous: Json,
    now: datetime,
    host_ip: str,
    pod_ip: str,
    start_time: datetime,
    verdict: Verdict | None = None,
) -> Json:
    """The part of `status` that the kubelet owns. A condition keeps its transition time while it keeps its status;
    `previous` is the stored status."""
    now_phase = phase(spec, states, verdict)
    status: Json = {
        "phase": str(now_phase),
        "conditions": _conditions(spec, states, now_phase, previous=previous, now=now),
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "startTime": format_time(start_time),
        "containerStatuses": _container_statuses(
            spec.get("containers"), states, initializing=not initialized(spec, states)
        ),
    }
    if pod_ip:
        status |= {"podIP": pod_ip, "podIPs": [{"ip": pod_ip}]}
    if spec.get("initContainers"):
        status["initContainerStatuses"] = _container_statuses(spec["initContainers"], states, init=True)
    if verdict is not None:
        status |= {"reason": verdict.reason, "message": shorten(verdict.message)}
    return status


def _conditions(spec: Json, states: States, now_phase: PodPhase, *, previous: Json, now: datetime) -> Sequence[Json]:
    unready = [c["name"] for c in spec.get("containers") or () if not is_ready(states.get(c["name"], FRESH))]
    unready += [
        c["name"]
        for c in spec.get("initContainers") or ()
        if is_sidecar(c) and not is_ready(states.get(c["name"], FRESH))
    ]
    waiting_for = _uninitialized(spec, states)
    terminal = now_phase in TERMINAL_PHASES
    over = (
        KubeletConditionReason.POD_COMPLETED if now_phase is PodPhase.SUCCEEDED else KubeletConditionReason.POD_FAILED
    )
    not_ready: Json = {}
    if terminal:
        not_ready = {"status": "False", "reason": over}
    elif unready:
        message = f"containers with unready status: [{' '.join(unready)}]"
        not_ready = {"status": "False", "reason": KubeletConditionReason.CONTAINERS_NOT_READY, "message": message}
    init: Json = {"status": "True"}
    if now_phase is PodPhase.SUCCEEDED:
        init["reason"] = KubeletConditionReason.POD_COMPLETED
    elif waiting_for:
        message = f"containers with incomplete status: [{' '.join(waiting_for)}]"
        init = {"status": "False", "reason": KubeletConditionReason.CONTAINERS_NOT_INITIALIZED, "message": message}
    wanted: dict[str, Json] = {
        "PodReadyToStartContainers": {"status": "False" if terminal else "True"},
        "Initialized": init,
        "Ready": _with_gates(not_ready or {"status": "True"}, spec, previous),
        "ContainersReady": not_ready or {"status": "True"},
        "PodScheduled": {"status": "True"},
    }
    if may_restart_all(spec):
        again = lifecycle.all_restart(spec, states) or any(state.renewed for state in states.values())
        wanted[PodConditionType.ALL_CONTAINERS_RESTARTING] = {"status": str(again and not terminal)}
    stored = {c["type"]: c for c in previous.get("conditions") or ()}
    conditions: list[Json] = []
    for kind, fields in wanted.items():
        before = stored.get(kind)
        same = before is not None and before.get("status") == fields["status"]
        moment = before.get("lastTransitionTime") if same and before else None
        fields = {key: str(value) for key, value in fields.items()}
        conditions.append(
            {"type": kind, "lastProbeTime": None, "lastTransitionTime": moment or format_time(now), **fields}
        )
    return conditions


def _with_gates(ready: Json, spec: Json, previous: Json) -> Json:
    """The condition Ready of a pod with readiness gates: true only when each named condition is true."""
    if ready["status"] != "True":
        return ready
    stored = {c["type"]: c.get("status") for c in previous.get("conditions") or ()}
    for gate in spec.get("readinessGates") or ():
        kind = gate.get("conditionType", "")
        if stored.get(kind) != "True":
            message = f'corresponding condition of pod readiness gate "{kind}" does not have status "True".'
            return {"status": "False", "reason": "ReadinessGatesNotReady", "message": message}
    return ready


def is_ready(state: ContainerState) -> bool:
    return isinstance(state.state, Running) and state.state.ready and state.state.started


def _container_statuses(
    containers: Sequence[Json] | None, states: States, *, init: bool = False, initializing: bool = False
) -> list[Json]:
    statuses: list[Json] = []
    for container in containers or ():
        state = states.get(container["name"], FRESH)
        if initializing and state == FRESH:
            state = ContainerState(state=Waiting(reason=ContainerReason.POD_INITIALIZING))
        done = init and isinstance(state.state, Ended) and state.state.exit_code == 0
        statuses.append(_container_status(container, state, ready=is_ready(state) or done))
    return statuses


def _container_status(container: Json, state: ContainerState, *, ready: bool) -> Json:
    now = state.state
    container_id = now.container_id if isinstance(now, (Running, Ended)) else ""
    if not container_id and state.last is not None:
        container_id = state.last.container_id
    status: Json = {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": isinstance(now, Running) and now.started,
        "restartCount": state.restarts,
        "state": _state(now),
        "lastState": _state(state.last) if state.last is not None else {},
    }
    if container_id:
        status["containerID"] = container_id
    return status


def _state(state: State) -> Json:
    if isinstance(state, Running):
        return {"running": {"startedAt": format_time(state.started_at)}}
    if isinstance(state, Waiting):
        return {"waiting": _present({"reason": str(state.reason), "message": shorten(state.message)})}
    terminated: Json = {
        "exitCode": state.exit_code,
        "reason": str(state.reason),
        "startedAt": format_time(state.started_at),
        "finishedAt": format_time(state.finished_at),
    }
    if state.signal is not None:
        terminated["signal"] = state.signal
    if state.message:
        terminated["message"] = shorten(state.message, limit=MAX_TERMINATION_MESSAGE)
    if state.container_id:
        terminated["containerID"] = state.container_id
    return {"terminated": terminated}


def _present(fields: Json) -> Json:
    return {key: value for key, value in fields.items() if value}


def changed(previous: Json, status: Json) -> bool:
    """Whether writing `status` over `previous` would change anything."""
    stored = {c["type"]: _meaning(c) for c in previous.get("conditions") or ()}
    if any(stored.get(c["type"]) != _meaning(c) for c in status["conditions"]):
        return True
    return any(previous.get(key) != value for key, value in status.items() if key not in ("conditions", "startTime"))


def _meaning(condition: Json) -> tuple[Any, ...]:
    return tuple(condition.get(key) or "" for key in ("status", "reason", "message"))


def disrupted(verdict: Verdict, now: datetime) -> Json:
    """The condition of a pod that the kubelet ended because the kubelet stops (KEP-3329)."""
    return {
        "type": PodConditionType.DISRUPTION_TARGET.value,
        "status": "True",
        "reason": str(KubeletConditionReason.TERMINATION_BY_KUBELET),
        "message": verdict.message,
        "lastProbeTime": None,
        "lastTransitionTime": format_time(now),
    }


def closed_states(spec: Json, states: States) -> dict[str, ContainerState]:
    """The states of a pod that has ended: a container that waits to be restarted will not run any more, and has its
    last exit."""
    closed = dict(states)
    for container in spec.get("containers") or ():
        state = states.get(container["name"], FRESH)
        if isinstance(state.state, Waiting) and state.last is not None:
            closed[container["name"]] = replace(state, state=state.last)
    return closed


def lost_states(pod: Json, now: datetime) -> dict[str, ContainerState]:
    """The states of containers that the API server reports as run and for which this node has no record: they ended in
    an unknown way."""
    status = pod.get("status") or {}
    reported = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    return {
        entry["name"]: ContainerState(state=_lost(entry["state"], now), restarts=entry.get("restartCount", 0))
        for entry in reported
        if {"terminated", "running"} & (entry.get("state") or {}).keys()
    }


def _lost(state: Json, now: datetime) -> Ended:
    known = state.get("terminated")
    began = (known or state.get("running") or {}).get("startedAt")
    return Ended(
        exit_code=known["exitCode"] if known else 137,
        started_at=parse_time(began) if began else now,
        finished_at=now,
        reason=known.get("reason", "") if known else ContainerReason.STATUS_UNKNOWN,
        message="" if known else "The container could not be located when the kubelet started",
    )
