"""Which filter keeps a pod from the nodes with room, what is short at a place, and what would let the gang start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from vcbatch.api import names
from vcbatch.api.remedies import Remedy, RemedyAction
from vcbatch.scheduler.model.objects import Job, Task
from vcbatch.scheduler.model.resources import EPS, MEMORY, Dimensions, Mask, Vector
from vcbatch.scheduler.model.result import Shortage, WaitReason
from vcbatch.scheduler.reasons.nearest import Place

if TYPE_CHECKING:
    from vcbatch.scheduler.framework.session import Session
    from vcbatch.scheduler.snapshot.snapshot import Picture

_UNIT: Final = 1000
"""Of cpu and of scalars, in thousandths."""
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
"""What of the pods, or of their PodGroup, the filter goes by."""


class Refusal(NamedTuple):
    """Nodes that a filter refuses to one more pod, shape [N]: why, and the reason of a gang that waits for it."""

    reason: str
    nodes: Mask
    word: WaitReason


def binding(refused: Sequence[Refusal], *, among: Mask | None = None) -> list[WaitReason]:
    """The filters without which a node would do, the one that refuses most nodes first: one, where one is enough, else
    all that refuse any. `among` are the nodes that count, None for all."""
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
    """The fields to change for which these filters refuse the pod, as far as its gang has them."""
    if task.job is None:
        return []
    fields = dict.fromkeys(field for word in words for field in _FIELDS.get(word, ()) if _has(task, field))
    return [Remedy(RemedyAction.CHANGE, gang(task.job), field=field) for field in fields]


def gang(job: Job) -> str:
    """The PodGroup, as remedies name objects."""
    return f"podgroup/{job.key}"


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
    """What must become free there, a resource each."""
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
    """The node, as remedies name objects."""
    return f"node/{session.nodes.infos[place.row].name}"


def short_on(session: Session, places: Sequence[Place]) -> str:
    """What is short on the first of these nodes, as the end of a sentence; empty where there is none."""
    if not places:
        return ""
    by = ", ".join(f"{s.resource} {s.short_by}" for s in shortages_at(session, places[0]))
    more = f" and something on {len(places) - 1} more" if len(places) > 1 else ""
    return f", short by {by} on node {session.nodes.infos[places[0].row].name}{more}"


def free_at(session: Session, places: Sequence[Place]) -> list[Remedy]:
    """All that must become free."""
    return [
        Remedy(RemedyAction.FREE, node_of(session, place), s.resource, s.short_by)
        for place in places
        for s in shortages_at(session, place)
    ]


def whole(dims: Dimensions, r: int, amount: float) -> float:
    """A computed amount, rounded down so that people can use it: one with a fraction of its unit to a whole one."""
    floored = math.floor(amount)
    if floored == amount or r == MEMORY or floored < _UNIT:
        return floored
    return floored - floored % _UNIT


def wait_for(key: str) -> list[Remedy]:
    """Until this gang, by `namespace/name`, is through."""
    return [Remedy(RemedyAction.WAIT, f"podgroup/{key}")]


def raise_limit(state: Picture, name: str, short: Sequence[Shortage]) -> list[Remedy]:
    """How the queue of this name may hold more: by its capability where that is its limit, else as others are
    guaranteed less. Where its share is less by what others ask for, it has to wait."""
    queues, dims = state.queues, state.dims
    queue = queues.get(name)
    found: list[Remedy] = []
    for s in short:
        r = dims.column(s.resource)
        named = queue is not None and s.resource in (queue.view.spec.capability or {})
        missing = 0.0 if r is None else dims.amount(s.resource, s.short_by)
        guarantees = [] if named else _guarantees(state, name)
        lent = [(other, float(kept[r])) for other, kept in guarantees if r is not None and kept[r] > 0]
        if named:
            found.append(Remedy(RemedyAction.RAISE, f"queue/{name}", s.resource, s.short_by))
            continue
        for other, most in lent:
            amount = min(most, missing)
            if amount > 0 and r is not None:
                found.append(Remedy(RemedyAction.LOWER, f"queue/{other}", s.resource, dims.format(r, amount)))
                missing -= amount
        if not lent:
            found.append(Remedy(RemedyAction.WAIT, f"queue/{name}"))
    return list(dict.fromkeys(found))


def _guarantees(state: Picture, name: str) -> list[tuple[str, Vector]]:
    """What queues other than this one are guaranteed."""
    kept = [(other, state.queues[other].guarantee) for other in sorted(state.queues) if other != name]
    return [(other, state.dims.padded(guarantee)) for other, guarantee in kept if guarantee is not None]
