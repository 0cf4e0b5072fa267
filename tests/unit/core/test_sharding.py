"""Which nodes each of several schedulers gets, and what of a configuration is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcbatch.api.names import WARMUP
from vcbatch.api.node_shard import NodeShard
from vcbatch.core.sharding import MalformedSharding, NodeLoad, decide, parse_sharding
from vcbatch.core.sharding.decide import shards

Json = dict[str, Any]

TWO = {
    "schedulerConfigs": [
        {
            "name": "volcano",
            "type": "volcano",
            "policies": [
                {"name": "allocation-rate", "arguments": {"minCPUUtil": 0.0, "maxCPUUtil": 0.6}},
                {"name": "node-limit", "arguments": {"minNodes": 1, "maxNodes": 2}},
            ],
        },
        {
            "name": "agent-scheduler",
            "type": "agent",
            "policies": [{"name": "warmup", "weight": 5}, {"name": "node-limit", "arguments": {"maxNodes": 2}}],
        },
    ],
}


def nodes(**utilisations: float) -> list[NodeLoad]:
    return [NodeLoad(name=name, utilisation=load) for name, load in utilisations.items()]


def stored(name: str, *desired: str) -> NodeShard:
    return NodeShard.parse({"metadata": {"name": name, "uid": f"{name}-uid"}, "spec": {"nodesDesired": list(desired)}})


def test_schedulers_choose_one_after_the_other() -> None:
    found = shards(parse_sharding(TWO), nodes(a=0.1, b=0.5, c=0.3, d=0.9, e=0.7))
    assert found == {"volcano": ["b", "c"], "agent-scheduler": ["a", "d"]}


def test_warm_nodes_come_first() -> None:
    warm = NodeLoad(name="z", labels={WARMUP: "true"}, utilisation=0.9)
    found = shards(parse_sharding(TWO), [*nodes(a=0.7, b=0.8), warm])
    assert found == {"volcano": [], "agent-scheduler": ["a", "z"]}


def test_the_fields_of_old_mean_the_same() -> None:
    old = {"cpuUtilizationMin": 0.2, "cpuUtilizationMax": 0.6, "preferWarmupNodes": True, "maxNodes": 1}
    found = shards(parse_sharding({"schedulerConfigs": [{"name": "v", **old}]}), nodes(a=0.1, b=0.3, c=0.59, d=0.61))
    assert found == {"v": ["c"]}


def test_the_limit_is_for_all_nodes_however_many_there_are() -> None:
    many = [NodeLoad(name=f"n{number:03}", utilisation=0.1) for number in range(120)]
    assert {name: len(found) for name, found in shards(parse_sharding(TWO), many).items()} == {
        "volcano": 2,
        "agent-scheduler": 2,
    }


def test_a_scheduler_with_fewer_nodes_than_it_is_to_have_is_told_of() -> None:
    decision = decide(parse_sharding(TWO), nodes(a=0.9), [stored("volcano"), stored("agent-scheduler", "a")])
    (event,) = decision.events
    assert (event.ref.uid, event.type, event.reason) == ("volcano-uid", "Warning", "TooFewNodes")
    assert event.message == "0 nodes are for scheduler volcano, and its minNodes is 1"
    assert not decide(parse_sharding(TWO), nodes(a=0.1), [stored("volcano", "a"), stored("agent-scheduler")]).events


def test_a_share_at_the_border_is_rounded() -> None:
    found = shards(parse_sharding(TWO), nodes(a=0.604, b=0.606))
    assert found == {"volcano": ["a"], "agent-scheduler": ["b"]}


def test_shards_are_made_changed_and_deleted() -> None:
    decision = decide(parse_sharding(TWO), nodes(a=0.1), [stored("agent-scheduler", "a"), stored("other", "a")])
    assert [each.body["spec"] for each in decision.creates] == [{"nodesDesired": ["a"]}]
    assert [(mark.ref.name, mark.patch) for mark in decision.marks] == [
        ("agent-scheduler", {"spec": {"nodesDesired": []}})
    ]
    assert [delete.ref.uid for delete in decision.deletes] == ["other-uid"]


def test_a_small_change_of_a_large_shard_waits() -> None:
    one = parse_sharding(
        {"schedulerConfigs": [{"name": "v", "policies": [{"name": "node-limit", "arguments": {"maxNodes": 30}}]}]}
    )
    there = [NodeLoad(name=f"n{number:02}") for number in range(40)]
    swapped = ["n39", *(f"n{number:02}" for number in range(1, 30))]
    assert not decide(one, there, [stored("v", *swapped)]).marks
    far = ["n39", "n38", "n37", *(f"n{number:02}" for number in range(3, 30))]
    assert decide(one, there, [stored("v", *far)]).marks
    gone = ["gone", *(f"n{number:02}" for number in range(1, 30))]
    assert decide(one, there, [stored("v", *gone)]).marks


@given(
    loads=st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.floats(0, 1.5), max_size=12),
    limits=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
def test_no_node_is_in_two_shards_and_what_is_decided_is_settled(
    loads: dict[str, float], limits: tuple[int, int]
) -> None:
    schedulers = [
        {"name": name, "policies": [{"name": "node-limit", "arguments": {"maxNodes": limit}}]}
        for name, limit in zip(("a", "b"), limits, strict=True)
    ]
    sharding, there = parse_sharding({"schedulerConfigs": schedulers}), nodes(**loads)
    found = shards(sharding, there)
    together = [name for names in found.values() for name in names]
    assert len(together) == len(set(together)) == min(sum(limits), len(loads))
    assert decide(sharding, there, [stored(name, *names) for name, names in found.items()]).nothing_to_do


def test_the_rest_of_the_configuration_is_read() -> None:
    read = parse_sharding({**TWO, "shardSyncPeriod": "2m", "enableNodeEventTrigger": False})
    assert (read.period, read.on_node_events) == (timedelta(minutes=2), False)
    assert parse_sharding(TWO).period == timedelta(seconds=60)


def policy(**fields: Any) -> Json:
    return {"schedulerConfigs": [{"name": "v", "policies": [fields]}]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "schedulerConfigs: nothing there, want at least one scheduler"),
        ([], "the file: want a mapping"),
        ({"schedulers": []}, "the file.schedulers: no such field"),
        ({"schedulerConfigs": {}}, "schedulerConfigs: want a list"),
        ({"schedulerConfigs": [{"name": "A_B"}]}, "schedulerConfigs[0].name: 'A_B' is no name of an object"),
        ({"schedulerConfigs": [{"name": "v"}, {"name": "v"}]}, "schedulerConfigs[1].name: v is there twice"),
        ({"schedulerConfigs": [{"name": "v", "type": "yarn"}]}, "[0].type: 'yarn' isn't known, want one of volcano"),
        (policy(name="best"), "policies[0].name: 'best' isn't known, want one of allocation-rate"),
        (policy(name="warmup", weight=-1), "policies[0].weight: -1, want a number of 0 or more"),
        (policy(name="warmup", arguments={"minNodes": 1}), "arguments.minNodes: no such field, want some of warm"),
        (policy(name="allocation-rate", arguments={"maxCPUUtil": 2}), "maxCPUUtil: 2, want a number from 0 to 1"),
        (policy(name="allocation-rate", arguments={"minCPUUtil": 1, "maxCPUUtil": 0.5}), "1.0 is above maxCPUUtil"),
        (policy(name="node-limit", arguments={"maxNodes": 1.5}), "maxNodes: 1.5, want a whole number"),
        (policy(name="node-limit", arguments={"minNodes": 3, "maxNodes": 1}), "minNodes: 3 is above maxNodes, 1"),
        ({**TWO, "shardSyncPeriod": "10ms"}, "shardSyncPeriod: '10ms' is too short"),
        ({**TWO, "shardSyncPeriod": 60}, "shardSyncPeriod: 60 is too short"),
        ({**TWO, "enableNodeEventTrigger": "yes"}, "enableNodeEventTrigger: 'yes' is neither true nor false"),
    ],
)  # fmt: skip
def test_what_cant_be_followed_is_refused(given: Any, said: str) -> None:
    with pytest.raises(MalformedSharding) as caught:
        parse_sharding(given)
    assert said in str(caught.value)
