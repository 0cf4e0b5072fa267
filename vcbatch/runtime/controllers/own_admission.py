"""The admission rules for the pods and PodGroups of a Job, evaluated before they are created.

The installed webhooks and policies exclude these objects, since the Job itself was validated. Changes of its queue
since then, and what a plugin wrote to its pods, are validated here by the same rules. So is a Job that no webhook
validated.
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
    """Returns why an object may not be created, "" where it may. Objects that no Job controls are left to the
    webhooks."""

    def __init__(self, queues: Cache[Json], jobs: Cache[Json], *, schedulers: Collection[str]) -> None:
        """`schedulers`: the names of the schedulers whose pods are validated."""
        self._known = _Known(queues, jobs)
        self._schedulers = schedulers

    def of_pod(self, body: Json) -> str:
        if not _of_job(body) or part(body, "spec").get("schedulerName") not in self._schedulers:
            return ""
        return sentence(pod_errors(part(part(body, "metadata"), "annotations")))

    def of_pod_group(self, body: Json) -> str:
        """A PodGroup in an unknown queue isn't validated: the Job waits for the queue, and reports that."""
        if not _of_job(body) or self._known.queue(str(part(body, "spec").get("queue") or "")) is None:
            return ""
        return sentence(podgroup_errors(PodGroup.parse(body), self._known))


def _of_job(body: Json) -> bool:
    return any(
        owner.get("controller") and (owner.get("apiVersion"), owner.get("kind")) == _JOB
        for owner in listed(part(body, "metadata"), "ownerReferences")
    )


class _Known:
    """The rules' `WorkLookup`, limited to what the rules of PodGroups use."""

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
        """Empty: the PodGroup of a Job is in the queue that the Job names."""
        return {}
