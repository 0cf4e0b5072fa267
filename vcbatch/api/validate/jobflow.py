"""Whether a JobFlow is an order (volcano-sh/volcano `pkg/webhooks/admission/jobflows/validate`)."""

from __future__ import annotations

from collections import Counter

from vcbatch.api.jobflow import JobFlow
from vcbatch.api.validate import graph
from vcbatch.api.validate.fault import Cause, Fault

_NO_ORDER = "jobflow Flow is not DAG"


def jobflow_faults(flow: JobFlow) -> list[Fault]:
    """Every target is a flow, none waits for itself, and no name stands twice (Volcano keeps one of them)."""
    flows = flow.spec.flows
    faults = [
        Fault("spec.flows", f"duplicated flow name {name}", Cause.DUPLICATE)
        for name, count in Counter(each.name for each in flows).items()
        if count > 1
    ]
    edges = {each.name: each.depends_on.targets if each.depends_on else () for each in flows}
    unknown = graph.unknown_target(edges)
    if unknown:
        faults.append(Fault("spec.flows", f"{_NO_ORDER}: vertex is not defined: {unknown[1]}", Cause.NOT_FOUND))
    looped = graph.cycle(edges)
    if looped:
        faults.append(Fault("spec.flows", f"{_NO_ORDER}: circle of {', '.join(looped)}"))
    return faults
