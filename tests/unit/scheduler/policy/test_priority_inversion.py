"""Policies in which low priority evicts high priority are warned of, and the others aren't."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.tiers import policy_of, with_option_off
from vcbatch.scheduler import DEFAULT_POLICY, parse_policy

KEEPING = ("gang", "conformance", "drf", "pdb", "cdp", "disruption")


def _policy(*tiers: str, actions: str = "allocate, preempt") -> str:
    return policy_of(*tiers, actions=actions)


def _off(policy: str, plugin: str) -> str:
    return with_option_off(policy, plugin, "enablePreemptable")


def _evicts_high(policy: str) -> bool:
    """Whether a gang of low priority has pods of a running gang of high priority evicted."""
    cluster = Cluster(parse_policy(policy))
    cluster.node("n", cpu="4")
    cluster.priority("low", 1)
    cluster.priority("high", 10)
    cluster.gang("old", 4, minimum=1, priorityClassName="high")
    cluster.cycle()
    cluster.run("old")
    assert len(cluster.placed("old")) == 4
    cluster.gang("new", 1, priorityClassName="low")
    return bool(cluster.cycle().evictions)


@pytest.mark.parametrize("keeping", KEEPING)
@pytest.mark.parametrize("first", [False, True], ids=["later", "earlier"])
def test_a_plugin_that_only_keeps_pods_is_warned_of_without_priority_in_its_tier(keeping: str, first: bool) -> None:
    tiers = (f"{keeping} predicates", "priority") if first else ("priority", f"{keeping} predicates")
    text = _policy(*tiers)
    [warning] = parse_policy(text).warnings
    own, home, line = (0, 1, 4) if first else (1, 0, 6)
    assert str(warning) == (
        f"line {line}, column 12: policy.tiers[{own}].plugins[0].name: {keeping} should be in the tier of priority "
        f"(policy.tiers[{home}]), or have enablePreemptable: false; in this tier it lets preempt evict gangs of higher "
        "priority"
    )
    assert _evicts_high(text)
    for corrected in (_off(text, keeping), _policy(f"priority {keeping}", "predicates")):
        assert not parse_policy(corrected).warnings
        assert not _evicts_high(corrected)


@pytest.mark.parametrize(
    "text",
    [
        DEFAULT_POLICY.replace("backfill", "preempt"),
        _policy("priority", "pdb", actions="allocate, reclaim"),
        _policy("priority", "pdb", actions="allocate, gangpreempt"),
        _policy("gang", "pdb"),
        _policy("priority gang", "tdm pdb"),
        _off(_policy("priority", "pdb"), "priority"),
        _policy("priority", "predicates proportion nodeorder"),
    ],
    ids=["built-in", "reclaim", "whole gangs", "no priority", "names its own", "priority is off", "no victims"],
)
def test_other_policies_are_not(text: str) -> None:
    assert not parse_policy(text).warnings
