"""The interface of job plugins: a plugin changes each pod of a job, and may own objects of the job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from vcbatch.api.resources import Resource
from vcbatch.core.job.plan import Task
from vcbatch.core.machine import FreshKeys, Json


@dataclass(frozen=True, slots=True)
class Child:
    """An object that a plugin keeps for its job. `body` has no owner yet; `owned` are the top-level fields that are
    restored to their desired values; other clients may write all others. `keys` are generated at creation and then
    kept."""

    resource: Resource
    name: str
    body: Json
    owned: tuple[str, ...] = ()
    keys: FreshKeys | None = None


class JobPlugin(Protocol):
    """One plugin with its arguments, created for one decision on one job."""

    def children(self) -> Sequence[Child]:
        """The objects that must exist while the job lives, before its pods."""
        ...

    def change_pod(self, pod: Json, *, task: Task, index: int) -> None:
        """Add to a pod that is about to be created, in place."""
        ...


def containers(pod: Json, *, init: bool) -> Iterator[Json]:
    """The pod's containers, after its init containers where `init` includes these."""
    spec = pod["spec"]
    if init:
        yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()


def entries(parent: Json, key: str) -> list[Json]:
    """The list at `key`, created where there is none; the caller may append to it."""
    present: list[Json] | None = parent.get(key)
    if present is None:
        present = parent[key] = []
    return present


def add_env(container: Json, entry: Json) -> None:
    """Append a variable, unless the container has one of this name: the user's value has precedence."""
    env = entries(container, "env")
    if all(other.get("name") != entry["name"] for other in env):
        env.append(entry)


def add_port(container: Json, *, name: str, port: int) -> None:
    """Declare a port, unless it is declared already."""
    ports = entries(container, "ports")
    if all(other.get("containerPort") != port for other in ports):
        ports.append({"name": name, "containerPort": port, "protocol": "TCP"})
