"""The schedulers that jobs name.

Pods of a scheduler that doesn't run wait without any message. Which other schedulers run is unknown, so a name gets a
warning and is never rejected, as Volcano accepts any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from vcbatch.api.job import JobSpec

_OURS: Final = ("volcano", "vcbatch")
_MOST_NAMED: Final = 3


def scheduler_warnings(spec: JobSpec, schedulers: Sequence[str], path: str) -> Iterator[str]:
    """Warnings about the first few names that aren't in `schedulers`. One that begins like ours is probably
    misspelt."""
    foreign = [(field, name) for field, name in named_schedulers(spec, path) if name not in schedulers]
    for field, name in foreign[:_MOST_NAMED]:
        if name.lower().startswith(_OURS):
            known = " or ".join(schedulers)
            text = f"no scheduler of vcbatch is called {name[:63]!r}, so the pods may wait for ever; want {known}"
            yield f"{field}: {text}"
        else:
            yield f"{field}: {name[:63]!r} isn't a scheduler of vcbatch, and may not wait for minAvailable pods"


def named_schedulers(spec: JobSpec, path: str) -> Iterator[tuple[str, str]]:
    """The fields that name a scheduler, with the names."""
    if spec.scheduler_name:
        yield f"{path}.schedulerName", spec.scheduler_name
    for index, task in enumerate(spec.tasks):
        name: Any = task.pod_spec.get("schedulerName")
        if isinstance(name, str) and name:
            yield f"{path}.tasks[{index}].template.spec.schedulerName", name
