"""What is done with a slot that is due while jobs of earlier slots run: one rule per `concurrencyPolicy`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from vcbatch.api.cronjob import ConcurrencyPolicy


class Verb(StrEnum):
    """What is done with a slot."""

    START = "start"
    """Create its job."""
    WAIT = "wait"
    """Create no job now; the slot stays due, and is skipped when the next one comes or its deadline passes."""
    REPLACE = "replace"
    """Delete the running jobs, and create its job."""


TABLE: Final[Mapping[ConcurrencyPolicy, Verb]] = {
    ConcurrencyPolicy.ALLOW: Verb.START,
    ConcurrencyPolicy.FORBID: Verb.WAIT,
    ConcurrencyPolicy.REPLACE: Verb.REPLACE,
}
"""While jobs of earlier slots run. Where none does, a slot's job is started with any policy."""


def verb_for(policy: str, *, busy: bool) -> Verb:
    """An empty policy, or one that the API server would have rejected, means Allow."""
    if not busy:
        return Verb.START
    try:
        return TABLE[ConcurrencyPolicy(policy)]
    except ValueError:
        return Verb.START
