"""How often a job may be restarted: the one place that decides it, before anything is killed.

Three counts add up to `status.retryCount`: the job's own failures, against `maxRetry`; losses by the infrastructure
(volcano#2560: an eviction must not use up retries), against a fixed bound that only stops endless loops; resumes,
which are a person's wish and free. As in Volcano, `maxRetry: 3` allows two restarts and the third attempt to restart
fails the job.
"""

from __future__ import annotations

from enum import StrEnum

from vcbatch.core.job.ledger import Ledger

INFRASTRUCTURE_RETRIES = 32


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
