"""Whether a JobFlow is an order (volcano-sh/volcano `pkg/webhooks/admission/jobflows/validate`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vcbatch.api import names
from vcbatch.api.jobflow import JobFlow
from vcbatch.api.name_rules import dns_subdomain
from vcbatch.api.retention import retention_fault
from vcbatch.api.validate import graph
from vcbatch.api.validate.fault import Cause, Fault

_LONGEST_JOB: Final = 63
_NO_ORDER = "jobflow Flow is not DAG"


def jobflow_faults(flow: JobFlow, *, old: JobFlow | None = None) -> list[Fault]:
    """What is wrong with its order, and with the time that it is kept for when it is finished. What is as it was in
    `old` stays, whatever rules there were when it was made."""
    faults = list(_retention_faults(flow, old))
    return faults if old is not None and flow.spec == old.spec else [*order_faults(flow), *faults]


def _retention_faults(flow: JobFlow, old: JobFlow | None) -> Iterator[Fault]:
    given, before = (each.metadata.annotations.get(names.TTL_AFTER_FINISHED) if each else None for each in (flow, old))
    fault = retention_fault(flow.metadata.annotations)
    if fault and given != before:
        yield Fault(f"metadata.annotations[{names.TTL_AFTER_FINISHED}]", fault)


def order_faults(flow: JobFlow) -> list[Fault]:
    """Every target is a flow, and none waits for itself."""
    faults = list(_name_faults(flow))
    edges = {each.name: each.depends_on.targets if each.depends_on else () for each in flow.spec.entries}
    unknown = graph.unknown_target(edges)
    if unknown:
        faults.append(Fault("spec.flows", f"{_NO_ORDER}: vertex is not defined: {unknown[1]}", Cause.NOT_FOUND))
    looped = graph.cycle(edges)
    if looped:
        faults.append(Fault("spec.flows", f"{_NO_ORDER}: circle of {', '.join(looped)}"))
    return faults


def _name_faults(flow: JobFlow) -> Iterator[Fault]:
    """A flow's name is that of a JobTemplate, and a part of the name of the job made of it."""
    for index, each in enumerate(flow.spec.flows):
        field = f"spec.flows[{index}].name"
        complaints = dns_subdomain(each.name) if each.name else ()
        if complaints:
            yield Fault(field, f'{field}: Invalid value: "{each.name}": {complaints[0]}, as it names a JobTemplate')
            continue
        job = names.flow_job_name(flow.name, each.name)
        if flow.name and each.name and len(job) > _LONGEST_JOB:
            text = f"its job would be called {job}, of {len(job)} characters, and a job's name has at most"
            yield Fault(field, f'{field}: Invalid value: "{each.name}": {text} {_LONGEST_JOB}', Cause.TOO_LONG)
