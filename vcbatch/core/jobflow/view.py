"""The picture on which a JobFlow is decided."""

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
    """The flow without what its status tells of single jobs: that is long, and a look reads little of it. `spec`: what
    was read of its spec before, where that is the same. Raises `MalformedObject`."""
    status = part(stored, "status")
    read = {key: status[key] for key in ("state", "ledger") if key in status}
    if spec is None:
        return JobFlow.parse({**stored, "status": read})
    return JobFlow.parse({"metadata": stored["metadata"], "status": read}).model_copy(update={"spec": spec})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFlowView:
    """One JobFlow with what came of it and what it needs."""

    flow: JobFlow
    """As `flow_of` reads it."""
    status: Json = field(default_factory=dict[str, Any])
    """Its status as stored."""
    jobs: Sequence[Child] = ()
    """All jobs that it controls, by UID, and those of others that have a name which one of its jobs is to have."""
    departed: Sequence[Child] = ()
    """Jobs of its own that are gone since the last decision that was carried out, as they were last."""
    templates: Mapping[str, Json] = field(default_factory=dict[str, Any])
    """The JobTemplates that it names, as stored, by name; those that don't exist are left out."""
    commands: Sequence[Command] = ()
    """Commands whose target is a JobFlow of this name."""
    orders: Mapping[str, Sequence[Command]] = field(default_factory=dict[str, Sequence[Command]])
    """The Commands to its jobs, by the job's UID."""
    pods: Mapping[str, Sequence[Pod]] = field(default_factory=dict[str, Sequence[Pod]])
    """The pods of jobs that a probe is about, by the job's UID."""
    answers: Mapping[Probe, bool] = field(default_factory=dict[Probe, bool])
    """What the last try of each probe found; nothing for one that wasn't tried yet."""
    refusal: str = ""
    """Why the server didn't take a job at the last try."""
