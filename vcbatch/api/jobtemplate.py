"""The JobTemplate (`flow.volcano.sh/v1alpha1`): a job's spec, from which JobFlows create jobs."""

from __future__ import annotations

from pydantic import Field

from vcbatch.api.job import JobSpec
from vcbatch.api.model import Model, Object


class JobTemplateStatus(Model):
    """`job_depends_on_list` names the jobs created from the template."""

    job_depends_on_list: list[str] = Field(default_factory=list[str])


class JobTemplate(Object):
    """`spec` is a job's spec itself, without further nesting."""

    spec: JobSpec = Field(default_factory=JobSpec)
    status: JobTemplateStatus = Field(default_factory=JobTemplateStatus)
