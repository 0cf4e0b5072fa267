"""How long a job may run, as its annotation says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vcbatch.api.annotation_number import number_in
from vcbatch.api.names import MAX_RUN_SECONDS

LONGEST: Final = 10 * 365 * 86400
"""Seconds; what is longer is a slip of the finger."""


def time_limit(annotations: Mapping[str, str]) -> int | None:
    """Seconds that the job may be Running; None without a limit, and where what is written there is none (admission
    refuses it)."""
    return number_in(annotations, MAX_RUN_SECONDS, most=LONGEST)


def time_limit_error(annotations: Mapping[str, str]) -> str:
    """What is wrong with the annotation; empty where it is absent or fine."""
    if MAX_RUN_SECONDS not in annotations or time_limit(annotations) is not None:
        return ""
    return f"annotation {MAX_RUN_SECONDS} is {annotations[MAX_RUN_SECONDS]!r}, want a number of seconds, 1 to {LONGEST}"
