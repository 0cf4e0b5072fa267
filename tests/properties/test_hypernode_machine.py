"""HyperNodes by the labels of nodes, against an adversary: nodes that come, move and go, HyperNodes that somebody
deletes, people's own, and controllers that die at any write. At rest there is one HyperNode for each rack and each zone
that has a node, with the right members; each, people's own included, counts the nodes below it; and controllers that
are started anew write nothing."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from tests.support.examples import examples
from tests.support.stage_machine import StageMachine
from vcbatch.api.resources import HYPERNODES, NODES

Json = dict[str, Any]

ZONE_OF = {"r1": "z1", "r2": "z1", "r3": "z2"}
NODES_NAMED = ("a", "b", "c", "d", "e")


class HyperNodeMachine(StageMachine):
    followed = (HYPERNODES, NODES)
    discovery = """\
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      racks: [{nodeLabel: zone}, {nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]
"""

    # What people do

    @rule(names=st.sets(st.sampled_from(NODES_NAMED), min_size=1), rack=st.sampled_from([None, *ZONE_OF]))
    def nodes_come_or_move(self, names: set[str], rack: str | None) -> None:
        labels = {"rack": rack, "zone": ZONE_OF[rack]} if rack else {"rack": None, "zone": None}
        for name in sorted(names):
            if name in self.stage.names(NODES):
                self.change(NODES, name, {"metadata": {"labels": labels}})
            else:
                self.put(NODES, name, metadata={"labels": {key: each for key, each in labels.items() if each}})
        self.rest()

    @precondition(lambda self: self.stage.names(NODES))
    @rule(data=st.data())
    def a_node_goes(self, data: st.DataObject) -> None:
        self.remove(NODES, data.draw(st.sampled_from(self.stage.names(NODES))))
        self.rest()

    @precondition(lambda self: self.stage.names(HYPERNODES))
    @rule(data=st.data())
    def somebody_deletes_a_hyper_node(self, data: st.DataObject) -> None:
        self.remove(HYPERNODES, data.draw(st.sampled_from(self.stage.names(HYPERNODES))))
        self.rest()

    @precondition(lambda self: "mine" not in self.stage.names(HYPERNODES))
    @rule(zone=st.sampled_from(["z1", "z2"]))
    def somebody_makes_one(self, zone: str) -> None:
        selector = {"labelMatch": {"matchLabels": {"zone": zone}}}
        spec = {"tier": 1, "members": [{"type": "Node", "selector": selector}]}
        self.put(HYPERNODES, "mine", metadata={"annotations": {"of": zone}}, spec=spec)
        self.rest()

    # What holds

    @invariant()
    def there_is_one_for_each_domain(self) -> None:
        racks: defaultdict[str, set[str]] = defaultdict(set)
        zones: defaultdict[str, set[str]] = defaultdict(set)
        for node in self.stage.server.all(NODES):
            labels = node["metadata"].get("labels") or {}
            if "rack" in labels:
                racks[labels["rack"]].add(node["metadata"]["name"])
                zones[labels["zone"]].add(labels["rack"])
        found = {_value(each): each for each in self.stage.server.all(HYPERNODES)}
        assert len(found) == len(self.stage.names(HYPERNODES))
        assert {name: _members(each, found) for name, each in found.items() if name != "mine"} == {**racks, **zones}
        below = {**{rack: len(nodes) for rack, nodes in racks.items()}}
        below |= {zone: sum(below[rack] for rack in members) for zone, members in zones.items()}
        if "mine" in found:
            below["mine"] = below.get(found["mine"]["metadata"]["annotations"]["of"], 0)
        assert {name: each["status"]["nodeCount"] for name, each in found.items()} == below


def _value(hyper_node: Json) -> str:
    labels = hyper_node["metadata"].get("labels") or {}
    return labels.get("rack") or labels.get("zone") or hyper_node["metadata"]["name"]


def _members(hyper_node: Json, found: dict[str, Json]) -> set[str]:
    values = {each["metadata"]["name"]: value for value, each in found.items()}
    named = [member["selector"]["exactMatch"]["name"] for member in hyper_node["spec"]["members"]]
    return {values.get(name, name) for name in named}


HyperNodeMachine.TestCase.settings = settings(max_examples=examples(30), stateful_step_count=15)
TestHyperNodeMachine = HyperNodeMachine.TestCase
