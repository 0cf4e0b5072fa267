"""HyperNodes, whenever the controllers die and however late they hear of things: each domain of the nodes' labels is
one HyperNode, made once; those of people are left alone; and each says how many nodes are below it."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from tests.support.examples import examples
from tests.support.lives import Stage, assert_alike, assert_deaths_change_nothing, misfortunes, report
from vcbatch.api.resources import HYPERNODES, NODES

Json = dict[str, Any]

DISCOVERY = """\
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      racks: [{nodeLabel: zone}, {nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]
"""


def _node(stage: Stage, name: str, **labels: str) -> None:
    stage.put(NODES, name, metadata={"labels": labels})


def _domains(stage: Stage) -> dict[str, tuple[int, list[str]]]:
    """By its label's value: how many nodes each counts, and its members, those that are domains by their values."""
    found = {each["metadata"]["name"]: each for each in stage.server.all(HYPERNODES)}
    values = {name: _value(each) for name, each in found.items()}
    return {
        _value(each): (
            each["status"]["nodeCount"],
            sorted(values.get(name := _name_in(member), name) for member in each["spec"]["members"]),
        )
        for each in found.values()
    }


def _value(hyper_node: Json) -> str:
    labels = hyper_node["metadata"].get("labels") or {}
    return labels.get("rack") or labels.get("zone") or hyper_node["metadata"]["name"]


def _name_in(member: Json) -> str:
    selector = member["selector"]
    return selector["exactMatch"]["name"] if "exactMatch" in selector else "a selector"


async def _nodes_come_move_and_go(stage: Stage) -> None:
    mine = {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"zone": "z"}}}}
    stage.put(HYPERNODES, "mine", spec={"tier": 1, "members": [mine]})
    for name, rack in (("a", "r1"), ("b", "r1"), ("c", "r2")):
        _node(stage, name, rack=rack, zone="z")
    await stage.rest()
    assert _domains(stage) == {
        "mine": (3, ["a selector"]),
        "r1": (2, ["a", "b"]),
        "r2": (1, ["c"]),
        "z": (3, ["r1", "r2"]),
    }
    await stage.change(NODES, "b", {"metadata": {"labels": {"rack": "r3"}}})
    stage.remove(NODES, "c")
    await stage.rest()
    assert _domains(stage) == {
        "mine": (2, ["a selector"]),
        "r1": (1, ["a"]),
        "r3": (1, ["b"]),
        "z": (2, ["r1", "r3"]),
    }
    (rack,) = (each["metadata"]["name"] for each in stage.server.all(HYPERNODES) if _value(each) == "r3")
    stage.remove(HYPERNODES, rack)
    await stage.rest()
    assert _domains(stage)["r3"] == (1, ["b"])


def test_dying_at_any_write_changes_nothing() -> None:
    assert_deaths_change_nothing(_nodes_come_move_and_go, least=12, discovery=DISCOVERY)


def test_neither_does_late_news_and_dying_often() -> None:
    whole = report(_nodes_come_move_and_go, discovery=DISCOVERY)

    @settings(max_examples=examples(25))
    @given(misfortunes(HYPERNODES, NODES))
    def check(misfortune: Any) -> None:
        assert_alike(report(_nodes_come_move_and_go, discovery=DISCOVERY, **misfortune), whole, str(misfortune))

    check()
