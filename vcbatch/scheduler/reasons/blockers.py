"""Why a task found no node and a gang no start, as data with numbers, taken at the moment it failed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from vcbatch.api.messages import NEVER_FITS, could_evict, insufficient
from vcbatch.scheduler.picture.columns import Floats, Rows
from vcbatch.scheduler.picture.model import Queue, Task
from vcbatch.scheduler.resources import EPS, PODS, Mask, Vector, exceeding
from vcbatch.scheduler.result import ClosestDomain, Protected, Shortage, WaitReason

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session
    from vcbatch.scheduler.topology.domains import Domain


_POD = "{pod}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """What kept a gang from starting (or a started one from growing).

    `text` is a sentence for people, in which `{pod}` stands for the pod it happened to, so that gangs of the same kind
    share it. `task` is that pod, empty where it concerns the gang as a whole; `placed` counts the gang's tasks that had
    found a node by then; `nodes` counts nodes per reason.
    """

    reason: WaitReason
    text: str
    task: str = ""
    placed: int = 0
    shortages: Sequence[Shortage] = ()
    nodes_examined: int = 0
    nodes: Mapping[str, int] = field(default_factory=dict[str, int])
    within: str = ""
    """The domain of the network that `nodes` is about; empty for the whole cluster."""
    closest: ClosestDomain | None = None
    expected_start: datetime | None = None
    protected: Protected | None = None

    @property
    def sentence(self) -> str:
        """The text, about the pod by its name."""
        return self.text.replace(_POD, self.task)

    def but_for(self, protected: Protected) -> Blocker:
        """The same of a gang for which others would be evicted, if the policy didn't protect them."""
        return replace(self, reason=WaitReason.VICTIMS_PROTECTED, protected=protected)

    def on_empty_nodes(self) -> Blocker:
        """The same of a gang that can't start even on empty nodes."""
        return replace(
            self, reason=WaitReason.IMPOSSIBLE, text=f"{self.text}; {NEVER_FITS}" if self.text else NEVER_FITS
        )

    @property
    def remedy(self) -> str:
        """What would make room and may not be done now; empty where nothing is known to."""
        return "" if self.protected is None else could_evict(**self.protected._asdict())

    def of(self, task: Task, *, placed: int) -> Blocker:
        """The same about a like pod of another gang."""
        return replace(self, task=task.name, placed=placed)

    @property
    def kind(self) -> tuple[str, ...]:
        """What makes it another story than before: the reason and the resources, not the numbers."""
        return (self.reason, *sorted({s.resource for s in self.shortages}))


def no_node(session: Session, task: Task, *, unplaced: int, placed: int, domain: Domain | None = None) -> Blocker:
    """Why no node takes this task, `unplaced` of its kind being needed still and `placed` of the gang having found
    one; of a `domain` of the network, why none of its nodes does."""
    cls = task.cls
    barred = session.barred(task)
    if barred is not None:
        text, short = barred.message, barred.shortages
        return Blocker(reason=barred.reason, text=text, task=task.name, placed=placed, shortages=short)
    if cls.unsupported:
        text = f"{_POD} can't be placed: {', '.join(cls.unsupported)}, which is not supported"
        return Blocker(reason=WaitReason.UNSUPPORTED, text=text, task=task.name, placed=placed)
    fault = session.state.volumes.fault(cls.profile.claims)
    if fault:
        return Blocker(reason=WaitReason.VOLUMES, text=f"{_POD} waits: {fault}", task=task.name, placed=placed)
    fault = session.state.claimed.fault(task)
    if fault:
        return Blocker(reason=WaitReason.DEVICES, text=f"{_POD} waits: {fault}", task=task.name, placed=placed)
    free = np.maximum(session.nodes.future(), 0.0)
    static = session.placer.static(cls)
    admitted, lasting = static.mask, static.lasting
    if domain is not None:
        inside = np.isin(np.arange(len(session.nodes)), domain.rows)
        admitted, lasting = admitted & inside, lasting & inside
    lacking = session.state.claimed.lacking(task)
    if lacking is None or not (admitted & lacking).any():
        reason, shortages, text = _shortage(session, task, admitted, lasting, free, unplaced=unplaced)
    elif (lasting & ~lacking).any():
        having = ~lacking
        reason, shortages, text = _shortage(session, task, admitted & having, lasting & having, free, unplaced=unplaced)
    else:
        reason, shortages = WaitReason.IMPOSSIBLE, []
        text = f"no node that {_POD} may go to has the devices that its resourceclaims ask for"
    return Blocker(
        reason=reason,
        text=text,
        task=task.name,
        placed=placed,
        shortages=shortages,
        nodes_examined=len(session.nodes if domain is None else domain.rows),
        nodes=histogram(session, task, free, within=None if domain is None else domain.rows),
        within="" if domain is None else domain.name,
    )


