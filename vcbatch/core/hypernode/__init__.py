"""The HyperNode controller's decisions: `decide` says how many nodes are in one, `discovery` makes them from labels."""

from vcbatch.core.hypernode.config import MalformedDiscovery, parse_discovery
from vcbatch.core.hypernode.decide import decide
from vcbatch.core.hypernode.discovery import LabelTopology, reconcile, wanted

__all__ = ["LabelTopology", "MalformedDiscovery", "decide", "parse_discovery", "reconcile", "wanted"]
