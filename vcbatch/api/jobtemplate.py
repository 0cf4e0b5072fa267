"""The JobTemplate (`flow.volcano.sh/v1alpha1`): a job's spec, kept for JobFlows to make jobs from."""

from __future__ import annotations

from pydantic import Field

from vcbatch.api.job import JobSpec
from vcbatch.api.model import Model, Object


class JobTemplateStatus(Model):
    """`job_depends_on_list` names the jobs made from the template."""

    job_depends_on_list: list[str] = Field(default_factory=list[str])


class JobTemplate(Object):
    """`spec` is a job's spec, not nested any deeper."""

    spec: JobSpec = Field(default_factory=JobSpec)
    status: JobTemplateStatus = Field(default_factory=JobTemplateStatus)
