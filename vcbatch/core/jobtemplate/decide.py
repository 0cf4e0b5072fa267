"""What follows from one look at a JobTemplate (volcano-sh/volcano `pkg/controllers/jobtemplate`)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from vcbatch.api.jobtemplate import JobTemplate
from vcbatch.api.resources import JOBTEMPLATES
from vcbatch.core.machine import Decision, WriteStatus, ref_of

MOST_NAMED: Final = 1000
"""An object has its limits: of more jobs the first by name are listed."""


def decide(template: JobTemplate, jobs: Collection[str]) -> Decision:
    """`jobs`: the names of those that exist. They are what `status.jobDependsOnList` says."""
    stored = template.status.dump()
    decided = {key: value for key, value in stored.items() if key != "jobDependsOnList"}
    if jobs:
        decided["jobDependsOnList"] = sorted(jobs)[:MOST_NAMED]
    if decided == stored or template.metadata.deletion_timestamp:
        return Decision()
    ref = ref_of(JOBTEMPLATES, template)
    version = template.metadata.resource_version
    return Decision(status=WriteStatus(ref=ref, resource_version=version, status=decided))
