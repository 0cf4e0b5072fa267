"""The scheduling plugins, by the names that a policy file uses."""

from __future__ import annotations

from vcbatch.scheduler.plugins.base import Plugin
from vcbatch.scheduler.plugins.binpack import Binpack
from vcbatch.scheduler.plugins.conformance import Conformance
from vcbatch.scheduler.plugins.drf import DominantResourceFairness
from vcbatch.scheduler.plugins.gang import Gang
from vcbatch.scheduler.plugins.nodeorder import NodeOrder
from vcbatch.scheduler.plugins.overcommit import Overcommit
from vcbatch.scheduler.plugins.predicates import Predicates
from vcbatch.scheduler.plugins.priority import Priority
from vcbatch.scheduler.plugins.proportion import Proportion

PLUGINS: dict[str, type[Plugin]] = {
    "binpack": Binpack,
    "conformance": Conformance,
    "drf": DominantResourceFairness,
    "gang": Gang,
    "nodeorder": NodeOrder,
    "overcommit": Overcommit,
    "predicates": Predicates,
    "priority": Priority,
    "proportion": Proportion,
}

UNSUPPORTED_PLUGINS = frozenset(
    {
        "capacity",
        "cdp",
        "deviceshare",
        "extender",
        "network-topology-aware",
        "nodegroup",
        "numa-aware",
        "pdb",
        "rescheduling",
        "resource-strategy-fit",
        "resourcequota",
        "sla",
        "task-topology",
        "tdm",
        "usage",
    }
)
"""Names that Volcano knows and this scheduler doesn't: refused as such, so that nobody looks for a typing error."""
