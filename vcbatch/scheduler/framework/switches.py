"""The switches by which a scheduler configuration disables single callbacks of a plugin, in Volcano's spelling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum


class Switch(StrEnum):
    """A key beside `name` and `arguments` in a plugin entry of the scheduler configuration."""

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
"""Switches that are off unless the scheduler configuration sets them; every other one is on."""

HOOKS: Mapping[Switch, Sequence[str]] = {
    Switch.JOB_ORDER: ("job_key",),
    Switch.TASK_ORDER: ("task_key",),
    Switch.QUEUE_ORDER: ("queue_key",),
    Switch.JOB_READY: ("job_ready", "tasks_until_ready"),
    Switch.JOB_PIPELINED: ("job_pipelined",),
    Switch.JOB_STARVING: ("job_starving",),
    Switch.JOB_ENQUEUED: ("enqueueable", "enqueued", "count_admission", "admission_needed"),
    Switch.PREDICATE: ("rejections", "caps", "task_rejections"),
    Switch.NODE_ORDER: ("preferences", "scores", "task_scores", "leaning"),
    Switch.HYPER_NODE_ORDER: ("domain_scores",),
    Switch.HYPER_NODE_GRADIENT: ("domain_order",),
    Switch.PREEMPTABLE: ("preemptable",),
    Switch.RECLAIMABLE: ("reclaimable",),
    Switch.PREEMPTIVE: ("preemptive",),
    Switch.OVERUSED: ("overused",),
    Switch.ALLOCATABLE: ("room", "room_of", "ledger", "barred"),
    Switch.VICTIM: ("unwanted", "movable"),
}
"""The plugin methods that each switch controls, by their names; a switch that isn't listed controls none."""
