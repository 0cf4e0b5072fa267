"""A scheduler that starts with its cluster sees it without nodes, queues or gangs first, whichever come later."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from typing import Any

import msgspec
import pytest

from vcbatch.api.node import Node
from vcbatch.api.pod import Pod
from vcbatch.api.resources import NODES, PODGROUPS, PODS, QUEUES
from vcbatch.api.scheduling import PodGroupView, QueueView
from vcbatch.scheduler import Scheduler, build_policy
from vcbatch.scheduler.plugins import PLUGINS

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ACTIONS = "enqueue, allocate, backfill, preempt, reclaim, gangpreempt, gangreclaim, shuffle"
ARGUMENTS: dict[str, dict[str, Any]] = {
    "extender": {"extender.urlPrefix": "http://127.0.0.1:1", "extender.ignorable": True},
    "disruption": {"minRuntime": "1m"},
}
NOWHERE = {"nodegroup"}
"""Lets pods of a queue that names no groups of nodes run nowhere."""
POLICIES = [(name, hierarchical) for name in PLUGINS for hierarchical in (False, PLUGINS[name].HIERARCHICAL)]

NODE = msgspec.convert(
    {"metadata": {"name": "n", "uid": "n"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}}}, Node
)
QUEUE = msgspec.convert({"metadata": {"name": "default", "uid": "q"}, "status": {"state": "Open"}}, QueueView)
GROUP = msgspec.convert(
    {
        "metadata": {"name": "g", "namespace": "ns", "uid": "g"},
        "spec": {"minMember": 1, "queue": "default", "minResources": {"cpu": "1"}},
        "status": {"phase": "Pending"},
    },
    PodGroupView,
)
POD = msgspec.convert(
    {
        "metadata": {
            "name": "p",
            "namespace": "ns",
            "uid": "p",
            "annotations": {"scheduling.k8s.io/group-name": "g"},
        },
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "m", "resources": {"requests": {"cpu": "1"}}}],
        },
        "status": {"phase": "Pending"},
    },
    Pod,
)
PARTS = ([(NODES, NODE)], [(QUEUES, QUEUE)], [(PODGROUPS, GROUP), (PODS, POD)])


@pytest.mark.parametrize(("name", "hierarchical"), sorted(set(POLICIES)))
@pytest.mark.parametrize("there", list(product((False, True), repeat=len(PARTS))), ids=lambda there: str(there))
def test_nothing_need_be_there(name: str, hierarchical: bool, there: tuple[bool, ...]) -> None:
    option: dict[str, Any] = {"name": name, "arguments": ARGUMENTS.get(name, {})}
    if hierarchical:
        option["enableHierarchy"] = True
    others = [{"name": other} for other in ("priority", "gang", "predicates") if other != name]
    scheduler = Scheduler(build_policy({"actions": ACTIONS, "tiers": [{"plugins": others}, {"plugins": [option]}]}))
    for wanted, objects in zip(there, PARTS, strict=True):
        for resource, obj in objects if wanted else ():
            scheduler.apply(resource, "ADDED", obj)
    bound = [bind.name for bind in scheduler.cycle(NOW).binds]
    for wanted, objects in zip(there, PARTS, strict=True):
        for resource, obj in objects if not wanted else ():
            scheduler.apply(resource, "ADDED", obj)
    bound += [bind.name for _ in range(3) for bind in scheduler.cycle(NOW).binds]
    assert bound == ([] if name in NOWHERE else ["p"])
