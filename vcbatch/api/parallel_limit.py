"""The maximum of a job's pods that are alive at the same time, from its annotation."""

from __future__ import annotations

from collections.abc import Mapping

from vcbatch.api.annotation_number import number_in
from vcbatch.api.names import MAX_PARALLEL_PODS


def parallel_limit(annotations: Mapping[str, str]) -> int | None:
    """The maximum of pods that are alive together; None without a limit, and where the annotation is malformed
    (admission rejects it)."""
    return number_in(annotations, MAX_PARALLEL_PODS)


def parallel_limit_error(annotations: Mapping[str, str], *, minimum: int) -> str:
    """The error of the annotation of a job that starts with `minimum` pods; empty where it is absent or valid."""
    given = annotations.get(MAX_PARALLEL_PODS)
    limit = parallel_limit(annotations)
    if given is None or (limit is not None and limit >= minimum):
        return ""
    if limit is None:
        return f"annotation {MAX_PARALLEL_PODS} is {given!r}, want a number of pods, 1 or more"
    return (
        f"annotation {MAX_PARALLEL_PODS} is {limit}, and the job needs {minimum} pods at the same time (minAvailable)"
    )
