"""The snapshot on which a Job is decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from vcbatch.api.batch_job import BatchJob
from vcbatch.api.pod import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJobView:
    """One Job and its pods. The controller's own writes to pods must be in the snapshot: a pod whose finalizer was
    removed would be counted twice if it were seen with it again."""

    job: BatchJob
    pods: Sequence[Pod] = ()
    """All pods of its namespace that it controls, by UID, or that have no controller."""
    taken: Callable[[str], bool] = lambda _name: False
    """Whether a pod name is in use in its namespace."""
    lost: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    """Pods that failed and were removed since, by UID, with the time of their end; the retry backoff is computed from
    it. Only as many as the controller remembers."""
