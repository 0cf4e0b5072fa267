"""Decides whether a gang of equal pods fits in a topology domain: every domain is tried by brute force, one pod
at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HyperNode:
    """The names of the nodes and HyperNodes that are its members."""

    tier: int
    nodes: Sequence[str] = ()
    below: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Network:
    """HyperNodes by name, and the free CPUs of every node."""

    hyper_nodes: Mapping[str, HyperNode]
    free: Mapping[str, int]

    def nodes_of(self, name: str) -> set[str]:
        hyper_node = self.hyper_nodes[name]
        found = set(hyper_node.nodes)
        for child in hyper_node.below:
            found |= self.nodes_of(child)
        return found & set(self.free)

    def domains(self) -> list[tuple[int, set[str]]]:
        """Every domain with its tier, with the whole cluster as the root."""
        found = [(hyper_node.tier, self.nodes_of(name)) for name, hyper_node in self.hyper_nodes.items()]
        return [*found, (max((tier for tier, _ in found), default=0) + 1, set(self.free))]

    def takes(self, nodes: set[str], cpu: int, pods: int) -> bool:
        left = {node: self.free[node] for node in nodes}
        for _ in range(pods):
            node = next((node for node in sorted(left) if left[node] >= cpu), None)
            if node is None:
                return False
            left[node] -= cpu
        return True

    def tier_of(self, nodes: set[str]) -> int:
        """The lowest tier of a domain that contains all these nodes."""
        return min(tier for tier, domain in self.domains() if nodes <= domain)

    def nearest(self, *, limit: int | None, held: set[str], cpu: int, pods: int) -> int | None:
        """The lowest tier, up to the limit (None for no limit), of a domain that fits the pods and is in a common
        domain up to the limit with the nodes that are `held`; None where there is none."""
        fitting = [
            tier
            for tier, nodes in self.domains()
            if (limit is None or tier <= limit)
            and self.takes(nodes, cpu, pods)
            and any((limit is None or t <= limit) and nodes | held <= domain for t, domain in self.domains())
        ]
        return min(fitting, default=None)
