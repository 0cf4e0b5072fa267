"""The gang scheduler: all-or-nothing placement with exact reasons, on arrays.

`Scheduler` is the object that a loop keeps (`apply` watch events, `cycle` when dirty, carry out the `CycleResult`);
`parse_policy` reads Volcano's scheduler configuration; plugins are subclasses of
`vcbatch.scheduler.framework.plugin.Plugin`.
"""

from vcbatch.scheduler.framework.arguments import PolicyError
from vcbatch.scheduler.framework.policy import Policy
from vcbatch.scheduler.model.result import (
    Bind,
    CycleResult,
    EventRecord,
    Eviction,
    Explanation,
    PodConditionUpdate,
    PodGroupUpdate,
    QueueStatusUpdate,
    WaitReason,
)
from vcbatch.scheduler.policy.reader import DEFAULT_POLICY, build_policy, default_policy, parse_policy
from vcbatch.scheduler.scheduler import Scheduler

__all__ = [
    "DEFAULT_POLICY",
    "Bind",
    "CycleResult",
    "EventRecord",
    "Eviction",
    "Explanation",
    "PodConditionUpdate",
    "PodGroupUpdate",
    "Policy",
    "PolicyError",
    "QueueStatusUpdate",
    "Scheduler",
    "WaitReason",
    "build_policy",
    "default_policy",
    "parse_policy",
]
