"""The filters of kube-scheduler, except for resources.

Static filters (cordon, node affinity, taints, bound volumes) are computed once per profile; pod slots and host ports
are limits per node; inter-pod rules and unbound claims are checked pod by pod. A pod with a requirement that no filter
here supports stays pending with a reason (`TaskClass.unsupported`), whatever this plugin's arguments are.

Nodes are scored by their storage utilization, if `volumebinding.shape` defines a score for it, and by the alternatives
that device claims would get there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vcbatch.scheduler.framework.arguments import Argument, Arguments, ArgumentSpec
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import Cap, Eligible, Floats, Plugin, PodRule, Rejection, Rows
from vcbatch.scheduler.index.volumes import NO_ZONE, NODE_CONFLICT, VolumeRules
from vcbatch.scheduler.model.classes import Profile, TaskClass
from vcbatch.scheduler.model.objects import Task
from vcbatch.scheduler.model.resources import PODS, Mask
from vcbatch.scheduler.model.result import WaitReason
from vcbatch.scheduler.model.selectors import HARD_EFFECTS, TEMPORARY_TAINTS, UNSCHEDULABLE_TAINT, tolerates
from vcbatch.scheduler.model.tables import NodeTable
from vcbatch.scheduler.plugins.storage_shape import read_shape, storage_score

UNSCHEDULABLE = "node(s) were unschedulable"
NODE_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
POD_COUNT = "node(s) pod number exceeded"
PORTS = "node(s) didn't have free ports for the requested pod ports"

_NODE_AFFINITY_ENABLE = "predicate.NodeAffinityEnable"
_PORTS_ENABLE = "predicate.NodePortsEnable"
_TAINTS_ENABLE = "predicate.TaintTolerationEnable"
_POD_AFFINITY_ENABLE = "predicate.PodAffinityEnable"
_SPREAD_ENABLE = "predicate.PodTopologySpreadEnable"
_LIMITS_ENABLE = "predicate.NodeVolumeLimitsEnable"
_ZONES_ENABLE = "predicate.VolumeZoneEnable"
_BINDING_ENABLE = "predicate.VolumeBindingEnable"
_BINDING_TIMEOUT = "volumebinding.bindTimeoutSeconds"
_BINDING_WEIGHT = "volumebinding.weight"
_BINDING_SHAPE = "volumebinding.shape"
_DEVICES_ENABLE = "predicate.DynamicResourceAllocationEnable"
_DEVICES_TIMEOUT = "dynamicresources.filterTimeoutSeconds"
_DEVICES_READY = "dynamicresources.bindingTimeoutSeconds"
_POD_RULES = {
    _PORTS_ENABLE: PodRule.PORTS,
    _POD_AFFINITY_ENABLE: PodRule.AFFINITY,
    _SPREAD_ENABLE: PodRule.SPREAD,
}


class Predicates(Plugin):
    """`predicate.CacheEnable` has no effect on results: those that depend on the node alone are always cached."""

    BY_AMOUNTS = True
    BY_TERMS = True
    ARGUMENTS = ArgumentSpec(
        named={
            _NODE_AFFINITY_ENABLE: Argument(default=True),
            _PORTS_ENABLE: Argument(default=True),
            _TAINTS_ENABLE: Argument(default=True),
            _POD_AFFINITY_ENABLE: Argument(default=True),
            _SPREAD_ENABLE: Argument(default=True),
            _LIMITS_ENABLE: Argument(default=True),
            _ZONES_ENABLE: Argument(default=True),
            _BINDING_ENABLE: Argument(default=True),
            _BINDING_TIMEOUT: Argument(default=600, minimum=0),
            _BINDING_WEIGHT: Argument(default=1, minimum=0),
            _DEVICES_ENABLE: Argument(default=True),
            _DEVICES_TIMEOUT: Argument(default=10, minimum=1),
            _DEVICES_READY: Argument(default=600, minimum=1),
            "predicate.CacheEnable": Argument(default=False),
        },
        structured={_BINDING_SHAPE: read_shape},
    )

    @classmethod
    def devices_by_claim(cls, arguments: Arguments) -> bool:
        return bool(arguments[_DEVICES_ENABLE])

    def open(self, session: Handle) -> None:
        self.pod_rules = frozenset(rule for name, rule in _POD_RULES.items() if self.arguments[name])
        self._nodes: NodeTable = session.nodes
        self._inter_pod = session.state.inter_pod
        self._volumes = session.state.volumes
        self._claimed = session.state.claimed
        self._claimed.seconds = self.arguments[_DEVICES_TIMEOUT]
        self._claimed.patience = self.arguments[_DEVICES_READY]
        if self._claimed.enabled:
            self._claimed.open(session.state.tasks)
        self._volumes.rules = VolumeRules(
            binding=self.arguments[_BINDING_ENABLE],
            zones=self.arguments[_ZONES_ENABLE],
            limits=self.arguments[_LIMITS_ENABLE],
            timeout=float(self.arguments[_BINDING_TIMEOUT]),
        )

    def rejections(self, profile: Profile) -> Sequence[Rejection]:
        infos = self._nodes.infos
        count = len(infos)
        out: list[Rejection] = []
        cordoned = np.zeros(count, dtype=bool)
        temporary = np.ones(count, dtype=bool)
        tainted: dict[str, Mask] = {}
        for row, info in enumerate(infos):
            if not info.taints:
                continue
            refused = [t for t in info.taints if t.effect in HARD_EFFECTS and not tolerates(profile.tolerations, t)]
            cordoned[row] = any(taint.key == UNSCHEDULABLE_TAINT.key for taint in refused)
            if not self.arguments[_TAINTS_ENABLE]:
                continue
            temporary[row] = all(taint.key in TEMPORARY_TAINTS for taint in refused)
            first = next((taint for taint in refused if taint.key != UNSCHEDULABLE_TAINT.key), None)
            if first is not None:
                text = f"{first.key}: {first.value}" if first.value else first.key
                reason = f"node(s) had untolerated taint {{{text}}}"
                tainted.setdefault(reason, np.zeros(count, dtype=bool))[row] = True
        if cordoned.any():
            word = WaitReason.NODE_UNSCHEDULABLE
            out.append(Rejection(UNSCHEDULABLE, cordoned, "taint", cordoned, word))
        affinity = profile.node_affinity
        if affinity.restricts and self.arguments[_NODE_AFFINITY_ENABLE]:
            missed = np.fromiter((not affinity.admits(i.name, i.labels) for i in infos), dtype=bool, count=count)
            starting = np.fromiter((i.starting for i in infos), dtype=bool, count=count)
            out.append(Rejection(NODE_AFFINITY, missed, "affinity", missed & starting, WaitReason.NODE_AFFINITY))
        word = WaitReason.TAINT_TOLERATION
        out += [Rejection(reason, mask, "taint", mask & temporary, word) for reason, mask in sorted(tainted.items())]
        if profile.claims:
            for r in self._volumes.rejections(profile.claims):
                passing = None if r.reason in (NODE_CONFLICT, NO_ZONE) else r.nodes
                out.append(Rejection(r.reason, r.nodes, temporary=passing, word=r.word))
        return out

    def caps(self, cls: TaskClass, rows: Rows) -> Sequence[Cap]:
        nodes = self._nodes
        free = nodes.alloc[PODS].take(rows) - nodes.used[PODS].take(rows) - nodes.pipelined[PODS].take(rows)
        if nodes.leaving is not None:
            free += nodes.leaving[PODS].take(rows)
        out = [Cap(POD_COUNT, free, WaitReason.TOO_MANY_PODS)]
        if cls.ports and self.arguments[_PORTS_ENABLE]:
            out.append(Cap(PORTS, self._free_ports(cls, rows), WaitReason.NODE_PORTS))
        return out

    def _free_ports(self, cls: TaskClass, rows: Rows) -> Floats:
        """One task of the class fits if none of its ports is used, and never two."""
        infos = self._nodes.infos
        taken = (any(mine.conflicts(theirs) for theirs in infos[int(row)].ports for mine in cls.ports) for row in rows)
        return np.fromiter((0.0 if t else 1.0 for t in taken), dtype=np.float64, count=len(rows))

    def couples(self, task: Task) -> bool:
        rules, claims = task.cls.inter_pod, task.cls.profile.claims
        if (claims and self._volumes.couples(claims)) or self._claimed.couples(task):
            return True
        if not rules.any and not self._inter_pod.active:
            return False
        return self._inter_pod.couples(task)

    def task_rejections(self, task: Task, static: Sequence[Rejection]) -> Sequence[Rejection]:
        index, rules = self._inter_pod, task.cls.inter_pod
        out: list[Rejection] = []
        if task.cls.profile.claims:
            out += [Rejection(r.reason, r.nodes, word=r.word) for r in self._volumes.task_rejections(task)]
        if self._claimed.couples(task):
            devices = WaitReason.DYNAMIC_RESOURCES
            out += [Rejection(reason, nodes, word=devices) for reason, nodes in self._claimed.rejections(task)]
        if self.arguments[_POD_AFFINITY_ENABLE]:
            near = WaitReason.INTER_POD_AFFINITY
            out += [Rejection(reason, nodes, word=near) for reason, nodes in index.affinity_rejections(task)]
        if self.arguments[_SPREAD_ENABLE] and any(spread.hard for spread in rules.spreads):
            eligible = Eligible(static, len(self._nodes))
            spread = WaitReason.POD_TOPOLOGY_SPREAD
            out += [
                Rejection(reason, nodes, word=spread) for reason, nodes in index.spread_rejections(task, eligible.nodes)
            ]
        return out

    def task_scores(self, task: Task, candidates: Rows, static: Sequence[Rejection]) -> Floats | None:
        shape, weight = self.arguments[_BINDING_SHAPE], self.arguments[_BINDING_WEIGHT]
        points = self._claimed.points(task, candidates) if self._claimed.couples(task) else None
        if not shape or not weight or not task.cls.profile.claims:
            return points
        stored = weight * storage_score(self._volumes.utilisation(task, candidates), shape)
        return stored if points is None else stored + points
