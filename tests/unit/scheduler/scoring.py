"""What a plugin makes of nodes, asked as the placer asks it."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import Policy, build_policy
from vcbatch.scheduler.framework.placing.static_nodes import StaticCache
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.columns import Columns, Depths
from vcbatch.scheduler.model.objects import Task

P = TypeVar("P", bound=Plugin)


def policy(plugin: str, arguments: dict[str, Any] | None = None, *others: str, **switches: bool) -> Policy:
    """A policy with the plugin, gangs as usual, and `others`."""
    plugins: list[dict[str, Any]] = [{"name": name} for name in ("gang", *others)]
    plugins.append({"name": plugin, "arguments": arguments or {}, **switches})
    return build_policy({"actions": "enqueue, allocate, backfill", "tiers": [{"plugins": plugins}]})


def session(cluster: Cluster, given: Policy) -> Session:
    """A cycle that is about to start."""
    state = cluster.scheduler._state
    state.settle()
    return Session(state, given, StaticCache(), now=cluster.now, uid="s")


def plugin_of(opened: Session, kind: type[P]) -> P:
    return next(p for p in opened.plugins if isinstance(p, kind))


def task_of(opened: Session, name: str) -> Task:
    return opened.state.tasks[f"pod-{name}"]


def points(opened: Session, plugin: Plugin, name: str) -> dict[str, float]:
    """Its `scores` of every node for the pod of this name."""
    nodes, cls = opened.nodes, task_of(opened, name).cls
    rows = np.arange(len(nodes), dtype=np.intp)
    found = plugin.scores(cls, Columns(nodes, cls, rows, Depths(nodes, cls, 0, 1), promising=False))
    assert found is not None
    return {info.name: float(found[0, info.row]) for info in nodes.infos}


def requests(cluster: Cluster, pod: str, annotations: dict[str, str] | None = None, **given: str) -> None:
    """Have the pod ask for something else; an underscore in a name stands for a slash."""
    raw = cluster.pods[pod]
    amounts = {name.replace("_", "/"): amount for name, amount in given.items()}
    raw["spec"]["containers"][0]["resources"] = {"requests": amounts}
    raw["metadata"]["annotations"].update(annotations or {})
    cluster.change(pod)
