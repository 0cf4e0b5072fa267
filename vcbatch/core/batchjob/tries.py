"""Backoff after failures: 10 s, doubled for each further failure, at most 10 minutes.

It is computed from existing pods and from recorded deletions, so that it survives a restart of the controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from vcbatch.api.batch_job import BatchJob
from vcbatch.api.pod import Pod
from vcbatch.core.batchjob.pods import (
    counts_for,
    ended_at,
    failures_before,
    has_failed,
    has_succeeded,
    ignored_before,
    is_leaving,
    is_tracked,
)
from vcbatch.core.batchjob.view import BatchJobView

FIRST_WAIT: Final = timedelta(seconds=10)
LONGEST_WAIT: Final = timedelta(minutes=10)
_MOST_DOUBLINGS: Final = 6


def is_setback(pod: Pod, job: BatchJob) -> bool:
    """Whether the pod is a failure to back off from. A pod that was released before the controller deleted it isn't."""
    return counts_for(pod, job) and has_failed(pod, job) and (is_tracked(pod) or not is_leaving(pod))


def next_try(view: BatchJobView, pods: Sequence[Pod]) -> datetime | None:
    """When new pods may be created after the failures since the last success; None where there were none."""
    failures = {**view.lost, **{pod.metadata.uid: ended_at(pod) for pod in pods if is_setback(pod, view.job)}}
    success = max((ended_at(pod) for pod in pods if has_succeeded(pod)), default=None)
    since = [end for end in failures.values() if success is None or end > success]
    return max(since) + wait_after(len(since)) if since else None


def next_try_of_index(last: Pod | None) -> datetime | None:
    """The same for one index, whose last failed pod has the number of earlier failures."""
    if last is None:
        return None
    return ended_at(last) + wait_after(failures_before(last) + ignored_before(last) + 1)


def wait_after(failures: int) -> timedelta:
    """The backoff after `failures` in a row, at least one."""
    return min(FIRST_WAIT * 2 ** min(failures - 1, _MOST_DOUBLINGS), LONGEST_WAIT)
