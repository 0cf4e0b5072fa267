"""A cluster in which things take their time, and whose scheduler may be another one at any moment."""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from tests.unit.scheduler.cluster import Cluster
from vcbatch.api.resources import NODES, PODGROUPS, PODS, PRIORITYCLASSES, QUEUES, Resource
from vcbatch.scheduler import CycleResult, Policy, Scheduler

Json = dict[str, Any]
_ORDER = (QUEUES, PRIORITYCLASSES, NODES, PODGROUPS, PODS)


class SlowCluster(Cluster):
    """A cluster whose pods say what the scheduler has them say, and that a scheduler which has just come up can be told
    of. Pods that are evicted take their time to end: until `end_all` is called."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.objects: dict[tuple[str, str], tuple[Resource, type[msgspec.Struct], Json]] = {}
        self._policy = policy
        self.ending: list[str] = []
        super().__init__(policy)

    def _send(self, resource: Resource, kind: type[msgspec.Struct], event: str, raw: Json) -> None:
        key = (resource.plural, raw["metadata"]["uid"])
        if event == "DELETED":
            self.objects.pop(key, None)
        else:
            self.objects[key] = (resource, kind, copy.deepcopy(raw))
        super()._send(resource, kind, event, raw)

    def restart(self) -> None:
        """Another scheduler comes up, and knows what the API server knows."""
        self.scheduler = Scheduler(self._policy)
        for wanted in _ORDER:
            for resource, kind, raw in list(self.objects.values()):
                if resource is wanted:
                    super()._send(resource, kind, "ADDED", raw)

    def step(self) -> CycleResult:
        """One cycle. Pods say what they are to, those that are bound run, those that are evicted begin to end."""
        result = self.cycle()
        self.report(result)
        for bind in result.binds:
            self.change(bind.name, phase="Running")
        for eviction in result.evictions:
            self.change(eviction.name, deleting=True)
            self.ending.append(eviction.name)
        return result

    def report(self, result: CycleResult) -> None:
        """Pods say which nodes are kept for them."""
        for reported in result.pod_conditions:
            if reported.nominated is not None and reported.name in self.pods:
                self.pods[reported.name]["status"] |= {"nominatedNodeName": reported.nominated}
                self.change(reported.name)

    def end_all(self) -> None:
        """All that were evicted are gone."""
        for name in self.ending:
            self.delete(name)
        self.ending.clear()

    def says(self, pod: str) -> str:
        """The node that the pod says is kept for it."""
        return self.pods[pod]["status"].get("nominatedNodeName", "")
