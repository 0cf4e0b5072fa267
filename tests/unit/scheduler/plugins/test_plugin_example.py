"""The plugin and the action that the documentation shows do what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.cli.files.plugin_files import load
from vcbatch.scheduler import PolicyError, parse_policy
from vcbatch.scheduler.framework.policy import Extensions

PAGE = Path(__file__).parents[4] / "docs" / "own-plugins.md"
TEXT = """
actions: "enqueue, allocate, tidy-up"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: keep-free
    arguments: {label: kept}
"""


@pytest.fixture
def own(tmp_path: Path) -> Extensions:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    file = tmp_path / "mine.py"
    file.write_text(example)
    return load([file])


def test_the_documented_plugin_filters_and_scores(own: Extensions) -> None:
    cluster = Cluster(parse_policy(TEXT, extensions=own))
    cluster.node("a", memory="8Gi")
    cluster.node("b", memory="64Gi", labels={"kept": ""})
    cluster.node("c", memory="32Gi")
    cluster.gang("g", 3)
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "a", "g-worker-1": "c", "g-worker-2": "c"}


def test_the_documented_plugin_says_why_not(own: Extensions) -> None:
    cluster = Cluster(parse_policy(TEXT, extensions=own))
    cluster.node("b", labels={"kept": ""})
    cluster.gang("g", 1)
    reported = cluster.cycle().pod_conditions
    assert [c.message for c in reported] == [
        "Impossible: 0/1 nodes are unavailable: 1 node(s) are reserved. no node passes the constraints of g-worker-0"
    ]


def test_the_documented_plugin_has_nothing_against_a_cluster_without_nodes(own: Extensions) -> None:
    cluster = Cluster(parse_policy(TEXT, extensions=own))
    cluster.gang("g", 1)
    assert cluster.cycle().failures == ()


def test_its_arguments_are_checked(own: Extensions) -> None:
    with pytest.raises(PolicyError, match=r"weight: must be at least 0, got -1"):
        parse_policy(TEXT.replace("label: kept", "weight: -1"), extensions=own)


def test_the_documented_action_evicts(own: Extensions) -> None:
    cluster = Cluster(parse_policy(TEXT, extensions=own))
    cluster.node("a")
    cluster.gang("g", 2)
    cluster.cycle()
    cluster.run("g")
    assert not cluster.cycle().evictions
    cluster.node("a", event="MODIFIED", labels={"drain": "now"})
    evictions = cluster.cycle().evictions
    assert [(e.name, e.reason, e.message) for e in evictions] == [
        ("g-worker-0", "tidy-up", "a is to be empty"),
        ("g-worker-1", "tidy-up", "a is to be empty"),
    ]
