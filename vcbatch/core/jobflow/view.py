"""The snapshot on which a JobFlow is decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vcbatch.api.command import Command
from vcbatch.api.jobflow import JobFlow, JobFlowSpec
from vcbatch.api.loose import part
from vcbatch.api.model import Json
from vcbatch.api.pod import Pod
from vcbatch.core.jobflow.child import Child
from vcbatch.core.jobflow.probe import Probe


def flow_of(stored: Json, spec: JobFlowSpec | None = None) -> JobFlow:
    """The flow without the status entries of single jobs, which are long and which a decision rarely reads. `spec`: the
    parsed spec, where it was parsed before and is unchanged. Raises `MalformedObject`."""
    status = part(stored, "status")
    read = {key: status[key] for key in ("state", "ledger") if key in status}
    if spec is None:
        return JobFlow.parse({**stored, "status": read})
    return JobFlow.parse({"metadata": stored["metadata"], "status": read}).model_copy(update={"spec": spec})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFlowView:
    """One JobFlow with its jobs and the objects that its decision needs."""

    flow: JobFlow
    """As `flow_of` returns it."""
    status: Json = field(default_factory=dict[str, Any])
    """Its status as stored."""
    jobs: Sequence[Child] = ()
    """All jobs that it controls, by UID, and jobs of other owners that have the name of one of its jobs."""
    departed: Sequence[Child] = ()
    """The last observed states of its jobs that were deleted since the last executed decision."""
    templates: Mapping[str, Json] = field(default_factory=dict[str, Any])
    """The JobTemplates that it names, as stored, by name; missing ones are left out."""
    commands: Sequence[Command] = ()
    """Commands whose target is a JobFlow of this name."""
    orders: Mapping[str, Sequence[Command]] = field(default_factory=dict[str, Sequence[Command]])
    """The Commands to its jobs, by the job's UID."""
    pods: Mapping[str, Sequence[Pod]] = field(default_factory=dict[str, Sequence[Pod]])
    """The pods of probed jobs, by the job's UID."""
    answers: Mapping[Probe, bool] = field(default_factory=dict[Probe, bool])
    """The result of the last try of each probe; probes that weren't tried yet are left out."""
    refusal: str = ""
    """Why the server rejected a job at the last attempt to create one."""
