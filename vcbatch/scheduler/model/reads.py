"""What the scheduler reads: every kind, with the struct it is decoded to, in the order in which a world is told."""

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
    """One kind. `key` names its list in a world file; `optional` where a cluster may not serve it; `of_nodes` where it
    says what nodes are, so that filters kept for them are computed again when it changes."""

    key: str
    resource: Resource
    struct: type[msgspec.Struct]
    optional: bool = False
    of_nodes: bool = False
    single: bool = False
    """Only single ones are read, by name, of those who need them; they are never listed."""


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
"""A kind that is none of the snapshot's own is kept in `Snapshot.facts`; to have another one read, add its line."""

MEASURED: Sequence[Read] = (Read("nodeUsages", resources.NODE_USAGES, NodeUsage),)
"""What no API serves as it is read: the runtime makes these objects of what it measures."""
