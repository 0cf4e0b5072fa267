"""What happens to a slot that is due while jobs of earlier slots run: one rule per `concurrencyPolicy`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from vcbatch.api.cronjob import ConcurrencyPolicy


class Verb(StrEnum):
    """What is done about a slot."""

    START = "start"
    """Make its job."""
    WAIT = "wait"
    """Make no job now; the slot stays due, and is lost when the next one comes or its deadline passes."""
    REPLACE = "replace"
    """Delete what runs, and make its job."""


TABLE: Final[Mapping[ConcurrencyPolicy, Verb]] = {
    ConcurrencyPolicy.ALLOW: Verb.START,
    ConcurrencyPolicy.FORBID: Verb.WAIT,
    ConcurrencyPolicy.REPLACE: Verb.REPLACE,
}
"""While jobs of earlier slots run. Where none does, a slot's job is started whatever the policy."""


def verb_for(policy: str, *, busy: bool) -> Verb:
    """No policy, or one that the API server wouldn't have let pass, means Allow."""
    if not busy:
        return Verb.START
    try:
        return TABLE[ConcurrencyPolicy(policy)]
    except ValueError:
        return Verb.START
