"""The switches by which a policy turns single callbacks of a plugin off, in Volcano's spelling."""

from __future__ import annotations

from enum import StrEnum


class Switch(StrEnum):
    """A key beside `name` and `arguments` in a policy's plugin entry."""

    JOB_ORDER = "enableJobOrder"
    TASK_ORDER = "enableTaskOrder"
    QUEUE_ORDER = "enableQueueOrder"
    CLUSTER_ORDER = "enabledClusterOrder"
    SUB_JOB_ORDER = "enabledSubJobOrder"
    JOB_READY = "enableJobReady"
    SUB_JOB_READY = "enabledSubJobReady"
    JOB_PIPELINED = "enableJobPipelined"
    SUB_JOB_PIPELINED = "enabledSubJobPipelined"
    JOB_STARVING = "enableJobStarving"
    JOB_ENQUEUED = "enableJobEnqueued"
    PREDICATE = "enablePredicate"
    BEST_NODE = "enableBestNode"
    NODE_ORDER = "enableNodeOrder"
    HYPER_NODE_ORDER = "enabledHyperNodeOrder"
    HYPER_NODE_GRADIENT = "enabledHyperNodeGradient"
    PREEMPTABLE = "enablePreemptable"
    RECLAIMABLE = "enableReclaimable"
    PREEMPTIVE = "enablePreemptive"
    OVERUSED = "enabledOverused"
    ALLOCATABLE = "enabledAllocatable"
    VICTIM = "enabledVictim"
    TARGET_JOB = "enableTargetJob"
    RESERVED_NODES = "enableReservedNodes"
    HIERARCHY = "enableHierarchy"


DEFAULT_OFF = frozenset({Switch.HIERARCHY, Switch.CLUSTER_ORDER})
"""Switches that are off where a policy doesn't name them; every other one is on."""
