"""The Job (`batch.volcano.sh/v1alpha1`): a gang of pods in one or more tasks, run to completion."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field

from vcbatch.api.model import Json, Model, NetworkTopology, Object
from vcbatch.api.phases import Action as Action
from vcbatch.api.phases import Event as Event
from vcbatch.api.phases import JobPhase


class LifecyclePolicy(Model):
    """On one of these events (or this exit code), execute `action`, after `timeout` (a Go duration)."""

    action: str = ""
    event: str = ""
    events: list[str] = Field(default_factory=list[str])
    exit_code: int | None = None
    timeout: str | None = None

    @property
    def all_events(self) -> tuple[str, ...]:
        """`events` and `event` together."""
        return (*self.events, self.event) if self.event else tuple(self.events)


class DependsOn(Model):
    """The tasks that have to be ready (or done) before this one starts; `iteration` is `any` for one of them, else
    all."""

    name: list[str] = Field(default_factory=list[str])
    iteration: str = ""


class PartitionPolicy(Model):
    """Groups of `partition_size` pods that are placed and restarted together."""

    total_partitions: int = 0
    partition_size: int = 0
    min_partitions: int = 0
    network_topology: NetworkTopology | None = None


class VolumeSpec(Model):
    """A claim, existing or created by the controller, that every container mounts."""

    mount_path: str = ""
    volume_claim_name: str = ""
    volume_claim: Json | None = None


class TaskSpec(Model):
    """`replicas` pods of one template."""

    name: str = ""
    replicas: int = 0
    min_available: int | None = None
    template: Json = Field(default_factory=dict[str, Any])
    policies: list[LifecyclePolicy] = Field(default_factory=list[LifecyclePolicy])
    topology_policy: str = ""
    max_retry: int = 0
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None

    @property
    def pod_metadata(self) -> Json:
        """`template.metadata`, never None."""
        return _object(self.template.get("metadata"))

    @property
    def pod_spec(self) -> Json:
        """`template.spec`, never None."""
        return _object(self.template.get("spec"))

    @property
    def min_pods(self) -> int:
        """The task's own gang minimum: where none is set, its minimum of partitions, else all replicas."""
        if self.min_available is not None:
            return self.min_available
        policy = self.partition_policy
        least = policy.min_partitions * policy.partition_size if policy is not None else 0
        return least if least > 0 else self.replicas


def _object(value: Any) -> Json:
    return cast(Json, value) if isinstance(value, dict) else {}


def _no_arguments(value: Any) -> Any:
    return [] if value is None else value


Arguments = Annotated[list[str], BeforeValidator(_no_arguments)]
"""Plugin arguments; a plugin written without arguments (`env:`) has an empty list."""


class JobSpec(Model):
    scheduler_name: str = ""
    min_available: int = 0
    volumes: list[VolumeSpec] = Field(default_factory=list[VolumeSpec])
    tasks: list[TaskSpec] = Field(default_factory=list[TaskSpec])
    policies: list[LifecyclePolicy] = Field(default_factory=list[LifecyclePolicy])
    plugins: dict[str, Arguments] = Field(default_factory=dict[str, Arguments])
    running_estimate: str | None = None
    queue: str = ""
    max_retry: int = 0
    ttl_seconds_after_finished: int | None = None
    priority_class_name: str = ""
    min_success: int | None = None
    network_topology: NetworkTopology | None = None

    @property
    def total_replicas(self) -> int:
        return sum(task.replicas for task in self.tasks)

    def task(self, name: str) -> TaskSpec | None:
        """The task of this name; None where there is none."""
        return next((task for task in self.tasks if task.name == name), None)


class JobState(Model):
    phase: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class JobCondition(Model):
    """One entry of the log of phases: `status` is a phase."""

    status: str = ""
    last_transition_time: str | None = None


