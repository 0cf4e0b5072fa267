"""The scheduling kinds as the scheduler reads them: reduced structs that decode directly from the wire.

The full models of the same kinds are in `podgroup.py` and `queue.py`; thousands of PodGroups per second are updated
with changed counts only, and the scheduler doesn't need the rest.
"""

from __future__ import annotations

from typing import Any

import msgspec

from vcbatch.api.meta import ObjectMeta, Wire

Quantities = dict[str, str | int | float]


class PodGroupSpecView(Wire):
    min_member: int = 0
    min_task_member: dict[str, int] | None = None
    queue: str = ""
    priority_class_name: str = ""
    min_resources: Quantities | None = None
    network_topology: dict[str, Any] | None = None
    sub_group_policy: list[dict[str, Any]] | None = None


class PodGroupStatusView(Wire):
    """`conditions` stay as decoded JSON, so that conditions of other clients are written back unchanged."""

    phase: str = ""
    conditions: list[dict[str, Any]] | None = None
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroupView(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodGroupSpecView = msgspec.field(default_factory=PodGroupSpecView)
    status: PodGroupStatusView = msgspec.field(default_factory=PodGroupStatusView)


class GuaranteeView(Wire):
    resource: Quantities | None = None


class NodeGroupTermsView(Wire):
    """Names of node groups."""

    required_during_scheduling_ignored_during_execution: list[str] | None = None
    preferred_during_scheduling_ignored_during_execution: list[str] | None = None


class QueueAffinityView(Wire):
    node_group_affinity: NodeGroupTermsView | None = None
    node_group_anti_affinity: NodeGroupTermsView | None = None


class QueueSpecView(Wire):
    weight: int = 1
    capability: Quantities | None = None
    deserved: Quantities | None = None
    guarantee: GuaranteeView | None = None
    reclaimable: bool | None = None
    parent: str = ""
    priority: int = 0
    dequeue_strategy: str = ""
    affinity: QueueAffinityView | None = None


class QueueStatusView(Wire):
    state: str = ""
    allocated: Quantities | None = None


class QueueView(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: QueueSpecView = msgspec.field(default_factory=QueueSpecView)
    status: QueueStatusView = msgspec.field(default_factory=QueueStatusView)


class PriorityClassView(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class NameMatchView(Wire):
    name: str = ""


class PatternMatchView(Wire):
    pattern: str = ""


class MemberSelectorView(Wire):
    exact_match: NameMatchView | None = None
    regex_match: PatternMatchView | None = None
    label_match: dict[str, Any] | None = None


class MemberView(Wire):
    type: str = ""
    selector: MemberSelectorView = msgspec.field(default_factory=MemberSelectorView)


class HyperNodeSpecView(Wire):
    tier: int = 0
    tier_name: str = ""
    members: list[MemberView] | None = None


class HyperNodeView(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: HyperNodeSpecView = msgspec.field(default_factory=HyperNodeSpecView)
