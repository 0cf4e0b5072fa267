"""How often a job may be restarted: the only place that decides it, before any pod is deleted.

Three counts add up to `status.retryCount`: the job's own failures, limited by `maxRetry`; losses by the infrastructure
(volcano#2560: an eviction must not use up retries), limited by a fixed bound that only stops endless loops; and
resumes, which a user requests and which have no limit. As in Volcano, `maxRetry: 3` allows two restarts and the third
attempt to restart fails the job.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from vcbatch.core.job.ledger import Ledger

INFRASTRUCTURE_RETRIES = 32
FIRST_WAIT = timedelta(seconds=10)
LONGEST_WAIT = timedelta(minutes=5)
HEALTHY = timedelta(minutes=10)
"""A job that ran at least this long before its loss restarts without a backoff."""


class Charge(StrEnum):
    """The budget that a restart uses."""

    NOTHING = "nothing"
    RETRY = "a retry"
    RESUME = "a resume"


def charge(ledger: Ledger, *, what: Charge, infrastructure: bool, max_retry: int) -> bool:
    """Count one restart in the ledger, and return whether its budget allows it."""
    if what is Charge.NOTHING:
        return True
    ledger.retry_count += 1
    if what is Charge.RESUME:
        ledger.resumes += 1
        return True
    if infrastructure:
        ledger.infrastructure_retries += 1
        return ledger.infrastructure_retries < INFRASTRUCTURE_RETRIES
    return ledger.own_retries < max_retry


def wait_after(*, losses: int, ran: timedelta) -> timedelta:
    """The backoff before a job's `losses`-th restart caused by the infrastructure: zero the first time, then doubled
    each time (as kubelets do with containers that crash). A node that takes down a gang every few seconds would
    otherwise use up the budget in a minute."""
    if losses < 2 or ran >= HEALTHY:
        return timedelta()
    return min(FIRST_WAIT * 2 ** min(losses - 2, 16), LONGEST_WAIT)
