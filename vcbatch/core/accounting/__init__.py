"""Records of jobs for accounting: one for each attempt, kept after the job is deleted."""

from vcbatch.core.accounting.attempt import Attempt, AttemptState, PodRun, merged_attempt, merged_run, with_totals
from vcbatch.core.accounting.observe import (
    attempt_of,
    closed_by,
    closed_by_deletion,
    closed_unseen,
    run_of,
    started_or_ended,
)
from vcbatch.core.accounting.report import Filter, Group, Usage, summed
from vcbatch.core.accounting.wire import ATTEMPTS, FIELDS, from_wire, to_wire

__all__ = [
    "ATTEMPTS",
    "FIELDS",
    "Attempt",
    "AttemptState",
    "Filter",
    "Group",
    "PodRun",
    "Usage",
    "attempt_of",
    "closed_by",
    "closed_by_deletion",
    "closed_unseen",
    "from_wire",
    "merged_attempt",
    "merged_run",
    "run_of",
    "started_or_ended",
    "summed",
    "to_wire",
    "with_totals",
]
