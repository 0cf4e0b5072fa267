"""The HyperNode controller's decisions: `decide` says how many nodes are in one, `discovery` makes them from labels and
`fabric` from what a fabric manager says."""

from vcbatch.core.hypernode.config import Discovery, MalformedDiscovery, parse_discovery
from vcbatch.core.hypernode.decide import decide
from vcbatch.core.hypernode.discovery import LabelTopology, reconcile, wanted
from vcbatch.core.hypernode.fabric import Fabric, Link, wanted_of_fabric

__all__ = [
    "Discovery",
    "Fabric",
    "LabelTopology",
    "Link",
    "MalformedDiscovery",
    "decide",
    "parse_discovery",
    "reconcile",
    "wanted",
    "wanted_of_fabric",
]
