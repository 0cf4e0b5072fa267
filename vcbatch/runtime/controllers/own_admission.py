"""What the admission of pods and PodGroups would say of those that a Job gets, judged before they are created.

The shipped webhooks and policies leave them out: the Job was judged. What may have become of its queue since, and what
a plugin may have written on its pods, is judged here, by the same rules. So is a Job that nobody judged.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json, MalformedObject
from vcbatch.api.podgroup import PodGroup
from vcbatch.api.queue import Queue
from vcbatch.api.resources import JOBS
from vcbatch.api.unfinished import QueueWork
from vcbatch.api.validate import pod_errors, podgroup_errors, sentence
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.caches.parsed import Parsed

_JOB: Final = (JOBS.api_version, JOBS.kind)


class OwnAdmission:
    """Why an object may not be created, "" where it may; what no Job controls is for others to judge."""

    def __init__(self, queues: Cache[Json], jobs: Cache[Json], *, schedulers: Collection[str]) -> None:
        """`schedulers`: whose pods are ours."""
        self._known = _Known(queues, jobs)
        self._schedulers = schedulers

    def of_pod(self, body: Json) -> str:
        if not _of_job(body) or part(body, "spec").get("schedulerName") not in self._schedulers:
            return ""
        return sentence(pod_errors(part(part(body, "metadata"), "annotations")))

    def of_pod_group(self, body: Json) -> str:
        """A queue that isn't known isn't judged: the Job waits for it, and says so."""
        if not _of_job(body) or self._known.queue(str(part(body, "spec").get("queue") or "")) is None:
            return ""
        return sentence(podgroup_errors(PodGroup.parse(body), self._known))


def _of_job(body: Json) -> bool:
    return any(
        owner.get("controller") and (owner.get("apiVersion"), owner.get("kind")) == _JOB
        for owner in listed(part(body, "metadata"), "ownerReferences")
    )


class _Known:
    """The rules' `WorkLookup`, as far as those of PodGroups ask."""

    def __init__(self, queues: Cache[Json], jobs: Cache[Json]) -> None:
        self._queues = queues
        self._jobs = jobs
        self._parsed = Parsed(Queue.parse)

    def queue(self, name: str) -> Queue | None:
        stored = self._queues.by_key(name)
        try:
            return self._parsed.of(stored) if stored is not None else None
        except MalformedObject:
            return None

    def queues(self) -> Sequence[Queue]:
        return ()

    def job(self, namespace: str, name: str) -> Json | None:
        return self._jobs.by_key(f"{namespace}/{name}")

    def pod_group(self, namespace: str, name: str) -> Json | None:
        return None

    def work(self, queue: str) -> QueueWork:
        return QueueWork()

    def has_priority_class(self, name: str) -> bool:
        return True

    def has_time_zone(self, name: str) -> bool:
        return True

    def namespace_annotations(self, name: str) -> dict[str, str]:
        """None: the PodGroup of a Job is in the queue that the Job names."""
        return {}
