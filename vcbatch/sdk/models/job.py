"""Jobs and their tasks, as users write and read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from vcbatch.api.loose import part
from vcbatch.api.phases import JobPhase
from vcbatch.api.resources import JOBS
from vcbatch.sdk.models.codecs import COUNT, ENV, LABELS, TEXT, TEXTS, many, map_of, one
from vcbatch.sdk.models.parts import DependsOn, NetworkTopology, Partitions, Policy, Resources, Volume
from vcbatch.sdk.models.status import JobStatus, time_at
from vcbatch.sdk.models.wire import Wire, at

_SPEC = ("template", "spec")
_MAIN = (*_SPEC, "containers", 0)

SET_BY_THE_SERVER = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
)
"""Fields of an object's metadata that a new object must not have."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Task(Wire):
    """`replicas` pods of one kind. Image, command and similar fields are those of the pod's first container.

    A pod of a new task isn't restarted in place (`restart`): the job's `policies` decide on its exit code. Fields that
    the model lacks belong into `extra`, in the form of the manifest: `{"template": {"spec": {"hostNetwork": True}}}`.
    """

    name: str = field(default="", metadata=at("name", codec=TEXT, absent=""))
    replicas: int = field(default=1, metadata=at("replicas", codec=COUNT, absent=0))
    min_available: int | None = field(default=None, metadata=at("minAvailable", codec=COUNT))
    container: str | None = field(default="main", metadata=at(*_MAIN, "name", codec=TEXT))
    image: str | None = field(default=None, metadata=at(*_MAIN, "image", codec=TEXT))
    command: Sequence[str] = field(default=(), metadata=at(*_MAIN, "command", codec=TEXTS, absent=()))
    args: Sequence[str] = field(default=(), metadata=at(*_MAIN, "args", codec=TEXTS, absent=()))
    env: Mapping[str, str | Mapping[str, Any]] = field(
        default_factory=dict[str, "str | Mapping[str, Any]"], metadata=at(*_MAIN, "env", codec=ENV, absent={})
    )
    """Values of environment variables, or their sources (`valueFrom`)."""
    resources: Resources | None = field(default=None, metadata=at(*_MAIN, "resources", codec=one(Resources)))
    working_dir: str | None = field(default=None, metadata=at(*_MAIN, "workingDir", codec=TEXT))
    restart: str | None = field(default="Never", metadata=at(*_SPEC, "restartPolicy", codec=TEXT))
    node_selector: Mapping[str, str] = field(
        default_factory=dict[str, str], metadata=at(*_SPEC, "nodeSelector", codec=LABELS, absent={})
    )
    labels: Mapping[str, str] = field(
        default_factory=dict[str, str], metadata=at("template", "metadata", "labels", codec=LABELS, absent={})
    )
    annotations: Mapping[str, str] = field(
        default_factory=dict[str, str], metadata=at("template", "metadata", "annotations", codec=LABELS, absent={})
    )
    policies: Sequence[Policy] = field(default=(), metadata=at("policies", codec=many(Policy), absent=()))
    max_retry: int | None = field(default=None, metadata=at("maxRetry", codec=COUNT))
    depends_on: DependsOn | None = field(default=None, metadata=at("dependsOn", codec=one(DependsOn)))
    partitions: Partitions | None = field(default=None, metadata=at("partitionPolicy", codec=one(Partitions)))
    topology_policy: str | None = field(default=None, metadata=at("topologyPolicy", codec=TEXT))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Job(Wire):
    """A gang of pods, run to completion: at least `min_available` pods of its tasks start together, or none does.

    Without a `name`, the server generates one from `generate_name`. `plugins` are arguments by plugin, as returned by
    `vcbatch.pytorch()` and the similar functions.
    """

    api_version: str = field(default=JOBS.api_version, repr=False, metadata=at("apiVersion", codec=TEXT, absent=""))
    kind: str = field(default=JOBS.kind, repr=False, metadata=at("kind", codec=TEXT, absent=""))
    name: str = field(default="", metadata=at("metadata", "name", codec=TEXT, absent=""))
    generate_name: str | None = field(default=None, metadata=at("metadata", "generateName", codec=TEXT))
    namespace: str | None = field(default=None, metadata=at("metadata", "namespace", codec=TEXT))
    labels: Mapping[str, str] = field(
        default_factory=dict[str, str], metadata=at("metadata", "labels", codec=LABELS, absent={})
    )
    annotations: Mapping[str, str] = field(
        default_factory=dict[str, str], metadata=at("metadata", "annotations", codec=LABELS, absent={})
    )
    queue: str | None = field(default=None, metadata=at("spec", "queue", codec=TEXT))
    tasks: Sequence[Task] = field(default=(), metadata=at("spec", "tasks", codec=many(Task), absent=()))
    min_available: int | None = field(default=None, metadata=at("spec", "minAvailable", codec=COUNT))
    min_success: int | None = field(default=None, metadata=at("spec", "minSuccess", codec=COUNT))
    policies: Sequence[Policy] = field(default=(), metadata=at("spec", "policies", codec=many(Policy), absent=()))
    plugins: Mapping[str, Sequence[str]] = field(
        default_factory=dict[str, Sequence[str]], metadata=at("spec", "plugins", codec=map_of(TEXTS), absent={})
    )
    volumes: Sequence[Volume] = field(default=(), metadata=at("spec", "volumes", codec=many(Volume), absent=()))
    max_retry: int | None = field(default=None, metadata=at("spec", "maxRetry", codec=COUNT))
    priority_class: str | None = field(default=None, metadata=at("spec", "priorityClassName", codec=TEXT))
    ttl_seconds: int | None = field(default=None, metadata=at("spec", "ttlSecondsAfterFinished", codec=COUNT))
    """Seconds after its end until the job is deleted; None: never."""
    scheduler: str | None = field(default=None, metadata=at("spec", "schedulerName", codec=TEXT))
    network_topology: NetworkTopology | None = field(
        default=None, metadata=at("spec", "networkTopology", codec=one(NetworkTopology))
    )

    def _shown(self) -> list[str]:
        return [*Wire._shown(self), *([f"phase={self.phase.value!r}"] if "status" in self.extra else ())]

    # Set by the server

    @property
    def uid(self) -> str:
        """The UID, which distinguishes it from other jobs of the same name; empty for a job that isn't on a server."""
        uid = part(self.extra, "metadata").get("uid")
        return uid if isinstance(uid, str) else ""

    @property
    def created(self) -> datetime | None:
        """The time of creation; None for a job that isn't on a server."""
        return time_at(part(self.extra, "metadata"), "creationTimestamp")

    @property
    def status(self) -> JobStatus:
        """The status that the server stored; empty for a job that isn't on a server."""
        return JobStatus.read(part(self.extra, "status"))

    @property
    def phase(self) -> JobPhase:
        """The phase; Pending where it is empty or unknown."""
        return self.status.phase

    @property
    def total_replicas(self) -> int:
        """The sum of the tasks' replicas."""
        return sum(task.replicas for task in self.tasks)

    def task(self, name: str) -> Task | None:
        """Return the task of this name; None where there is none."""
        return next((task for task in self.tasks if task.name == name), None)

    def as_new(self) -> Self:
        """Return a copy without the fields that a server set, which can be submitted again."""
        extra = {key: value for key, value in self.extra.items() if key != "status"}
        if isinstance(extra.get("metadata"), dict):
            extra["metadata"] = {key: value for key, value in extra["metadata"].items() if key not in SET_BY_THE_SERVER}
        return self.replace(extra=extra)
