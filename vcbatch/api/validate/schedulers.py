"""Schedulers that jobs name: one of ours has to be one that runs.

Pods of a scheduler that nobody runs wait for ever without a word. Whose other names are can't be known from here; names
that begin like ours are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from vcbatch.api.job import JobSpec
from vcbatch.api.validate.fault import Cause, Fault

OURS: Final = ("volcano", "vcbatch")


def scheduler_faults(spec: JobSpec, schedulers: Sequence[str], path: str) -> Iterator[Fault]:
    """A name that begins like ours, and that none of `schedulers` has."""
    for field, name in named_schedulers(spec, path):
        if name.lower().startswith(OURS) and name not in schedulers:
            known = " or ".join(schedulers)
            text = f'Unsupported value: "{name}": no scheduler of vcbatch is called so, want {known}'
            yield Fault(field, f"{field}: {text}", Cause.NOT_SUPPORTED)


def named_schedulers(spec: JobSpec, path: str) -> Iterator[tuple[str, str]]:
    """The fields that name a scheduler, with the names."""
    if spec.scheduler_name:
        yield f"{path}.schedulerName", spec.scheduler_name
    for index, task in enumerate(spec.tasks):
        name: Any = task.pod_spec.get("schedulerName")
        if isinstance(name, str) and name:
            yield f"{path}.tasks[{index}].template.spec.schedulerName", name
