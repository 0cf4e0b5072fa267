"""Decides which of a pod's containers to start, and when: the rules of Kubernetes, as pure functions.

Sources: Kubernetes `pkg/kubelet/kuberuntime/kuberuntime_manager.go` (computePodActions, doBackOff) and
`pkg/kubelet/container/helpers.go` (ShouldContainerBeRestarted); KEP-5532 for restarting all containers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from vcbatch.api.podspec.restarts import is_sidecar, restarts, restarts_all
from vcbatch.api.reasons import ContainerReason

Json = dict[str, Any]

FIRST_BACKOFF = timedelta(seconds=10)
LONGEST_BACKOFF = timedelta(seconds=300)
BACKOFF_FORGIVEN_AFTER = timedelta(seconds=600)
"""The back-off of a container that has run for so long is reset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One finished run of a container."""

    exit_code: int
    started_at: datetime
    finished_at: datetime
    signal: int | None = None
    reason: str = ContainerReason.COMPLETED
    message: str = ""
    container_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """An active run. `started` is True once its startup probe (if any) has passed."""

    started_at: datetime
    container_id: str = ""
    started: bool = True
    ready: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The container isn't running; has the reason."""

    reason: str = ContainerReason.CONTAINER_CREATING
    message: str = ""


State = Waiting | Running | Ended


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """The state of one container. `crashes` counts the exits in a row that determine the back-off; `renewed` is True
    when all containers restart, so that its last exit doesn't count any more."""

    state: State = field(default_factory=Waiting)
    last: Ended | None = None
    restarts: int = 0
    crashes: int = 0
    renewed: bool = False

    @property
    def latest_end(self) -> Ended | None:
        """The exit of the latest run: the current state, or the last one while the container waits to be restarted."""
        return self.state if isinstance(self.state, Ended) else self.last if isinstance(self.state, Waiting) else None

    @property
    def outcome(self) -> Ended | None:
        """The latest exit, where it still decides whether the container restarts."""
        return None if self.renewed else self.latest_end


FRESH = ContainerState()


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """A container that has to be restarted, but not before `until`."""

    container: str
    delay: timedelta
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The actions to take now: containers to start, sidecars to terminate, containers in back-off, and the earliest
    time at which time alone changes the plan. `finished` is True if no container will ever run again.

    Where all containers restart, `kill` lists those that have to be killed for it, at once and without their hooks;
    once nothing runs, `renew` says to continue from `renewed` states."""

    start: Sequence[str] = ()
    end: Sequence[str] = ()
    backoffs: Sequence[Backoff] = ()
    finished: bool = False
    kill: Sequence[str] = ()
    renew: bool = False

    @property
    def requeue_at(self) -> datetime | None:
        return min((backoff.until for backoff in self.backoffs), default=None)


def plan(spec: Json, containers: Mapping[str, ContainerState], now: datetime) -> Plan:
    """The plan for a pod that has to run. `containers` may lack those that were never started."""
    if all_restart(spec, containers):
        running = tuple(name for name, state in containers.items() if isinstance(state.state, Running))
        return Plan(kill=running, renew=not running)
    for container in spec.get("initContainers") or ():
        name = container["name"]
        state = containers.get(name, FRESH)
        if is_sidecar(container):
            if isinstance(state.state, Running) and not state.state.started:
                return Plan()
            continue
        end = state.outcome
        if end is not None and end.exit_code == 0:
            continue
        if isinstance(state.state, Running):
            return _with_sidecars(spec, containers, now, before=name)
        if end is not None and not restarts(spec, container, end.exit_code):
            return _after_the_last(spec, containers)
        return _merge(_with_sidecars(spec, containers, now, before=name), _start(name, state, now))
    return _plan_main(spec, containers, now)


def _plan_main(spec: Json, containers: Mapping[str, ContainerState], now: datetime) -> Plan:
    result = Plan()
    over = True
    for container in spec.get("containers") or ():
        name = container["name"]
        state = containers.get(name, FRESH)
        if isinstance(state.state, Running):
            over = False
            continue
        end = state.outcome
        if end is None or restarts(spec, container, end.exit_code):
            over = False
            result = _merge(result, _start(name, state, now))
    if over:
        return _after_the_last(spec, containers)
    return _merge(_with_sidecars(spec, containers, now, before=None), result)


def _after_the_last(spec: Json, containers: Mapping[str, ContainerState]) -> Plan:
    """Only sidecars may still run: terminate them in reverse order of their start."""
    running = [
        container["name"]
        for container in spec.get("initContainers") or ()
        if isinstance(containers.get(container["name"], FRESH).state, Running)
    ]
    alive = any(isinstance(state.state, Running) for state in containers.values())
    return Plan(end=tuple(reversed(running)), finished=not alive)


def _with_sidecars(spec: Json, containers: Mapping[str, ContainerState], now: datetime, *, before: str | None) -> Plan:
    result = Plan()
    for container in spec.get("initContainers") or ():
        if container["name"] == before:
            break
        state = containers.get(container["name"], FRESH)
        if is_sidecar(container) and not isinstance(state.state, Running):
            result = _merge(result, _start(container["name"], state, now))
            if not result.start:
                break
    return result


def _start(name: str, state: ContainerState, now: datetime) -> Plan:
    end = state.latest_end
    delay = backoff_delay(state.crashes)
    if end is None or not delay or end.finished_at + delay <= now:
        return Plan(start=(name,))
    return Plan(backoffs=(Backoff(container=name, delay=delay, until=end.finished_at + delay),))


def _merge(left: Plan, right: Plan) -> Plan:
    return Plan(
        start=(*left.start, *right.start), end=left.end or right.end, backoffs=(*left.backoffs, *right.backoffs)
    )


def all_restart(spec: Json, containers: Mapping[str, ContainerState]) -> bool:
    """Whether a container has exited in a way that restarts all containers, and that hasn't been done yet."""
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        end = containers.get(container["name"], FRESH).outcome
        if end is not None and restarts_all(container, end.exit_code):
            return True
    return False


def renewed(containers: Mapping[str, ContainerState]) -> dict[str, ContainerState]:
    """The states from which all containers restart. The current state of each is kept: it becomes its last state."""
    return {name: replace(state, renewed=True) for name, state in containers.items()}


def backoff_delay(crashes: int) -> timedelta:
    """The time between the exit of a container and its restart: none after the first exit, then 10 s, 20 s, … 300 s."""
    if crashes <= 1:
        return timedelta(0)
    return min(FIRST_BACKOFF * 2 ** min(crashes - 2, 10), LONGEST_BACKOFF)


def ended(state: ContainerState, end: Ended) -> ContainerState:
    """The container's state after a run ended."""
    long_run = end.finished_at - end.started_at >= BACKOFF_FORGIVEN_AFTER
    return ContainerState(
        state=end, last=state.last, restarts=state.restarts, crashes=1 if long_run else state.crashes + 1
    )


def started(state: ContainerState, running: Running) -> ContainerState:
    """The container's state after a run started: an earlier exit becomes the last state, and counts as a restart."""
    end = state.latest_end
    return ContainerState(
        state=running,
        last=end or state.last,
        restarts=state.restarts + (1 if end is not None else 0),
        crashes=state.crashes,
    )


def waiting(state: ContainerState, reason: str, message: str = "") -> ContainerState:
    """The container's state while it can't run: an earlier exit becomes the last state."""
    return ContainerState(
        state=Waiting(reason=reason, message=message),
        last=state.latest_end or state.last,
        restarts=state.restarts,
        crashes=state.crashes,
        renewed=state.renewed,
    )
