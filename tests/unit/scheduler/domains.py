"""HyperNodes for a `Cluster`, in a few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tests.unit.scheduler.cluster import Cluster
from vcbatch.api.resources import HYPERNODES
from vcbatch.api.scheduling import HyperNodeView

Json = dict[str, Any]


def hyper_node(
    name: str, tier: int, *, nodes: Sequence[str] = (), below: Sequence[str] = (), tier_name: str = ""
) -> Json:
    """A HyperNode with these nodes and HyperNodes as members, by name."""
    members = [("Node", node) for node in nodes] + [("HyperNode", one) for one in below]
    return {
        "metadata": {"name": name, "uid": f"hyper-{name}"},
        "spec": {
            "tier": tier,
            "tierName": tier_name,
            "members": [{"type": kind, "selector": {"exactMatch": {"name": of}}} for kind, of in members],
        },
    }


def send(cluster: Cluster, raw: Json, *, event: str = "ADDED") -> None:
    cluster.scheduler.apply(HYPERNODES, event, msgspec.convert(raw, HyperNodeView))


def racks(cluster: Cluster, sizes: Mapping[str, int], *, spines: Mapping[str, Sequence[str]] | None = None) -> None:
    """Racks (tier 1) of so many nodes of 8 cpus each, `rack-0` and so on, and spines (tier 2) of racks."""
    for rack, size in sizes.items():
        names = [f"{rack}-{i}" for i in range(size)]
        for name in names:
            cluster.node(name, labels={"rack": rack})
        send(cluster, hyper_node(rack, 1, nodes=names, tier_name="rack"))
    for spine, below in (spines or {}).items():
        send(cluster, hyper_node(spine, 2, below=below, tier_name="spine"))


def hard(tier: int | str) -> Json:
    """`networkTopology` of a gang that stays within a domain of this tier, by number or name."""
    key = "highestTierAllowed" if isinstance(tier, int) else "highestTierName"
    return {"mode": "hard", key: tier}


SOFT: Json = {"mode": "soft"}
