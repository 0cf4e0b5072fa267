"""How long a finished JobFlow is kept, as its annotation says."""

from __future__ import annotations

from collections.abc import Mapping

from vcbatch.api.annotation_number import number_in
from vcbatch.api.names import TTL_AFTER_FINISHED
from vcbatch.api.time_limit import LONGEST


def retention(annotations: Mapping[str, str]) -> int | None:
    """Seconds from the end of the flow to its deletion; None where it stays, and where what is written there is no
    number of seconds (admission refuses it)."""
    return number_in(annotations, TTL_AFTER_FINISHED, least=0, most=LONGEST)


def retention_error(annotations: Mapping[str, str]) -> str:
    """What is wrong with the annotation; empty where it is absent or fine."""
    if TTL_AFTER_FINISHED not in annotations or retention(annotations) is not None:
        return ""
    given = annotations[TTL_AFTER_FINISHED]
    return f"annotation {TTL_AFTER_FINISHED} is {given!r}, want a number of seconds, 0 to {LONGEST}"
