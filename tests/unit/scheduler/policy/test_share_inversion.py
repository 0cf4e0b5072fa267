"""Policies in which reclaim takes from queues what they deserve are warned of, and the others aren't."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.tiers import policy_of, with_option_off
from vcbatch.scheduler import DEFAULT_POLICY, parse_policy

KEEPING = ("gang", "conformance", "pdb", "cdp", "disruption")


def _policy(*tiers: str, actions: str = "allocate, reclaim") -> str:
    return policy_of(*tiers, actions=actions)


def _off(policy: str, plugin: str) -> str:
    return with_option_off(policy, plugin, "enableReclaimable")


def _takes_what_is_deserved(policy: str) -> bool:
    """Whether a queue below its share takes pods from one that uses just what it deserves: each deserves 4 of 8 cpus,
    and the 3 free ones lie on two nodes, so that a pod of 2 and one of 1 fit, and a second one of 2 doesn't."""
    cluster = Cluster(parse_policy(policy))
    for node in ("n0", "n1"):
        cluster.node(node, cpu="4")
    for queue in ("lender", "owner"):
        cluster.queue(queue, weight=1, deserved={"cpu": "4", "memory": "32Gi"})
    for name, queue, nodes in (("old", "lender", ["n0", "n0", "n0", "n1"]), ("own", "owner", ["n1", "n1"])):
        cluster.gang(name, 0, minimum=1, queue=queue)
        for index, node in enumerate(nodes):
            cluster.pod(name, index, nodeName=node)
        cluster.run(name)
    cluster.gang("asking", 1, queue="owner", cpu="2")
    return bool(cluster.cycle().evictions)


@pytest.mark.parametrize("shares", ["proportion", "capacity"])
@pytest.mark.parametrize("keeping", KEEPING)
@pytest.mark.parametrize("first", [False, True], ids=["later", "earlier"])
def test_a_plugin_that_only_keeps_pods_is_warned_of_without_the_shares_in_its_tier(
    shares: str, keeping: str, first: bool
) -> None:
    tiers = (f"{keeping} predicates priority", shares) if first else (shares, f"{keeping} predicates priority")
    text = _policy(*tiers)
    [warning] = parse_policy(text).warnings
    own, home, line = (0, 1, 4) if first else (1, 0, 6)
    assert str(warning) == (
        f"line {line}, column 12: policy.tiers[{own}].plugins[0].name: {keeping} should be in the tier of {shares} "
        f"(policy.tiers[{home}]), or have enableReclaimable: false; in this tier it lets reclaim evict pods of queues "
        "that use no more than they deserve"
    )
    assert _takes_what_is_deserved(text)
    for corrected in (_off(text, keeping), _policy(f"{shares} {keeping}", "predicates priority")):
        assert not parse_policy(corrected).warnings
        assert not _takes_what_is_deserved(corrected)


@pytest.mark.parametrize(
    "text",
    [
        DEFAULT_POLICY,
        _policy("gang", "proportion", actions="allocate, gangreclaim"),
        _policy("gang conformance", "predicates drf"),
        _policy("gang proportion", "drf predicates"),
        _off(_policy("gang", "proportion"), "proportion"),
    ],
    ids=["built-in", "whole gangs", "no shares", "drf says nothing", "shares are off"],
)
def test_other_policies_are_not(text: str) -> None:
    assert not parse_policy(text).warnings
