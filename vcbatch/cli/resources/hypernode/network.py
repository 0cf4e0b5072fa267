"""The HyperNodes of a cluster as a tree over its nodes, with the requests on these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vcbatch.api.hypernode import HyperNodeSpec
from vcbatch.api.loose import part
from vcbatch.api.model import MalformedObject
from vcbatch.api.names import GPU_RESOURCE
from vcbatch.api.quantity import ZERO, Quantity
from vcbatch.api.resources import HYPERNODES, NODES, PODS
from vcbatch.api.topology import Place, Topology
from vcbatch.cli.base.fields import name_of, number, objects, quantities, text, words
from vcbatch.cli.resources.nodes_table import Load, loads_of
from vcbatch.cli.resources.reading import within_reach
from vcbatch.core.hypernode.decide import CONSISTENT
from vcbatch.interfaces.api import Api

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """`nodes` is empty where nodes can't be read."""

    hypernodes: Mapping[str, Json]
    places: Mapping[str, Place]
    nodes: Mapping[str, Json]
    loads: Mapping[str, Load]

    def size(self, name: str) -> int:
        """The number of nodes in a domain, at any depth."""
        return len(self.places[name].nodes) if self.nodes else number(self.hypernodes[name], "status", "nodeCount")

    def parents(self, name: str) -> list[str]:
        """The domains that it is a member of; a valid one has at most one."""
        return sorted(other for other, place in self.places.items() if name in place.children)

    def lineage(self, name: str) -> set[str]:
        """The domain and all domains below it."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += self.places[one].children
        return found

    def has(self, name: str, resource: str) -> Quantity:
        """The allocatable quantity of a resource of its nodes."""
        allocatable = (quantities(self.nodes[node], "status", "allocatable") for node in self.places[name].nodes)
        return sum((each.get(resource, ZERO) for each in allocatable), ZERO)

    def asked(self, name: str) -> Load:
        """The requests of the pods on its nodes."""
        total = Load()
        for load in (self.loads[node] for node in self.places[name].nodes if node in self.loads):
            total = total + load
        return total

    def outside(self) -> list[str]:
        """The nodes that are in no domain."""
        inside: set[str] = set().union(*(place.nodes for place in self.places.values()))
        return sorted(self.nodes.keys() - inside)

    @property
    def has_gpus(self) -> bool:
        return any(quantities(node, "status", "allocatable").get(GPU_RESOURCE) for node in self.nodes.values())


async def read_network(api: Api, *known: Json) -> Network:
    """The network, with nodes and pods as far as they may be read, and in any case the `known` HyperNodes. Raises
    `ApiError` where HyperNodes can't be read."""
    hypernodes = [*known, *(await api.list(HYPERNODES)).items]
    if not hypernodes:
        return network_of(())
    return network_of(hypernodes, nodes=await within_reach(api, NODES), pods=await within_reach(api, PODS))


def network_of(hypernodes: Iterable[Json], nodes: Sequence[Json] = (), pods: Sequence[Json] = ()) -> Network:
    """The tree of these; a HyperNode that can't be decoded has no members."""
    named = {name_of(one): one for one in hypernodes}
    topology = Topology()
    for name, hypernode in named.items():
        try:
            spec = HyperNodeSpec.parse(part(hypernode, "spec"))
        except MalformedObject:
            spec = HyperNodeSpec(tier=number(hypernode, "spec", "tier"))
        topology.set_hyper_node(name, spec)
    for node in nodes:
        topology.set_node(name_of(node), words(node, "metadata", "labels"))
    return Network(
        hypernodes=named, places=topology.places(), nodes={name_of(node): node for node in nodes}, loads=loads_of(pods)
    )


def tier_of(hypernode: Json) -> str:
    """The tier with its name, if it has one: `2 spine`."""
    return " ".join(filter(None, (str(number(hypernode, "spec", "tier")), text(hypernode, "spec", "tierName"))))


def flaw_of(hypernode: Json) -> str:
    """The error that excludes the HyperNode from the tree, as its controller reports it; empty where there is none."""
    for condition in objects(hypernode, "status", "conditions"):
        if text(condition, "type") == CONSISTENT and text(condition, "status") == "False":
            return text(condition, "message") or text(condition, "reason")
    return ""


def tiers_text(hypernodes: Iterable[Json]) -> str:
    """The number of HyperNodes by tier, the lowest first: `4 of tier 1 leaf, 1 of tier 2 spine`."""
    counts = Counter((number(one, "spec", "tier"), tier_of(one)) for one in hypernodes)
    return ", ".join(f"{count} of tier {title}" for (_, title), count in sorted(counts.items()))
