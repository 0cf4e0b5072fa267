"""Pods, reduced to the fields that reading their logs needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from vcbatch.api import names
from vcbatch.api.meta import ObjectMeta, Wire
from vcbatch.api.pod import PodPhase


class _State(Wire):
    """The key that is present is the state."""

    running: dict[str, Any] | None = None
    terminated: dict[str, Any] | None = None


class _ContainerStatus(Wire):
    name: str = ""
    restart_count: int = 0
    state: _State = msgspec.field(default_factory=_State)
    last_state: _State = msgspec.field(default_factory=_State)


class _Container(Wire):
    name: str = ""


class _PodSpec(Wire):
    containers: list[_Container] = msgspec.field(default_factory=list[_Container])
    init_containers: list[_Container] | None = None


class _PodStatus(Wire):
    phase: str = ""
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None


class PodView(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)

    @property
    def task(self) -> str:
        return (self.metadata.labels or {}).get(names.TASK_SPEC, "")

    @property
    def index(self) -> int:
        text = (self.metadata.labels or {}).get(names.TASK_INDEX, "")
        return int(text) if text.isdecimal() else 0

    @property
    def attempt(self) -> int:
        """The number of restarts of the job before this pod was created."""
        text = (self.metadata.annotations or {}).get(names.JOB_RETRY_COUNT, "")
        return int(text) if text.isdecimal() else 0

    @property
    def version(self) -> int:
        """The job's `status.version` when the pod was created."""
        text = (self.metadata.annotations or {}).get(names.JOB_VERSION, "")
        return int(text) if text.isdecimal() else 0

    @property
    def started(self) -> bool:
        """Whether one of its containers has a log."""
        return any(self.run_of(container).begun for container in self.all_containers())

    @property
    def ended(self) -> bool:
        return self.status.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)

    def containers(self) -> list[str]:
        """The names of its regular containers."""
        return [container.name for container in self.spec.containers]

    def all_containers(self) -> list[str]:
        """The names of its init containers and then of its regular ones."""
        return [container.name for container in self.spec.init_containers or ()] + self.containers()

    def run_of(self, container: str) -> Run:
        statuses = (*(self.status.container_statuses or ()), *(self.status.init_container_statuses or ()))
        for status in statuses:
            if status.name == container:
                ended = status.state.terminated is not None
                begun = ended or status.state.running is not None or status.last_state.terminated is not None
                return Run(number=status.restart_count, begun=begun, ended=begun and status.state.running is None)
        return Run(number=0, begun=False, ended=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The latest run of a container: its number, whether it has a log, and whether that log is complete."""

    number: int
    begun: bool
    ended: bool
