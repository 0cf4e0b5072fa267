"""The decision of one reconciliation of a JobTemplate (volcano-sh/volcano `pkg/controllers/jobtemplate`)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from vcbatch.api.jobtemplate import JobTemplate
from vcbatch.api.resources import JOBTEMPLATES
from vcbatch.core.machine import Decision, WriteStatus, ref_of

MOST_NAMED: Final = 1000
"""The size of an object is limited: of more jobs the first by name are listed."""


def decide(template: JobTemplate, jobs: Collection[str]) -> Decision:
    """`jobs`: the names of the existing jobs. They become `status.jobDependsOnList`."""
    stored = template.status.dump()
    decided = {key: value for key, value in stored.items() if key != "jobDependsOnList"}
    if jobs:
        decided["jobDependsOnList"] = sorted(jobs)[:MOST_NAMED]
    if decided == stored or template.metadata.deletion_timestamp:
        return Decision()
    ref = ref_of(JOBTEMPLATES, template)
    version = template.metadata.resource_version
    return Decision(status=WriteStatus(ref=ref, resource_version=version, status=decided))
