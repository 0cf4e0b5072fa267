"""How long a finished JobFlow is kept, from its annotation."""

from __future__ import annotations

from collections.abc import Mapping

from vcbatch.api.annotation_number import number_in
from vcbatch.api.names import TTL_AFTER_FINISHED
from vcbatch.api.time_limit import LONGEST


def retention(annotations: Mapping[str, str]) -> int | None:
    """Seconds from the end of the flow to its deletion; None where it is kept, and where the annotation is malformed
    (admission rejects it)."""
    return number_in(annotations, TTL_AFTER_FINISHED, least=0, most=LONGEST)


def retention_error(annotations: Mapping[str, str]) -> str:
    """The error of the annotation; empty where it is absent or valid."""
    if TTL_AFTER_FINISHED not in annotations or retention(annotations) is not None:
        return ""
    given = annotations[TTL_AFTER_FINISHED]
    return f"annotation {TTL_AFTER_FINISHED} is {given!r}, want a number of seconds, 0 to {LONGEST}"
