"""The time limit of a job, from its annotation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vcbatch.api.annotation_number import number_in
from vcbatch.api.names import MAX_RUN_SECONDS

LONGEST: Final = 10 * 365 * 86400
"""The maximum in seconds; longer times are probably a typing mistake."""


def time_limit(annotations: Mapping[str, str]) -> int | None:
    """Seconds that the job may be Running; None without a limit, and where the annotation is malformed (admission
    rejects it)."""
    return number_in(annotations, MAX_RUN_SECONDS, most=LONGEST)


def time_limit_error(annotations: Mapping[str, str]) -> str:
    """The error of the annotation; empty where it is absent or valid."""
    if MAX_RUN_SECONDS not in annotations or time_limit(annotations) is not None:
        return ""
    return f"annotation {MAX_RUN_SECONDS} is {annotations[MAX_RUN_SECONDS]!r}, want a number of seconds, 1 to {LONGEST}"
