"""HyperNodes from the labels of nodes (Volcano's discovery source `label`).

A topology is a list of node labels, the widest domain first. Each value that a label has on some node is a HyperNode.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from vcbatch.api import names
from vcbatch.api.hypernode import HyperNode, MemberType
from vcbatch.api.resources import HYPERNODES
from vcbatch.core.machine import Create, Decision, Delete, Json, Mark, ref_of

SOURCE: Final = "label"
_HASH_LENGTH: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelTopology:
    """`labels`: from the widest domain to the node itself, whose label (`kubernetes.io/hostname`) gives no
    HyperNode."""

    name: str
    labels: Sequence[str]


@dataclass(slots=True, kw_only=True)
class _Domain:
    tier: int
    label: str
    value: str
    members: dict[str, None] = field(default_factory=dict[str, None])


def stem(name: str) -> str:
    """The part of HyperNode names that identifies the topology."""
    return re.sub("[^a-z0-9]", "-", name.lower())


def wanted(topology: LabelTopology, nodes: Mapping[str, Mapping[str, str]]) -> list[Json]:
    """The HyperNodes of this topology for nodes with these labels, lowest tier first, then by name.

    A node is in its domains from the lowest up to the first whose label it lacks.
    """
    tiers = list(reversed(topology.labels))[1:]
    domains: dict[tuple[int, str], _Domain] = {}
    for node in sorted(nodes):
        below = node
        for position, label in enumerate(tiers, 1):
            value = nodes[node].get(label)
            if not value:
                break
            domain = domains.setdefault((position, value), _Domain(tier=position, label=label, value=value))
            domain.members[below] = None
            below = _name(topology, position, label, value)
    found = [_body(topology, domain) for domain in domains.values()]
    return sorted(found, key=lambda body: (body["spec"]["tier"], body["metadata"]["name"]))


def reconcile(wanted: Sequence[Json], stored: Sequence[HyperNode], *, source: str = SOURCE) -> Decision:
    """Create, update and delete the HyperNodes of a source, so that they match `wanted`. Those of other sources and
    those that users created are left alone; one that Volcano discovered for the same domain keeps its name."""
    ours = [found for found in stored if found.metadata.labels.get(names.NETWORK_TOPOLOGY_SOURCE) == source]
    taken = _taken_over(wanted, ours) if source == SOURCE else {}
    bodies = [_renamed(body, taken) for body in wanted]
    existing = {found.name: found for found in ours}
    creates = [Create(resource=HYPERNODES, body=body) for body in bodies if body["metadata"]["name"] not in existing]
    marks = [
        Mark(ref=ref_of(HYPERNODES, existing[body["metadata"]["name"]]), patch={"spec": body["spec"]})
        for body in bodies
        if body["metadata"]["name"] in existing and _spec(existing[body["metadata"]["name"]]) != body["spec"]
    ]
    kept = {body["metadata"]["name"] for body in bodies}
    deletes = [Delete(ref=ref_of(HYPERNODES, found)) for found in ours if found.name not in kept]
    return Decision(creates=creates, marks=marks, deletes=deletes)


def _taken_over(wanted: Sequence[Json], ours: Sequence[HyperNode]) -> dict[str, str]:
    """A mapping from the name that a domain would be given to the name that it has."""
    taken: dict[str, str] = {}
    by_domain: dict[tuple[str, str, str], str] = {}
    for found in sorted(ours, key=lambda found: found.name):
        prefix = found.name.rpartition("-")[0]
        for key, value in found.metadata.labels.items():
            by_domain.setdefault((prefix, key, value), found.name)
    existing = {found.name for found in ours}
    for body in wanted:
        name: str = body["metadata"]["name"]
        label: str = body["spec"]["tierName"]
        other = by_domain.get((name.rpartition("-")[0], label, body["metadata"]["labels"][label]))
        if name not in existing and other is not None:
            taken[name] = other
    return taken


def _renamed(body: Json, taken: Mapping[str, str]) -> Json:
    members = [_member(member["type"], taken.get(name := _name_in(member), name)) for member in body["spec"]["members"]]
    name = body["metadata"]["name"]
    return {
        **body,
        "metadata": {**body["metadata"], "name": taken.get(name, name)},
        "spec": {**body["spec"], "members": members},
    }


def _body(topology: LabelTopology, domain: _Domain) -> Json:
    kind = MemberType.NODE if domain.tier == 1 else MemberType.HYPERNODE
    return {
        "apiVersion": HYPERNODES.api_version,
        "kind": HYPERNODES.kind,
        "metadata": {
            "name": _name(topology, domain.tier, domain.label, domain.value),
            "labels": {domain.label: domain.value, names.NETWORK_TOPOLOGY_SOURCE: SOURCE},
        },
        "spec": {
            "tier": domain.tier,
            "tierName": domain.label,
            "members": [_member(kind, member) for member in sorted(domain.members)],
        },
    }


def _member(kind: str, name: str) -> Json:
    return {"type": str(kind), "selector": {"exactMatch": {"name": name}}}


def _name_in(member: Json) -> str:
    name: str = member["selector"]["exactMatch"]["name"]
    return name


def _name(topology: LabelTopology, tier: int, label: str, value: str) -> str:
    """The name of the HyperNode. It depends on the domain alone, so that replicas, or one after a crash, create it
    once."""
    kind = stem(topology.name)
    digest = hashlib.sha256(f"{topology.name}\0{label}\0{value}".encode()).hexdigest()
    return f"hypernode-{kind}-tier{tier}-{digest[:_HASH_LENGTH]}"


def _spec(hyper_node: HyperNode) -> Json:
    return hyper_node.spec.dump()
