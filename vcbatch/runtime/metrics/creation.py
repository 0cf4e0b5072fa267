"""The time from a job's creation to its pods', under the name of Volcano's controllers."""

from __future__ import annotations

from datetime import datetime

from vcbatch.api.loose import part
from vcbatch.api.pod import Pod
from vcbatch.api.timestamps import parse_time
from vcbatch.hosting.supervise import never
from vcbatch.interfaces.api import Json
from vcbatch.runtime.caches.cache import Cache, Change
from vcbatch.runtime.controllers.job import job_of_pod
from vcbatch.runtime.metrics.meter import Meter

_LATENCY = "controller_job_to_pod_creation_latency_milliseconds"


class CreationMetrics:
    """Measures each pod of a job when it appears, also those of later attempts. Both times are the server's, in whole
    seconds."""

    def __init__(self, meter: Meter, *, jobs: Cache[Json], pods: Cache[Pod]) -> None:
        self._meter = meter
        self._jobs = jobs
        self._pods = pods

    async def run(self) -> None:
        """Measure until cancelled. Pods that exist now were created before the controllers started, and aren't
        measured."""
        self._pods.listen(self._seen)
        await never()

    def _seen(self, change: Change[Pod]) -> None:
        pod = change.new
        if pod is None or change.old is not None:
            return
        for uid in job_of_pod(pod):
            job = self._jobs.get(uid)
            asked = _time(part(job, "metadata").get("creationTimestamp")) if job is not None else None
            made = _time(pod.metadata.creation_timestamp)
            if asked is not None and made is not None:
                self._meter.duration(_LATENCY, max((made - asked).total_seconds() * 1000, 0.0))


def _time(given: object) -> datetime | None:
    try:
        return parse_time(given) if isinstance(given, str) else None
    except ValueError:
        return None
