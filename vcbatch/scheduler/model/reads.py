"""The kinds that the scheduler reads, with the struct of each, in the order in which a scheduler receives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from vcbatch.api import resources
from vcbatch.api.config_map import ConfigMap
from vcbatch.api.disruption import DisruptionBudget
from vcbatch.api.dra import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from vcbatch.api.namespace import Namespace
from vcbatch.api.node import Node
from vcbatch.api.node_shard import NodeShardView
from vcbatch.api.numatopology import NumatopologyView
from vcbatch.api.pod import Pod
from vcbatch.api.quota import Quota
from vcbatch.api.resources import Resource
from vcbatch.api.scheduling import HyperNodeView, PodGroupView, PriorityClassView, QueueView
from vcbatch.api.storage import (
    Claim,
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    StorageClass,
)
from vcbatch.api.usage import NodeUsage


@dataclass(frozen=True, slots=True)
class Read:
    """One kind. `key` names its list in a file; `optional` if a cluster may not serve it; `of_nodes` if it describes
    nodes, so that cached filters are recomputed when it changes."""

    key: str
    resource: Resource
    struct: type[msgspec.Struct]
    optional: bool = False
    of_nodes: bool = False
    single: bool = False
    """Only single objects are read, by name, those that are needed; they are never listed."""


READS: Sequence[Read] = (
    Read("priorityClasses", resources.PRIORITYCLASSES, PriorityClassView),
    Read("queues", resources.QUEUES, QueueView),
    Read("nodes", resources.NODES, Node),
    Read("hyperNodes", resources.HYPERNODES, HyperNodeView, optional=True),
    Read("nodeShards", resources.NODESHARDS, NodeShardView, optional=True, of_nodes=True),
    Read("configMaps", resources.CONFIGMAPS, ConfigMap, single=True),
    Read("numatopologies", resources.NUMATOPOLOGIES, NumatopologyView, optional=True),
    Read("deviceClasses", resources.DEVICECLASSES, DeviceClass, optional=True),
    Read("resourceSlices", resources.RESOURCESLICES, ResourceSlice, optional=True),
    Read("deviceTaintRules", resources.DEVICETAINTRULES, DeviceTaintRule, optional=True),
    Read("resourceClaims", resources.RESOURCECLAIMS, ResourceClaim, optional=True),
    Read("namespaces", resources.NAMESPACES, Namespace),
    Read("csiDrivers", resources.CSIDRIVERS, CsiDriver, optional=True),
    Read("csiStorageCapacities", resources.CSISTORAGECAPACITIES, CsiStorageCapacity, optional=True),
    Read("storageClasses", resources.STORAGECLASSES, StorageClass),
    Read("csiNodes", resources.CSINODES, CsiNode),
    Read("pvs", resources.PERSISTENTVOLUMES, PersistentVolume),
    Read("pvcs", resources.PERSISTENTVOLUMECLAIMS, Claim),
    Read("resourceQuotas", resources.RESOURCEQUOTAS, Quota),
    Read("podDisruptionBudgets", resources.PODDISRUPTIONBUDGETS, DisruptionBudget, optional=True),
    Read("podGroups", resources.PODGROUPS, PodGroupView),
    Read("pods", resources.PODS, Pod),
)
"""Kinds that aren't part of the snapshot proper are kept in `Snapshot.facts`; a line here adds another one."""

MEASURED: Sequence[Read] = (Read("nodeUsages", resources.NODE_USAGES, NodeUsage),)
"""Kinds that no API serves in this form: the runtime creates these objects from measurements."""
