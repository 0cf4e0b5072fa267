"""The sharding controller's decisions: which nodes are for which of several schedulers."""

from vcbatch.core.sharding.config import MalformedSharding, Sharding, parse_sharding
from vcbatch.core.sharding.decide import NodeLoad, decide

__all__ = ["MalformedSharding", "NodeLoad", "Sharding", "decide", "parse_sharding"]
