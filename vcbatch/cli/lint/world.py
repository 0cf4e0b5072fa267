"""The cluster state for offline validation: the objects of the files; all other objects are assumed to exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from vcbatch.api.loose import part
from vcbatch.api.model import Json, MalformedObject
from vcbatch.api.names import SYSTEM_PRIORITY_CLASSES
from vcbatch.api.queue import DEFAULT, ROOT, Queue
from vcbatch.api.resources import NAMESPACES, PRIORITYCLASSES, QUEUES
from vcbatch.api.unfinished import QueueWork
from vcbatch.api.validate import amounts
from vcbatch.cli.files.manifests import Manifest
from vcbatch.runtime.time_zones import time_zones


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """An `admission.Lookup` on the objects of the files. Of other objects, only those that every cluster has exist if
    `closed` is set; otherwise all exist."""

    stored: Mapping[str, Queue]
    priority_classes: frozenset[str]
    annotations: Mapping[str, dict[str, str]]
    closed: bool

    def without_queue(self, name: str) -> Files:
        """The state before the creation of this queue."""
        return replace(self, stored={other: queue for other, queue in self.stored.items() if other != name})

    def queue(self, name: str) -> Queue | None:
        known = self.stored.get(name)
        return known if known is not None or (self.closed and name != DEFAULT) else _assumed(name)

    def queues(self) -> Sequence[Queue]:
        return list(self.stored.values())

    def work(self, queue: str) -> QueueWork:
        """No work: files describe objects to be created, not running jobs."""
        return QueueWork()

    def job(self, namespace: str, name: str) -> Json | None:
        return None

    def pod_group(self, namespace: str, name: str) -> Json | None:
        return None

    def has_priority_class(self, name: str) -> bool:
        return not self.closed or name in self.priority_classes or name in SYSTEM_PRIORITY_CLASSES

    def has_time_zone(self, name: str) -> bool:
        return name in time_zones()

    def namespace_annotations(self, name: str) -> dict[str, str]:
        return self.annotations.get(name, {})


def world_of(manifests: Iterable[Manifest], *, closed: bool) -> Files:
    """The state that consists of these objects. Objects that can't be decoded are skipped; the rules report them."""
    queues = {name: _assumed(name) for name in (ROOT, DEFAULT)}
    classes: set[str] = set()
    annotations: dict[str, dict[str, str]] = {}
    for manifest in manifests:
        if manifest.resource == QUEUES:
            try:
                queues[manifest.name] = Queue.parse(manifest.value)
            except MalformedObject:
                continue
        elif manifest.resource == PRIORITYCLASSES:
            classes.add(manifest.name)
        elif manifest.resource == NAMESPACES:
            annotations[manifest.name] = part(part(manifest.value, "metadata"), "annotations")
    if not closed:
        for parent in {queue.spec.parent for queue in queues.values()} - {""} - set(queues):
            queues[parent] = _assumed(parent, [queue for queue in queues.values() if queue.spec.parent == parent])
    return Files(stored=queues, priority_classes=frozenset(classes), annotations=annotations, closed=closed)


def _assumed(name: str, children: Sequence[Queue] = ()) -> Queue:
    """A queue that isn't in the files, open and with enough quota for these children: their sums of `guarantee` and
    `deserved` become those of the queue."""
    guarantee = _sum(amounts.read(child.spec.guarantee.resource) for child in children)
    deserved = _sum(amounts.read(child.spec.deserved) for child in children)
    spec = {"parent": "" if name == ROOT else ROOT, "guarantee": {"resource": guarantee}, "deserved": deserved}
    return Queue.parse({"metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}})


def _sum(listed: Iterable[amounts.Amounts]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.total(listed).items()}
