"""Validation of JobFlows (volcano-sh/volcano `pkg/webhooks/admission/jobflows/validate`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vcbatch.api import names
from vcbatch.api.jobflow import JobFlow
from vcbatch.api.name_rules import dns_subdomain
from vcbatch.api.retention import retention_error
from vcbatch.api.validate import graph
from vcbatch.api.validate.errors import Cause, ValidationError

_LONGEST_JOB: Final = 63
_NO_ORDER = "jobflow Flow is not DAG"


def jobflow_errors(flow: JobFlow, *, old: JobFlow | None = None) -> list[ValidationError]:
    """Errors of its dependencies, and of its retention time. Fields that are unchanged from `old` pass, even under
    rules that are newer than the object."""
    errors = list(_retention_errors(flow, old))
    return errors if old is not None and flow.spec == old.spec else [*order_errors(flow), *errors]


def _retention_errors(flow: JobFlow, old: JobFlow | None) -> Iterator[ValidationError]:
    given, before = (each.metadata.annotations.get(names.TTL_AFTER_FINISHED) if each else None for each in (flow, old))
    error = retention_error(flow.metadata.annotations)
    if error and given != before:
        yield ValidationError(f"metadata.annotations[{names.TTL_AFTER_FINISHED}]", error)


def order_errors(flow: JobFlow) -> list[ValidationError]:
    """Errors where a target is no flow, or where a flow depends on itself."""
    errors = list(_name_errors(flow))
    edges = {each.name: each.depends_on.targets if each.depends_on else () for each in flow.spec.entries}
    unknown = graph.unknown_target(edges)
    if unknown:
        errors.append(
            ValidationError("spec.flows", f"{_NO_ORDER}: vertex is not defined: {unknown[1]}", Cause.NOT_FOUND)
        )
    looped = graph.cycle(edges)
    if looped:
        errors.append(ValidationError("spec.flows", f"{_NO_ORDER}: circle of {', '.join(looped)}"))
    return errors


def _name_errors(flow: JobFlow) -> Iterator[ValidationError]:
    """Errors of a flow's name, which is that of a JobTemplate, and a part of the name of its job."""
    for index, each in enumerate(flow.spec.flows):
        field = f"spec.flows[{index}].name"
        complaints = dns_subdomain(each.name) if each.name else ()
        if complaints:
            yield ValidationError(
                field, f'{field}: Invalid value: "{each.name}": {complaints[0]}, as it names a JobTemplate'
            )
            continue
        job = names.flow_job_name(flow.name, each.name)
        if flow.name and each.name and len(job) > _LONGEST_JOB:
            text = f"its job would be called {job}, of {len(job)} characters, and a job's name has at most"
            yield ValidationError(
                field, f'{field}: Invalid value: "{each.name}": {text} {_LONGEST_JOB}', Cause.TOO_LONG
            )
