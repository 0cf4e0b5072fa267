"""How often a job may be restarted: the one place that decides it, before anything is killed.

Three counts add up to `status.retryCount`: the job's own failures, against `maxRetry`; losses by the infrastructure
(volcano#2560: an eviction must not use up retries), against a fixed bound that only stops endless loops; resumes,
which are a person's wish and free. As in Volcano, `maxRetry: 3` allows two restarts and the third attempt to restart
fails the job.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from vcbatch.core.job.ledger import Ledger

INFRASTRUCTURE_RETRIES = 32
FIRST_WAIT = timedelta(seconds=10)
LONGEST_WAIT = timedelta(minutes=5)
HEALTHY = timedelta(minutes=10)
"""A job that ran so long before its loss starts again at once."""


class Charge(StrEnum):
    """Which budget a restart uses."""

    NOTHING = "nothing"
    RETRY = "a retry"
    RESUME = "a resume"


def charge(ledger: Ledger, *, what: Charge, infrastructure: bool, max_retry: int) -> bool:
    """Count one restart in the ledger; whether its budget allows it."""
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
    """How long a job waits until it starts again after its `losses`-th restart for the infrastructure's sake: not at
    all the first time, then twice as long each time (as kubelets do with containers that crash). A node that takes a
    gang every few seconds would otherwise use up the budget in a minute."""
    if losses < 2 or ran >= HEALTHY:
        return timedelta()
    return min(FIRST_WAIT * 2 ** min(losses - 2, 16), LONGEST_WAIT)
