"""The JobFlow (`flow.volcano.sh/v1alpha1`): jobs created from JobTemplates, in the order of a dependency graph."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from vcbatch.api.job import JobSpec, TaskState
from vcbatch.api.model import Model, Object
from vcbatch.api.phases import JobFlowPhase


class RetainPolicy(StrEnum):
    """Whether a flow's jobs are kept when it has succeeded. Empty on the wire means `retain`."""

    RETAIN = "retain"
    DELETE = "delete"


class HttpHeader(Model):
    name: str = ""
    value: str = ""


class HttpGet(Model):
    task_name: str = ""
    path: str = ""
    port: int = 0
    http_header: HttpHeader | None = None


class TcpSocket(Model):
    task_name: str = ""
    port: int = 0


class TaskStatus(Model):
    task_name: str = ""
    phase: str = ""


class Probe(Model):
    http_get_list: list[HttpGet] = Field(default_factory=list[HttpGet])
    tcp_socket_list: list[TcpSocket] = Field(default_factory=list[TcpSocket])
    task_status_list: list[TaskStatus] = Field(default_factory=list[TaskStatus])


class FlowDependsOn(Model):
    targets: list[str] = Field(default_factory=list[str])
    probe: Probe | None = None


class Patch(Model):
    job_spec: JobSpec | None = None


class Flow(Model):
    """One job of the flow: `name` is a JobTemplate of the same namespace."""

    name: str = ""
    depends_on: FlowDependsOn | None = None
    patch: Patch | None = None


class JobFlowSpec(Model):
    flows: list[Flow] = Field(default_factory=list[Flow])
    job_retain_policy: str = ""

    @property
    def entries(self) -> list[Flow]:
        """The flows, each name once: of those with the same name, and so the same job, the last counts, as in the graph
        that Volcano's admission validates."""
        return list({flow.name: flow for flow in self.flows}.values())


class RunningHistory(Model):
    start_timestamp: str | None = None
    end_timestamp: str | None = None
    state: str = ""


class FlowJobStatus(Model):
    name: str = ""
    state: str = ""
    start_timestamp: str | None = None
    end_timestamp: str | None = None
    restart_count: int = 0
    running_histories: list[RunningHistory] = Field(default_factory=list[RunningHistory])


class FlowCondition(Model):
    phase: str = ""
    create_time: str | None = None
    running_duration: str | None = None
    task_status_count: dict[str, TaskState] = Field(default_factory=dict[str, TaskState])


class JobFlowState(Model):
    """`message` says why a flow waits or failed, and which jobs are never created. Volcano has no such field."""

    phase: str = ""
    message: str = ""


class MadeJob(Model):
    """The job that a flow last created from an entry: its UID, and the JobTemplate as it was then (UID and
    generation)."""

    uid: str = ""
    template: str = ""


class JobFlowLedger(Model):
    """The state that the JobFlow controller keeps, written before it is acted on. Volcano has no such field."""

    jobs: dict[str, MadeJob] = Field(default_factory=dict[str, MadeJob])
    """Records by the job's name."""
    suspended: bool = False
    aborted: list[str] = Field(default_factory=list[str])
    """UIDs of the jobs that were suspended with the flow, and are resumed with it."""
    discarded: list[str] = Field(default_factory=list[str])
    """UIDs of the jobs that are deleted for a retry."""
    commands: list[str] = Field(default_factory=list[str])
    """UIDs of the Commands that were executed last: each is executed at most once."""
    finished: str = ""
    """When the flow last ended; empty while it continues."""


class JobFlowStatus(Model):
    """Job names by phase. `unknown_jobs` is spelled `unKnowJobs` on the wire."""

    pending_jobs: list[str] = Field(default_factory=list[str])
    running_jobs: list[str] = Field(default_factory=list[str])
    failed_jobs: list[str] = Field(default_factory=list[str])
    completed_jobs: list[str] = Field(default_factory=list[str])
    terminated_jobs: list[str] = Field(default_factory=list[str])
    unknown_jobs: list[str] = Field(default_factory=list[str])
    job_status_list: list[FlowJobStatus] = Field(default_factory=list[FlowJobStatus])
    conditions: dict[str, FlowCondition] = Field(default_factory=dict[str, FlowCondition])
    state: JobFlowState = Field(default_factory=JobFlowState)
    ledger: JobFlowLedger = Field(default_factory=JobFlowLedger)


class JobFlow(Object):
    spec: JobFlowSpec = Field(default_factory=JobFlowSpec)
    status: JobFlowStatus = Field(default_factory=JobFlowStatus)

    @property
    def phase(self) -> JobFlowPhase:
        """The phase; a flow whose phase is empty or unknown counts as Pending."""
        try:
            return JobFlowPhase(self.status.state.phase)
        except ValueError:
            return JobFlowPhase.PENDING
