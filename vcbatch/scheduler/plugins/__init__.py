"""The scheduling plugins, by the names that a scheduler configuration uses."""

from __future__ import annotations

from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.plugins.binpack import Binpack
from vcbatch.scheduler.plugins.capacity import Capacity
from vcbatch.scheduler.plugins.cdp import CoolDown
from vcbatch.scheduler.plugins.conformance import Conformance
from vcbatch.scheduler.plugins.deviceshare import DeviceShare
from vcbatch.scheduler.plugins.disruption import Disruption
from vcbatch.scheduler.plugins.drf import DominantResourceFairness
from vcbatch.scheduler.plugins.extender import Extender
from vcbatch.scheduler.plugins.fair_share import FairShare
from vcbatch.scheduler.plugins.gang import Gang
from vcbatch.scheduler.plugins.network_topology_aware import NetworkTopologyAware
from vcbatch.scheduler.plugins.nodegroup import NodeGroup
from vcbatch.scheduler.plugins.nodeorder import NodeOrder
from vcbatch.scheduler.plugins.numa_aware import NumaAware
from vcbatch.scheduler.plugins.overcommit import Overcommit
from vcbatch.scheduler.plugins.pdb import DisruptionBudgets
from vcbatch.scheduler.plugins.predicates import Predicates
from vcbatch.scheduler.plugins.priority import Priority
from vcbatch.scheduler.plugins.proportion import Proportion
from vcbatch.scheduler.plugins.rescheduling import Rescheduling
from vcbatch.scheduler.plugins.resource_strategy_fit import ResourceStrategyFit
from vcbatch.scheduler.plugins.resourcequota import ResourceQuotas
from vcbatch.scheduler.plugins.sla import Sla
from vcbatch.scheduler.plugins.stale_gang import StaleGang
from vcbatch.scheduler.plugins.task_topology import TaskTopologyPlugin
from vcbatch.scheduler.plugins.tdm import Tdm
from vcbatch.scheduler.plugins.usage import Usage

PLUGINS: dict[str, type[Plugin]] = {
    "binpack": Binpack,
    "capacity": Capacity,
    "cdp": CoolDown,
    "conformance": Conformance,
    "deviceshare": DeviceShare,
    "disruption": Disruption,
    "drf": DominantResourceFairness,
    "extender": Extender,
    "fair-share": FairShare,
    "gang": Gang,
    "network-topology-aware": NetworkTopologyAware,
    "nodegroup": NodeGroup,
    "nodeorder": NodeOrder,
    "numa-aware": NumaAware,
    "overcommit": Overcommit,
    "pdb": DisruptionBudgets,
    "predicates": Predicates,
    "priority": Priority,
    "proportion": Proportion,
    "resourcequota": ResourceQuotas,
    "sla": Sla,
    "resource-strategy-fit": ResourceStrategyFit,
    "stale-gang": StaleGang,
    "task-topology": TaskTopologyPlugin,
    "rescheduling": Rescheduling,
    "tdm": Tdm,
    "usage": Usage,
}

UNSUPPORTED_PLUGINS: frozenset[str] = frozenset({})
"""Names that Volcano knows and this scheduler doesn't: rejected with a message of their own, so that they aren't taken
for typing errors."""