def histogram(session: Session, task: Task, free: Floats, *, within: Rows | None = None) -> dict[str, int]:
    """How many nodes (of the rows `within`) fail for each reason. A node counts for the first filter or limit that it
    fails, and where it passes all for each resource that it lacks."""
    cls, placer = task.cls, session.placer
    static = placer.static(cls)
    rows = np.arange(len(session.nodes), dtype=np.intp)
    settled = np.zeros(len(rows), dtype=bool) if within is None else ~np.isin(rows, within)
    counts: dict[str, int] = {}
    refused = [(r.reason, r.nodes) for r in static.rejections]
    for plugin in placer.plugins.refusers:
        refused += [(r.reason, r.nodes) for r in plugin.task_rejections(task, static.rejections)]
    for plugin in placer.plugins.cappers:
        refused += [(cap.reason, cap.slots < 1) for cap in plugin.caps(cls, rows)]
    for reason, nodes in refused:
        counts[reason] = counts.get(reason, 0) + int((nodes & ~settled).sum())
        settled |= nodes
    for r in cls.needed:
        short = ~settled & (free[r] + EPS < cls.request[r])
        counts[insufficient(session.dims.names[r])] = int(short.sum())
    return {reason: count for reason, count in counts.items() if count}


def _shortage(
    session: Session, task: Task, admitted: Mask, lasting: Mask, free: Floats, *, unplaced: int
) -> tuple[WaitReason, list[Shortage], str]:
    """What is short: in one node for one pod where it doesn't fit any, in the nodes together otherwise. `lasting` are
    the nodes that would admit it once states are over that pass by themselves."""
    if not lasting.any():
        return WaitReason.IMPOSSIBLE, [], f"no node passes the constraints of {_POD}"
    dims, request, capacity = session.dims, task.cls.request, session.judge.nodes.capacity
    asked = [int(r) for r in task.cls.needed if request[r] > 0 and r != PODS]
    rows = np.flatnonzero(lasting)
    too_small = [r for r in asked if float(capacity[r, rows].max()) + EPS < request[r]]
    if too_small:
        short = [_short(session, r, float(request[r]), float(capacity[r, rows].max())) for r in too_small]
        needs = ", ".join(f"{s.resource} {s.requested}, the largest node has {s.available}" for s in short)
        return WaitReason.IMPOSSIBLE, short, f"{_POD} needs {needs}"
    rows = np.flatnonzero(admitted)
    if not len(rows):
        return WaitReason.INSUFFICIENT, [], f"the nodes that {_POD} may go to take no pods for now"
    short = [
        _short(session, r, float(request[r]), float(free[r, rows].max()))
        for r in asked
        if float(free[r, rows].max()) + EPS < request[r]
    ]
    if short:
        needs = ", ".join(f"{s.resource} {s.requested}, largest free {s.available}" for s in short)
        text = f"{_POD} needs {needs}"
        return WaitReason.INSUFFICIENT, short, text + _whole(session, task, rows, free, asked, unplaced)
    enough = (free[asked][:, rows] + EPS >= request[asked, None]).all(axis=0)
    if enough.any():
        return WaitReason.INSUFFICIENT, [], f"the nodes with room for {_POD} refuse it"
    together = " and ".join(dims.names[r] for r in asked)
    return WaitReason.INSUFFICIENT, [], f"no node has enough free {together} together for {_POD}"


