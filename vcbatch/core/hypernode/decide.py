"""The decision of one reconciliation of a HyperNode."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vcbatch.api.hypernode import HyperNode
from vcbatch.api.model import Json
from vcbatch.api.reasons import HyperNodeReason
from vcbatch.api.resources import HYPERNODES
from vcbatch.api.timestamps import format_time
from vcbatch.api.topology import Place
from vcbatch.core.machine import Decision, WriteStatus, ref_of

CONSISTENT: Final = "Consistent"
"""The condition that says whether a HyperNode has a valid position in a tree."""


def decide(hyper_node: HyperNode, place: Place, *, now: datetime) -> Decision:
    """The number of nodes below the HyperNode, and its errors, where they differ from the stored ones."""
    if hyper_node.metadata.deletion_timestamp:
        return Decision()
    stored = hyper_node.status.dump()
    others = [condition for condition in hyper_node.status.conditions if condition.get("type") != CONSISTENT]
    decided = {
        **stored,
        "nodeCount": len(place.nodes),
        "conditions": [*others, _condition(hyper_node, place, now)],
    }
    if decided == stored:
        return Decision()
    ref = ref_of(HYPERNODES, hyper_node)
    version = hyper_node.metadata.resource_version
    return Decision(status=WriteStatus(ref=ref, resource_version=version, status=decided))


def _condition(hyper_node: HyperNode, place: Place, now: datetime) -> Json:
    before = next((found for found in hyper_node.status.conditions if found.get("type") == CONSISTENT), None) or {}
    status = "False" if place.flaws else "True"
    return {
        "type": CONSISTENT,
        "status": status,
        "reason": str(place.flaws[0].reason if place.flaws else HyperNodeReason.CONSISTENT),
        "message": "; ".join(flaw.message for flaw in place.flaws),
        "lastTransitionTime": (
            before["lastTransitionTime"]
            if before.get("status") == status and before.get("lastTransitionTime")
            else format_time(now)
        ),
    }
