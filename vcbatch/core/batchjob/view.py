"""The picture on which a Job is decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from vcbatch.api.batch_job import BatchJob
from vcbatch.api.pod import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJobView:
    """One Job and what there is of it. Its own writes to pods have to be in the picture: a finalizer that was taken
    off and is seen again would be counted twice."""

    job: BatchJob
    pods: Sequence[Pod] = ()
    """All pods of its namespace that it controls, by UID, or that nobody controls."""
    taken: Callable[[str], bool] = lambda _name: False
    """Whether a name of a pod isn't free in its namespace."""
    lost: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    """Pods that failed and were removed since, by UID, with the time of their end: what the wait before the next try
    is reckoned from. As far as is remembered."""