class TaskState(Model):
    """Pods of one task by pod phase. Clients read the map's first entry, so a task without pods has no TaskState."""

    phase: dict[str, int] = Field(default_factory=dict[str, int])


class TaskLedger(Model):
    """The results of a task's pods in this attempt. Each field is a set of indices, written as ranges: `0-3,7`."""

    seen: str = ""
    """Pods that existed at the last reconciliation: one that is missing at the next was lost in between."""
    succeeded: str = ""
    failed: str = ""
    """Pods that failed on their own, which counts even when the pod is deleted."""
    evicted: str = ""
    """Pods that failed because of the infrastructure: when the pod is deleted the index may run again."""
    carried: str = ""
    """Indices that succeeded before the job was suspended, and aren't run again when it is resumed."""


class RestartTarget(Model):
    """A part of the job that is being restarted: a task, or some indices of it (`3`, `4-7`). Pods created before
    `retry_count` are to be deleted."""

    task: str = ""
    indices: str = ""
    retry_count: int = 0


class DelayedPolicy(Model):
    """An event whose policy has a timeout that is still running."""

    event: str = ""
    task: str = ""
    index: int | None = None
    since: str | None = None


class SeenDependency(Model):
    """What the controller has seen of a job that this one depends on. `outcome` is the phase in which that job ended,
    or `Deleted` where it was deleted before its end was seen; empty while it hasn't ended."""

    name: str = ""
    uid: str = ""
    outcome: str = ""


class PodLoss(Model):
    """The record of one lost or failed pod, which outlives the pod."""

    pod: str = ""
    uid: str = ""
    cause: str = ""
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    node: str = ""
    message: str = ""
    version: int = 0
    time: str | None = None


class Ledger(Model):
    """The state that the job controller keeps between two reconciliations. It is written before it is acted on, so that
    a controller that was down, or crashed between two writes, neither misses a failure nor handles one twice. Volcano
    has no such field."""

    tasks: dict[str, TaskLedger] = Field(default_factory=dict[str, TaskLedger])
    restarting_job: bool = False
    """Whether all pods are being replaced, not just those of `restarting`."""
    restarting: list[RestartTarget] = Field(default_factory=list[RestartTarget])
    resumes: int = 0
    """The number of resumes in `retryCount`, which use no retry."""
    infrastructure_retries: int = 0
    """The number of restarts in `retryCount` that the infrastructure caused: they have a budget of their own."""
    not_before: str | None = None
    """No pods are created before this time: the backoff after losses by the infrastructure."""
    released: bool = False
    """Whether its dependencies and begin time were met once: they aren't checked again."""
    dependencies: list[SeenDependency] = Field(default_factory=list[SeenDependency])
    ran_seconds: int = 0
    """How long the job was Running before its present phase, summed over all attempts."""
    delayed: list[DelayedPolicy] = Field(default_factory=list[DelayedPolicy])
    commands: list[str] = Field(default_factory=list[str])
    """UIDs of the Commands that were executed last: each is executed at most once."""
    losses: list[PodLoss] = Field(default_factory=list[PodLoss])


class JobStatus(Model):
    state: JobState = Field(default_factory=JobState)
    min_available: int = 0
    task_status_count: dict[str, TaskState] = Field(default_factory=dict[str, TaskState])
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    version: int = 0
    retry_count: int = 0
    running_duration: str | None = None
    controlled_resources: dict[str, str] = Field(default_factory=dict[str, str])
    conditions: list[JobCondition] = Field(default_factory=list[JobCondition])
    ledger: Ledger = Field(default_factory=Ledger)


class Job(Object):
    spec: JobSpec = Field(default_factory=JobSpec)
    status: JobStatus = Field(default_factory=JobStatus)

    @property
    def phase(self) -> JobPhase:
        """The phase; a job whose phase is empty or unknown counts as Pending."""
        try:
            return JobPhase(self.status.state.phase)
        except ValueError:
            return JobPhase.PENDING
