"""The filter that keeps a pod from nodes with capacity, the shortages at a place, and the remedies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from vcbatch.api import names
from vcbatch.api.remedies import Remedy, RemedyAction
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.objects import Task
from vcbatch.scheduler.model.remedies import gang
from vcbatch.scheduler.model.resources import EPS, MEMORY, Dimensions, Mask
from vcbatch.scheduler.model.result import Shortage, WaitReason
from vcbatch.scheduler.reasons.nearest import Place

_UNIT: Final = 1000
"""One unit of cpu and of scalars, in thousandths."""
_NUMA_NOTE: Final = f"metadata.annotations[{names.NUMA_TOPOLOGY_POLICY}]"
_REVOCABLE_NOTE: Final = f"metadata.annotations[{names.REVOCABLE_ZONE}]"
_FIELDS: Final = {
    WaitReason.NODE_PORTS: ("spec.containers[].ports",),
    WaitReason.INTER_POD_AFFINITY: ("spec.affinity.podAffinity", "spec.affinity.podAntiAffinity", "metadata.labels"),
    WaitReason.POD_TOPOLOGY_SPREAD: ("spec.topologySpreadConstraints",),
    WaitReason.NODE_AFFINITY: ("spec.nodeSelector", "spec.affinity.nodeAffinity"),
    WaitReason.TAINT_TOLERATION: ("spec.tolerations",),
    WaitReason.VOLUME_RESTRICTIONS: ("spec.volumes",),
    WaitReason.VOLUME_BINDING: ("spec.volumes",),
    WaitReason.VOLUME_ZONE: ("spec.volumes",),
    WaitReason.NODE_VOLUME_LIMITS: ("spec.volumes",),
    WaitReason.DYNAMIC_RESOURCES: ("spec.resourceClaims",),
    WaitReason.NODE_GROUP: ("spec.queue",),
    WaitReason.NUMA: (_NUMA_NOTE,),
    WaitReason.REVOCABLE_ZONE: (_REVOCABLE_NOTE,),
}
"""The fields of pods, or of their PodGroup, that the filter reads."""


class Refusal(NamedTuple):
    """Nodes that a filter rejects for one more pod, shape [N]: the message, and the reason of a gang that waits for
    them."""

    reason: str
    nodes: Mask
    word: WaitReason


def binding(refused: Sequence[Refusal], *, among: Mask | None = None) -> list[WaitReason]:
    """The filters without which a node would admit the pod, the one that rejects most nodes first: a single one if that
    suffices, else all that reject any. `among` are the nodes that count, None for all."""
    masks: dict[WaitReason, Mask] = {}
    for rejection in refused:
        nodes = rejection.nodes if among is None else rejection.nodes & among
        if nodes.any():
            masks[rejection.word] = masks[rejection.word] | nodes if rejection.word in masks else nodes
    if not masks:
        return [WaitReason.NODES_REFUSED]
    by_size = sorted(masks, key=lambda word: -int(masks[word].sum()))
    together = np.sum([*masks.values()], axis=0)
    alone = [word for word in by_size if (masks[word] & (together == 1)).any()]
    return alone[:1] or by_size


def change(task: Task, *words: WaitReason) -> list[Remedy]:
    """The fields to change because of which these filters reject the pod, as far as its gang sets them."""
    if task.job is None:
        return []
    fields = dict.fromkeys(field for word in words for field in _FIELDS.get(word, ()) if _has(task, field))
    return [Remedy(RemedyAction.CHANGE, gang(task.job), field=field) for field in fields]


def _has(task: Task, field: str) -> bool:
    spec = task.pod.spec
    affinity = spec.affinity or {}
    match field:
        case "spec.nodeSelector":
            return bool(spec.node_selector)
        case "spec.affinity.nodeAffinity" | "spec.affinity.podAffinity" | "spec.affinity.podAntiAffinity":
            return bool(affinity.get(field.rpartition(".")[2]))
        case _ if field == _NUMA_NOTE:
            return names.NUMA_TOPOLOGY_POLICY in (task.pod.metadata.annotations or {})
        case _ if field == _REVOCABLE_NOTE:
            return not {names.REVOCABLE_ZONE, names.PREEMPTABLE}.intersection(task.cls.notes)
        case "metadata.labels":
            return not (affinity.get("podAffinity") or affinity.get("podAntiAffinity"))
        case _:
            return True


def shortages_at(session: Session, place: Place) -> list[Shortage]:
    """The shortages at the place, one per resource."""
    dims, short = session.dims, place.short
    return [
        Shortage(
            dims.names[r],
            dims.format(r, float(place.wanted[r])),
            dims.format(r, max(float(place.free[r]), 0.0)),
            dims.format(r, float(short[r])),
        )
        for r in map(int, np.flatnonzero(short > EPS))
    ]


def node_of(session: Session, place: Place) -> str:
    """The node in the form `node/NAME` that remedies use."""
    return f"node/{session.nodes.infos[place.row].name}"


def short_on(session: Session, places: Sequence[Place]) -> str:
    """What the first of these nodes lacks, as the end of a sentence; empty without nodes."""
    if not places:
        return ""
    by = ", ".join(f"{s.resource} {s.short_by}" for s in shortages_at(session, places[0]))
    more = f" and something on {len(places) - 1} more" if len(places) > 1 else ""
    return f", short by {by} on node {session.nodes.infos[places[0].row].name}{more}"


def free_at(session: Session, places: Sequence[Place]) -> list[Remedy]:
    """The remedies: what must be released at each place."""
    return [
        Remedy(RemedyAction.FREE, node_of(session, place), s.resource, s.short_by)
        for place in places
        for s in shortages_at(session, place)
    ]


def whole(dims: Dimensions, r: int, amount: float) -> float:
    """A computed quantity rounded down for users: to a whole unit if it has one or more."""
    floored = math.floor(amount)
    if floored == amount or r == MEMORY or floored < _UNIT:
        return floored
    return floored - floored % _UNIT
