"""The plugin that the documentation shows does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import Scheduler

PAGE = Path(__file__).parents[3] / "docs" / "scheduler.md"


def _example() -> Scheduler:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (example,) = [block for block in blocks if "(Plugin)" in block]
    names: dict[str, Any] = {}
    exec(compile(example, str(PAGE), "exec"), names)  # our own page
    return names["scheduler"]


def test_the_documented_plugin_filters_and_scores() -> None:
    cluster = Cluster()
    cluster.scheduler = _example()
    cluster.queue("default")
    cluster.node("a", memory="8Gi")
    cluster.node("b", memory="64Gi", labels={"reserve": "yes"})
    cluster.node("c", memory="32Gi")
    cluster.gang("g", 3)
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "a", "g-worker-1": "c", "g-worker-2": "c"}


def test_the_documented_plugin_says_why_not() -> None:
    cluster = Cluster()
    cluster.scheduler = _example()
    cluster.queue("default")
    cluster.node("b", labels={"reserve": "yes"})
    cluster.gang("g", 1)
    told = cluster.cycle().pod_conditions
    assert [c.message for c in told] == [
        "Impossible: 0/1 nodes are unavailable: 1 node(s) are reserved. no node passes the constraints of g-worker-0"
    ]
