"""The HyperNode controller's decisions: `decide` counts the nodes of a HyperNode, `discovery` derives HyperNodes from
node labels and `fabric` from the data of a fabric manager."""

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
