"""HyperNodes from the ports that a fabric manager reports (Volcano's discovery source `ufm`, for InfiniBand).

Nodes that are connected to the same leaf switches are a HyperNode of tier 1, and all of these are in one of tier 2.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from vcbatch.api import name_rules, names
from vcbatch.api.hypernode import MemberType
from vcbatch.api.resources import HYPERNODES
from vcbatch.core.machine import Json

SOURCE: Final = "ufm"
INTERVAL: Final = timedelta(hours=1)
_SPINE: Final = "spine-hn"
_HASH_LENGTH: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """The endpoint of a fabric manager, the polling interval, and the Secret (namespace, name) with `username` and
    `password`."""

    endpoint: str
    insecure: bool = False
    interval: timedelta = INTERVAL
    secret: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A node's port and the leaf switch at its other end."""

    leaf: str
    node: str


def wanted_of_fabric(links: Iterable[Link]) -> list[Json]:
    """The HyperNodes of a fabric with these links: leaves by name, and last the spine above them.

    Leaf switches that share a node are one domain, since a node may be in one only. Links whose name is no valid node
    name are left out.
    """
    domains = _domains([link for link in links if link.leaf and link.node and not name_rules.dns_subdomain(link.node)])
    leaves = [_body(name, 1, MemberType.NODE, nodes) for name, nodes in sorted(domains.items())]
    return [*leaves, _body(_SPINE, 2, MemberType.HYPERNODE, domains)] if leaves else []


def _domains(links: Iterable[Link]) -> Mapping[str, list[str]]:
    """The nodes of each domain, by the name of its HyperNode."""
    leaves_of: defaultdict[str, list[str]] = defaultdict(list)
    first: dict[str, str] = {}

    def root(leaf: str) -> str:
        while first[leaf] != leaf:
            first[leaf] = first[first[leaf]]
            leaf = first[leaf]
        return leaf

    for link in links:
        first.setdefault(link.leaf, link.leaf)
        leaves_of[link.node].append(link.leaf)
    for leaves in leaves_of.values():
        for leaf in leaves[1:]:
            one, other = sorted((root(leaves[0]), root(leaf)))
            first[other] = one
    domains: defaultdict[str, list[str]] = defaultdict(list)
    for node in sorted(leaves_of):
        domains[_name(root(leaves_of[node][0]))].append(node)
    return domains


def _name(leaf: str) -> str:
    """The name, which depends on a domain's first leaf switch and not on the order of ports; Volcano numbers them."""
    return f"leaf-hn-{hashlib.sha256(leaf.encode()).hexdigest()[:_HASH_LENGTH]}"


def _body(name: str, tier: int, kind: MemberType, members: Iterable[str]) -> Json:
    selectors = [{"type": str(kind), "selector": {"exactMatch": {"name": each}}} for each in sorted(members)]
    return {
        "apiVersion": HYPERNODES.api_version,
        "kind": HYPERNODES.kind,
        "metadata": {"name": name, "labels": {names.NETWORK_TOPOLOGY_SOURCE: SOURCE}},
        "spec": {"tier": tier, "members": selectors},
    }
