"""What is written on a HyperNode, and which HyperNodes are made from the labels of nodes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.job_world import START
from vcbatch.api.hypernode import HyperNode
from vcbatch.api.reasons import HyperNodeReason
from vcbatch.api.timestamps import format_time
from vcbatch.api.topology import Flaw, Place
from vcbatch.core.hypernode import (
    Discovery,
    Fabric,
    LabelTopology,
    MalformedDiscovery,
    decide,
    parse_discovery,
    reconcile,
    wanted,
)

Json = dict[str, Any]


def _hyper_node(name: str = "h", *, status: Json | None = None, labels: Json | None = None, spec: Json | None = None):
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "labels": labels or {}}
    return HyperNode.parse({"metadata": metadata, "spec": spec or {"tier": 1}, "status": status or {}})


def test_the_count_and_the_condition_are_written_once() -> None:
    place = Place(tier=1, nodes=frozenset({"a", "b"}))
    written = decide(_hyper_node(), place, now=START).status
    assert written is not None
    assert written.status == {
        "nodeCount": 2,
        "conditions": [
            {
                "type": "Consistent",
                "status": "True",
                "reason": "Consistent",
                "message": "",
                "lastTransitionTime": format_time(START),
            }
        ],
    }
    again = decide(_hyper_node(status=written.status), place, now=START + timedelta(hours=1))
    assert again.status is None


def test_a_flaw_is_told_and_what_others_wrote_stays() -> None:
    theirs = {"type": "Healthy", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "t"}
    ours = {**theirs, "type": "Consistent", "reason": "Consistent"}
    place = Place(
        tier=1,
        nodes=frozenset(),
        flaws=(Flaw(HyperNodeReason.CYCLE, "it is a member of itself"), Flaw(HyperNodeReason.TIER_ORDER, "and more")),
    )
    written = decide(_hyper_node(status={"nodeCount": 3, "conditions": [ours, theirs]}), place, now=START).status
    assert written is not None
    assert written.status["nodeCount"] == 0
    assert written.status["conditions"][0] == theirs
    reported = written.status["conditions"][1]
    assert (reported["status"], reported["reason"], reported["message"], reported["lastTransitionTime"]) == (
        "False",
        "Cycle",
        "it is a member of itself; and more",
        format_time(START),
    )


def test_one_that_is_being_deleted_is_left_alone() -> None:
    going = HyperNode.parse({"metadata": {"name": "h", "uid": "u", "deletionTimestamp": format_time(START)}})
    assert decide(going, Place(tier=1, nodes=frozenset()), now=START).status is None


TOPOLOGY = LabelTopology(name="RoCE v2", labels=["spine", "leaf", "kubernetes.io/hostname"])
NODES = {
    "n1": {"spine": "s1", "leaf": "l1"},
    "n2": {"spine": "s1", "leaf": "l1"},
    "n3": {"spine": "s1", "leaf": "l2"},
    "n4": {"leaf": "l3"},
    "n5": {"spine": "s1"},
}


def _members(body: Json) -> list[tuple[str, str]]:
    return [(member["type"], member["selector"]["exactMatch"]["name"]) for member in body["spec"]["members"]]


def test_labels_make_a_tree_from_the_node_up_to_the_first_missing_one() -> None:
    found = wanted(TOPOLOGY, NODES)
    by_value = {next(iter(body["metadata"]["labels"].values())): body for body in found}
    assert {value: body["spec"]["tier"] for value, body in by_value.items()} == {"l1": 1, "l2": 1, "l3": 1, "s1": 2}
    assert _members(by_value["l1"]) == [("Node", "n1"), ("Node", "n2")]
    assert _members(by_value["l3"]) == [("Node", "n4")]
    leaves = sorted(by_value[leaf]["metadata"]["name"] for leaf in ("l1", "l2"))
    assert _members(by_value["s1"]) == [("HyperNode", leaf) for leaf in leaves]
    assert by_value["s1"]["spec"]["tierName"] == "spine"
    assert by_value["l1"]["metadata"]["labels"] == {"leaf": "l1", "volcano.sh/network-topology-source": "label"}
    assert all(body["metadata"]["name"].startswith("hypernode-roce-v2-tier") for body in found)
    assert wanted(TOPOLOGY, dict(reversed(NODES.items()))) == found


def _stored(body: Json, *, name: str = "") -> HyperNode:
    name = name or body["metadata"]["name"]
    return _hyper_node(name, labels=body["metadata"]["labels"], spec=body["spec"])


def test_what_is_as_wanted_costs_nothing_and_the_rest_is_made_so() -> None:
    found = wanted(TOPOLOGY, NODES)
    stored = [_stored(body) for body in found]
    nothing = reconcile(found, stored)
    assert (list(nothing.creates), list(nothing.marks), list(nothing.deletes)) == ([], [], [])
    moved = wanted(TOPOLOGY, {**NODES, "n2": {"spine": "s1", "leaf": "l9"}, "n4": {}})
    decision = reconcile(moved, stored)
    assert [_members(create.body) for create in decision.creates] == [[("Node", "n2")]]
    assert [delete.ref.uid for delete in decision.deletes] == [
        f"uid-{body['metadata']['name']}" for body in found if "l3" in body["metadata"]["labels"].values()
    ]
    assert len(decision.marks) == 2  # the leaf that n2 left, and the spine


def test_those_of_people_and_other_sources_are_left_alone() -> None:
    foreign = [_hyper_node("mine"), _hyper_node("ufm", labels={"volcano.sh/network-topology-source": "ufm"})]
    assert not reconcile([], foreign).deletes


def test_one_that_volcano_found_is_kept_under_its_name() -> None:
    found = wanted(TOPOLOGY, {"n1": NODES["n1"]})
    leaf, spine = found
    theirs = _stored(leaf, name="hypernode-roce-v2-tier1-x7k2q")
    decision = reconcile(found, [theirs])
    (create,) = decision.creates
    assert create.body["metadata"]["name"] == spine["metadata"]["name"]
    assert _members(create.body) == [("HyperNode", "hypernode-roce-v2-tier1-x7k2q")]
    assert not decision.deletes
    assert not decision.marks


def _discovery(**changes: Any) -> Json:
    types = {"roce": [{"nodeLabel": "spine"}, {"nodeLabel": "leaf"}, {"nodeLabel": "kubernetes.io/hostname"}]}
    source = {"source": "label", "enabled": True, "config": {"networkTopologyTypes": types}, **changes}
    return {"networkTopologyDiscovery": [source]}


def test_the_configuration_names_topologies_by_their_labels() -> None:
    topology = LabelTopology(name="roce", labels=["spine", "leaf", "kubernetes.io/hostname"])
    assert parse_discovery(_discovery()) == Discovery(topologies=(topology,))
    assert parse_discovery(_discovery(enabled=False)) == Discovery()
    assert parse_discovery(_discovery(enabled=False, source="roce")) == Discovery()
    assert parse_discovery(None) == Discovery()


def _fabric(config: Any = None, **changes: Any) -> Json:
    """A file with a fabric manager, beside the label topologies."""
    source = {"source": "ufm", "enabled": True, "config": config or {"endpoint": "ufm.example.com"}, **changes}
    return {"networkTopologyDiscovery": [_discovery()["networkTopologyDiscovery"][0], source]}


def test_the_configuration_names_a_fabric_manager() -> None:
    assert parse_discovery(_fabric()).fabric == Fabric(endpoint="https://ufm.example.com")
    secret = {"secretRef": {"namespace": "volcano-system", "name": "ufm"}}
    config = {"endpoint": "http://10.1.2.3:8080/", "insecureSkipVerify": True}
    assert parse_discovery(_fabric(config, interval="90s", credentials=secret)).fabric == Fabric(
        endpoint="http://10.1.2.3:8080", insecure=True, interval=timedelta(seconds=90), secret=("volcano-system", "ufm")
    )
    assert parse_discovery(_fabric(enabled=False)).fabric is None


def _types(**types: Any) -> Json:
    return _discovery(config={"networkTopologyTypes": types})


PAIR = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ([1], "the file: want a mapping"),
        ({"networkTopologyDiscovery": {}}, "networkTopologyDiscovery: want a list"),
        (_discovery(enabled="yes"), "networkTopologyDiscovery[0].enabled: 'yes' is neither true nor false"),
        (_discovery(source="roce"), "networkTopologyDiscovery[0].source: 'roce' isn't supported, want label or ufm"),
        (_fabric({"endpoint": 3}), "networkTopologyDiscovery[1].config.endpoint: 3 is no address"),
        (_fabric({"endpoint": ""}), "config.endpoint: '' is no address"),
        (_fabric({"endpoint": "ftp://ufm"}), "config.endpoint: 'ftp://ufm' is no address"),
        (_fabric({"endpoint": "https://me:secret@ufm"}), "is no address"),
        (_fabric({"endpoint": "https://ufm:port"}), "is no address"),
        (_fabric({"endpoint": "ufm", "insecureSkipVerify": 1}), "insecureSkipVerify: 1 is neither true nor false"),
        (_fabric(interval="1s"), "networkTopologyDiscovery[1].interval: '1s' is no interval, want a duration of 10s"),
        (_fabric(interval=60), "networkTopologyDiscovery[1].interval: 60 is no interval"),
        (_fabric(credentials={"secretRef": {"name": "a"}}), "credentials.secretRef.namespace: None is no name"),
        (
            {"networkTopologyDiscovery": _fabric()["networkTopologyDiscovery"][1:] * 2},
            "networkTopologyDiscovery[1].source: a second ufm source is switched on, want one",
        ),
        (_discovery(intervall="1h"), "networkTopologyDiscovery[0].intervall: no such field"),
        (_types(x=[{"nodeLabel": "rack"}]), "x: 1 labels, want the domains' and last the node's own"),
        (_types(x=[*PAIR, {"nodeLabel": "rack"}]), "x[2].nodeLabel: rack is there twice"),
        (_types(x=[*PAIR, {"nodeLabel": "a b"}]), "x[2].nodeLabel: 'a b' is no name of a label"),
        (_types(**{"x" * 21: PAIR}), "the name has 21 characters, want 1 to 20"),
        (_types(**{"a.b": PAIR, "A-B": PAIR}), "a.b and A-B make HyperNodes of the same name"),
    ],
)
def test_a_configuration_that_is_none_is_refused_with_its_place(given: Any, error: str) -> None:
    with pytest.raises(MalformedDiscovery) as refused:
        parse_discovery(given)
    assert error in str(refused.value)
