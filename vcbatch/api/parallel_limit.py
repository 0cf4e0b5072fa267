"""How many pods of a job may be alive at the same time, as its annotation says."""

from __future__ import annotations

from collections.abc import Mapping

from vcbatch.api.annotation_number import number_in
from vcbatch.api.names import MAX_PARALLEL_PODS


def parallel_limit(annotations: Mapping[str, str]) -> int | None:
    """The most pods that are alive together; None without a limit, and where what is written there is none (admission
    refuses it)."""
    return number_in(annotations, MAX_PARALLEL_PODS)


def parallel_limit_error(annotations: Mapping[str, str], *, minimum: int) -> str:
    """What is wrong with the annotation of a job that starts with `minimum` pods; empty where it is absent or fine."""
    given = annotations.get(MAX_PARALLEL_PODS)
    limit = parallel_limit(annotations)
    if given is None or (limit is not None and limit >= minimum):
        return ""
    if limit is None:
        return f"annotation {MAX_PARALLEL_PODS} is {given!r}, want a number of pods, 1 or more"
    return (
        f"annotation {MAX_PARALLEL_PODS} is {limit}, and the job needs {minimum} pods at the same time (minAvailable)"
    )