def _whole(session: Session, task: Task, rows: Rows, free: Floats, asked: list[int], unplaced: int) -> str:
    """What the tasks that are left need together, where that is more than all nodes have."""
    if unplaced < 2:
        return ""
    parts = [
        f"{session.dims.names[r]} {session.dims.format(r, unplaced * float(task.cls.request[r]))} of "
        f"{session.dims.format(r, float(free[r, rows].sum()))} free"
        for r in asked
        if unplaced * float(task.cls.request[r]) > float(free[r, rows].sum())
    ]
    return f"; the {unplaced} pods still needed ask for {', '.join(parts)} in all nodes together" if parts else ""


def _short(session: Session, r: int, requested: float, available: float) -> Shortage:
    dims = session.dims
    return Shortage(
        dims.names[r],
        dims.format(r, requested),
        dims.format(r, available),
        dims.format(r, max(requested - available, 0.0)),
    )


def not_open(queue: Queue) -> Blocker:
    """The queue takes no gang."""
    return Blocker(reason=WaitReason.QUEUE_NOT_OPEN, text=f"queue {queue.name} is {queue.view.status.state}")


def queue_limit(session: Session, queue: Queue, task: Task, *, unplaced: int, placed: int, own: Vector) -> Blocker:
    """The gang's queue may not hold another task like this, `unplaced` of which it needs still; what it found in this
    attempt (`own`) counts as the queue's already.

    Where the queue may hold all there is, the cluster is what is short, and a pod that fits no node waits for that.
    """
    request, dims = task.cls.request, session.dims
    if not (task.job.queue_takes if task.job is not None else queue.open):
        return replace(not_open(queue), task=task.name, placed=placed)
    ledger = session.ledger(queue, request)
    if ledger is None or _fits_nowhere(session, task):
        return no_node(session, task, unplaced=unplaced, placed=placed)
    others, needed = ledger.held - own, own + unplaced * request
    limit, over = ledger.limit, exceeding(ledger.held + unplaced * request, ledger.limit, request)
    never = [] if ledger.ever is None else exceeding(needed, ledger.ever, request)
    if ledger.ever is not None and never:
        limit, over = ledger.ever, never
    short = [_short(session, r, float(needed[r]), math.floor(limit[r] - others[r])) for r in over]
    whose_queue = ledger.queue or queue.name
    limited = any(limit[r] + EPS < session.total[r] for r in over)
    whose = "in the whole cluster" if not limited else "allowed" if never else ledger.word
    if (never and (limited or not session.judge.nodes.growing)) or (not limited and _beyond(session, needed, over)):
        reason = WaitReason.IMPOSSIBLE
    else:
        reason = WaitReason.QUEUE_LIMIT if limited else WaitReason.INSUFFICIENT
    parts = [
        f"{dims.names[r]} {dims.format(r, float(needed[r]))} with {dims.format(r, float(others[r]))} held "
        f"of {dims.format(r, math.floor(limit[r]))} {whose}"
        for r in over
    ]
    by = ", ".join(f"{s.resource} {s.short_by}" for s in short)
    text = f"the gang needs {', '.join(parts)} (queue {whose_queue}): short by {by}"
    return Blocker(reason=reason, text=text, task=task.name, placed=placed, shortages=short)


def _beyond(session: Session, needed: Vector, columns: Sequence[int]) -> bool:
    """Whether that is more than the nodes have together."""
    capacity = session.judge.nodes.capacity
    return any(needed[r] > float(capacity[r].sum()) for r in columns)


def _fits_nowhere(session: Session, task: Task) -> bool:
    """Whether no node that admits the task, now or later, is large enough, were it empty."""
    rows = np.flatnonzero(session.placer.static(task.cls).lasting)
    if not len(rows):
        return True
    capacity = session.judge.nodes.capacity
    return any(float(capacity[r, rows].max()) + EPS < task.cls.request[r] for r in task.cls.needed)
