"""Which NodeShards should exist, and with which nodes.

The schedulers choose one after the other from the nodes that are left: filters first, then the best by the sum of the
weighted scores, then up to the limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never

from vcbatch.api.node_shard import NodeShard
from vcbatch.api.reasons import NodeShardReason
from vcbatch.api.resources import NODESHARDS
from vcbatch.core.machine import Create, Decision, Delete, Emit, EventType, Mark, ref_of
from vcbatch.core.sharding.config import AllocationRate, NodeLimit, SchedulerShare, Sharding, Warmup

_DIGITS: Final = 2
_WORTH: Final = 0.1
"""A NodeShard is rewritten when this share of its nodes changes: each change makes a scheduler release nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLoad:
    """`utilisation`: the share of its cpus that unfinished pods request."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    utilisation: float = 0.0


def decide(sharding: Sharding, nodes: Sequence[NodeLoad], stored: Sequence[NodeShard]) -> Decision:
    """Create, update and delete NodeShards, so that each scheduler has exactly one. `stored`: all that exist."""
    wanted = shards(sharding, nodes)
    existing = {shard.name: shard for shard in stored}
    there = {node.name for node in nodes}
    return Decision(
        marks=[
            Mark(ref=ref_of(NODESHARDS, existing[name]), patch={"spec": {"nodesDesired": desired}})
            for name, desired in wanted.items()
            if name in existing and _is_worth_it(existing[name].spec.nodes_desired, desired, there)
        ],
        deletes=[Delete(ref=ref_of(NODESHARDS, shard)) for name, shard in existing.items() if name not in wanted],
        creates=[
            Create(
                resource=NODESHARDS,
                body={
                    "apiVersion": NODESHARDS.api_version,
                    "kind": NODESHARDS.kind,
                    "metadata": {"name": name},
                    "spec": {"nodesDesired": desired},
                },
            )
            for name, desired in wanted.items()
            if name not in existing
        ],
        events=list(_too_few(sharding, wanted, existing)),
    )


def _too_few(
    sharding: Sharding, wanted: Mapping[str, Sequence[str]], existing: Mapping[str, NodeShard]
) -> Iterator[Emit]:
    for scheduler in sharding.schedulers:
        limits = [each.policy for each in scheduler.policies if isinstance(each.policy, NodeLimit)]
        least = max((limit.least for limit in limits), default=0)
        found = len(wanted[scheduler.name])
        if found < least and scheduler.name in existing:
            yield Emit(
                ref=ref_of(NODESHARDS, existing[scheduler.name]),
                type=EventType.WARNING,
                reason=NodeShardReason.TOO_FEW_NODES,
                message=f"{found} nodes are for scheduler {scheduler.name}, and its minNodes is {least}",
            )


def shards(sharding: Sharding, nodes: Sequence[NodeLoad]) -> dict[str, list[str]]:
    """The names of each scheduler's nodes; no node belongs to two."""
    left = {node.name: node for node in sorted(nodes, key=lambda node: node.name)}
    found: dict[str, list[str]] = {}
    for scheduler in sharding.schedulers:
        chosen = _chosen(scheduler, list(left.values()))
        for name in chosen:
            del left[name]
        found[scheduler.name] = sorted(chosen)
    return found


def _chosen(scheduler: SchedulerShare, nodes: Sequence[NodeLoad]) -> list[str]:
    fitting = [node for node in nodes if all(_fits(each.policy, node) for each in scheduler.policies)]
    by_name = sorted(fitting, key=lambda node: node.name)
    best_first = sorted(
        by_name,
        key=lambda node: -sum(each.weight * _score(each.policy, node) for each in scheduler.policies),
    )
    limits = [each.policy.most for each in scheduler.policies if isinstance(each.policy, NodeLimit)]
    most = min((limit for limit in limits if limit is not None), default=len(best_first))
    return [node.name for node in best_first[:most]]


def _fits(policy: AllocationRate | Warmup | NodeLimit, node: NodeLoad) -> bool:
    return not isinstance(policy, AllocationRate) or policy.least <= round(node.utilisation, _DIGITS) <= policy.most


def _score(policy: AllocationRate | Warmup | NodeLimit, node: NodeLoad) -> float:
    """The score, from 0 to 1."""
    match policy:
        case AllocationRate():
            return min(max(node.utilisation, 0.0), 1.0)
        case Warmup():
            return float(node.labels.get(policy.label) == policy.value)
        case NodeLimit():
            return 0.0
        case _:
            assert_never(policy)


def _is_worth_it(held: Sequence[str], desired: Sequence[str], there: set[str]) -> bool:
    fresh = len(set(desired) - set(held))
    gone = any(name not in there for name in held)
    return len(held) != len(desired) or gone or fresh >= max(1, _WORTH * len(desired))
