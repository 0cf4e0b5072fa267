"""Why no node takes a task and why a gang doesn't start, as data with numbers, recorded at the moment of the
failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vcbatch.api.messages import insufficient
from vcbatch.api.remedies import Remedy, RemedyAction
from vcbatch.scheduler.feasibility.judge import Judge
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.blocker import POD, Blocker
from vcbatch.scheduler.model.columns import Floats, Rows
from vcbatch.scheduler.model.domain import Domain
from vcbatch.scheduler.model.objects import Job, Queue, Task, TaskStatus
from vcbatch.scheduler.model.remedies import gang
from vcbatch.scheduler.model.resources import EPS, PODS, Mask, Vector, exceeding
from vcbatch.scheduler.model.result import Shortage, WaitReason
from vcbatch.scheduler.queues.remedies import raise_limit
from vcbatch.scheduler.reasons.nearest import Place, could_hold, most_room, nearest_places, still_needed
from vcbatch.scheduler.reasons.refused_nodes import not_now, unless_refused
from vcbatch.scheduler.reasons.ways_out import Refusal, binding, change, free_at, node_of, short_on, shortages_at, whole


def no_node(session: Session, task: Task, *, unplaced: int, placed: int, domain: Domain | None = None) -> Blocker:
    """Why no node takes this task; `unplaced` tasks like it are still needed, and `placed` tasks of the gang found a
    node. With a network topology `domain`, why none of its nodes does."""
    cls = task.cls
    barred = session.barred(task)
    if barred is not None:
        return Blocker(
            reason=barred.reason,
            text=barred.message,
            task=task.name,
            placed=placed,
            shortages=barred.shortages,
            place=barred.place,
            remedies=barred.remedies,
        )
    if cls.unsupported:
        text = f"{POD} can't be placed: {', '.join(cls.unsupported)}, which is not supported"
        return Blocker(reason=WaitReason.UNSUPPORTED, text=text, task=task.name, placed=placed)
    error = session.state.volumes.error(cls.profile.claims)
    if error:
        return Blocker(
            reason=WaitReason.VOLUMES,
            text=f"{POD} waits: {error}",
            task=task.name,
            placed=placed,
            remedies=change(task, WaitReason.VOLUME_BINDING),
        )
    error = session.state.claimed.error(task)
    if error:
        return Blocker(
            reason=WaitReason.DEVICES,
            text=f"{POD} waits: {error}",
            task=task.name,
            placed=placed,
            remedies=change(task, WaitReason.DYNAMIC_RESOURCES),
        )
    free = np.maximum(session.nodes.future(), 0.0)
    static = session.placer.static(cls)
    admitted, lasting = static.mask, static.lasting
    if domain is not None:
        inside = np.isin(np.arange(len(session.nodes)), domain.rows)
        admitted, lasting = admitted & inside, lasting & inside
    lacking = session.state.claimed.lacking(task)
    if lacking is None or not (admitted & lacking).any():
        found = _shortage(session, task, admitted, lasting, free, unplaced=unplaced)
    elif (lasting & ~lacking).any():
        having = ~lacking
        found = _shortage(session, task, admitted & having, lasting & having, free, unplaced=unplaced)
    else:
        text = f"no node that {POD} may go to has the devices that its resourceclaims ask for"
        claims = change(task, WaitReason.DYNAMIC_RESOURCES)
        found = Blocker(reason=WaitReason.IMPOSSIBLE, text=text, remedies=claims)
    unavailable = histogram(session, task, free, within=None if domain is None else domain.rows)
    examined = len(session.nodes if domain is None else domain.rows)
    return replace(
        found,
        task=task.name,
        placed=placed,
        nodes_examined=examined if sum(unavailable.values()) or not found.place else 0,
        nodes=unavailable,
        within="" if domain is None else domain.name,
    )


def histogram(session: Session, task: Task, free: Floats, *, within: Rows | None = None) -> dict[str, int]:
    """How many nodes (of the rows `within`) fail for each reason. A node counts for the first filter or limit that it
    fails, or, if it passes all, for each resource that it lacks."""
    cls = task.cls
    static = session.placer.static(cls)
    rows = np.arange(len(session.nodes), dtype=np.intp)
    settled = np.zeros(len(rows), dtype=bool) if within is None else ~np.isin(rows, within)
    counts: dict[str, int] = {}
    refused = [(r.reason, r.nodes) for r in static.rejections]
    refused += [(r.reason, r.nodes) for r in refusals(session, task)]
    for reason, nodes in refused:
        counts[reason] = counts.get(reason, 0) + int((nodes & ~settled).sum())
        settled |= nodes
    for r in cls.needed:
        short = ~settled & (free[r] + EPS < cls.request[r])
        counts[insufficient(session.dims.names[r])] = int(short.sum())
    return {reason: count for reason, count in counts.items() if count}


def refusals(session: Session, task: Task) -> list[Refusal]:
    """The nodes that filters reject for one more pod because of the pods on them."""
    placer = session.placer
    static = placer.static(task.cls)
    rows = np.arange(len(session.nodes), dtype=np.intp)
    found: list[Refusal] = []
    for plugin in placer.plugins.refusers:
        found += [Refusal(r.reason, r.nodes, r.word) for r in plugin.task_rejections(task, static.rejections)]
    for plugin in placer.plugins.cappers:
        found += [Refusal(cap.reason, cap.slots < 1, cap.word) for cap in plugin.caps(task.cls, rows)]
    return found


def _shortage(session: Session, task: Task, admitted: Mask, lasting: Mask, free: Floats, *, unplaced: int) -> Blocker:
    """What the nodes that the task is `admitted` to lack: a resource on one of them, else what rejects it. `lasting`
    are the nodes that would admit it once temporary states have ended."""
    if not lasting.any():
        static = session.placer.static(task.cls)
        text = f"no node passes the constraints of {POD}"
        return Blocker(
            reason=WaitReason.IMPOSSIBLE,
            text=text,
            remedies=change(task, *binding([Refusal(r.reason, r.lasting, r.word) for r in static.rejections])),
        )
    capacity, request = session.shared(Judge).nodes.capacity, task.cls.request
    asked = [int(r) for r in task.cls.needed if request[r] > 0 and r != PODS]
    rows = np.flatnonzero(lasting)
    too_small = [r for r in asked if float(capacity[r, rows].max()) + EPS < request[r]]
    if too_small:
        return _too_small(session, task, rows, too_small)
    rows = np.flatnonzero(admitted)
    if not len(rows):
        return _not_now(session, task, lasting, free, unplaced=unplaced)
    closed = lasting & ~admitted
    if closed.any() and not could_hold(session, task, admitted, unplaced):
        _, missing = most_room(task.cls, admitted, free, unplaced)
        if could_hold(session, task, lasting, unplaced):
            return _not_now(session, task, closed, free, unplaced=missing)
    enough = admitted & (free[asked] + EPS >= request[asked, None]).all(axis=0)
    refused = [r for r in refusals(session, task) if r.word is not WaitReason.TOO_MANY_PODS]
    if not enough.any():  # devices for extended resources are reported as resources
        refused = [r for r in refused if r.word is not WaitReason.DYNAMIC_RESOURCES]
    passed = admitted.copy()
    for rejection in refused:
        passed &= ~rejection.nodes
    if not passed.any() or (enough.any() and not (enough & passed).any()):
        among = enough if enough.any() else admitted
        words = binding(refused, among=among)
        text = f"the nodes with room for {POD} refuse it"
        remedies = unless_refused(session, task, words, among, free, unplaced=unplaced)
        return Blocker(reason=words[0], text=text, remedies=remedies)
    places = nearest_places(session, task.job, still_needed(task.job, task, unplaced), passed, free)
    return _at_places(session, task, places, _needs(session, task, rows, free, asked, unplaced))


def _not_now(session: Session, task: Task, among: Mask, free: Floats, *, unplaced: int) -> Blocker:
    """The blocker if nodes that the task needs are in a temporary state."""
    word, opened = not_now(session, task, among, free, unplaced=unplaced)
    text = f"the nodes that {POD} may go to take no pods for now"
    return Blocker(reason=word, text=text, remedies=opened)


def _too_small(session: Session, task: Task, rows: Rows, too_small: list[int]) -> Blocker:
    """The blocker if no node is large enough: the nearest one would have to be larger."""
    capacity, dims, request = session.shared(Judge).nodes.capacity, session.dims, task.cls.request
    needs = ", ".join(
        f"{dims.names[r]} {dims.format(r, float(request[r]))}, "
        f"the largest node has {dims.format(r, float(capacity[r, rows].max()))}"
        for r in too_small
    )
    lacking = np.maximum(request[:, None] - capacity[:, rows], 0.0)
    row = int(rows[int((lacking / np.maximum(request, 1.0)[:, None]).max(axis=0).argmin())])
    place = Place(row, request, capacity[:, row])
    free = Place(row, request, session.nodes.future_of(row))
    text = f"{POD} needs {needs}"
    return Blocker(
        reason=WaitReason.IMPOSSIBLE,
        text=text,
        shortages=shortages_at(session, place),
        place=node_of(session, place),
        remedies=free_at(session, [free]),
    )


def _at_places(session: Session, task: Task, places: Sequence[Place], needs: str) -> Blocker:
    """The blocker if resources must be released at these places."""
    if not places:
        text = f"the nodes with room for {POD} refuse it"
        return Blocker(reason=WaitReason.INSUFFICIENT, text=needs or text)
    short = shortages_at(session, places[0])
    slots = all(s.resource == session.dims.names[PODS] for s in short)
    return Blocker(
        reason=WaitReason.TOO_MANY_PODS if slots else WaitReason.INSUFFICIENT,
        text=(needs or f"there is no room for {POD}") + short_on(session, places),
        shortages=short,
        place=node_of(session, places[0]),
        remedies=free_at(session, places),
    )


def _needs(session: Session, task: Task, rows: Rows, free: Floats, asked: list[int], unplaced: int) -> str:
    """What one pod requests that no node has free; empty if some nodes have enough."""
    dims, request = session.dims, task.cls.request
    short = [r for r in asked if float(free[r, rows].max()) + EPS < request[r]]
    if short:
        needs = ", ".join(
            f"{dims.names[r]} {dims.format(r, float(request[r]))}, "
            f"largest free {dims.format(r, float(free[r, rows].max()))}"
            for r in short
        )
        return f"{POD} needs {needs}" + _whole(session, task, rows, free, asked, unplaced)
    if (free[asked][:, rows] + EPS >= request[asked, None]).all(axis=0).any():
        return ""
    together = " and ".join(dims.names[r] for r in asked)
    return f"no node has enough free {together} together for {POD}"


def _whole(session: Session, task: Task, rows: Rows, free: Floats, asked: list[int], unplaced: int) -> str:
    """What the remaining tasks request together, if that is more than all nodes have free."""
    if unplaced < 2:
        return ""
    parts = [
        f"{session.dims.names[r]} {session.dims.format(r, unplaced * float(task.cls.request[r]))} of "
        f"{session.dims.format(r, float(free[r, rows].sum()))} free"
        for r in asked
        if unplaced * float(task.cls.request[r]) > float(free[r, rows].sum())
    ]
    return f"; the {unplaced} pods still needed ask for {', '.join(parts)} in all nodes together" if parts else ""


def short_of(session: Session, r: int, requested: float, available: float) -> Shortage:
    dims = session.dims
    return Shortage(
        dims.names[r],
        dims.format(r, requested),
        dims.format(r, available),
        dims.format(r, max(requested - available, 0.0)),
    )


def not_open(queue: Queue) -> Blocker:
    """The blocker of a queue that isn't open."""
    text = f"queue {queue.name} is {queue.view.status.state}"
    opened = [Remedy(RemedyAction.OPEN, f"queue/{queue.name}")]
    return Blocker(reason=WaitReason.QUEUE_NOT_OPEN, text=text, remedies=opened)


def not_enough_pods(job: Job, error: str) -> Blocker:
    """The blocker of a gang of which fewer pods exist than it needs; `error` is the message."""
    missing = max(job.min_member - job.valid_count, 0)
    short = [Shortage("pods", str(job.min_member), str(job.valid_count), str(missing))] if missing else []
    made = [Remedy(RemedyAction.CREATE, gang(job), "pods", str(missing))] if missing else []
    place = gang(job) if missing else ""
    return Blocker(reason=WaitReason.NOT_ENOUGH_PODS, text=error, shortages=short, place=place, remedies=made)


def gated(job: Job) -> Blocker | None:
    """The blocker of a gang that can't reach its minimum because pods have scheduling gates; None if none has."""
    held = [t for t in job.tasks.values() if t.status is TaskStatus.PENDING and t.gated]
    if not held:
        return None
    names = sorted({str(gate.name) for task in held for gate in task.pod.spec.scheduling_gates or ()})
    pods = "1 pod has" if len(held) == 1 else f"{len(held)} pods have"
    text = f"{pods} scheduling gates: {', '.join(names)}"
    opened = [Remedy(RemedyAction.CHANGE, gang(job), field="spec.schedulingGates")]
    return Blocker(reason=WaitReason.GATED, text=text, placed=job.ready_count, remedies=opened)


def queue_limit(session: Session, queue: Queue, task: Task, *, unplaced: int, placed: int, own: Vector) -> Blocker:
    """Why the gang's queue has no capacity for another task like this; `unplaced` of these are still needed. What the
    gang was given in this attempt (`own`) counts as used already.

    Nodes are reported instead if the pod may run on some of them only and these have no capacity, and if the queue's
    limit is no lower than the cluster's capacity, so that the cluster is what is short.
    """
    if not (task.job.queue_takes if task.job is not None else queue.open):
        return replace(not_open(queue), task=task.name, placed=placed)
    ledger = session.ledger(queue, task.cls.request)
    if ledger is None or _fits_nowhere(session, task) or _pool_is_short(session, task, unplaced):
        return no_node(session, task, unplaced=unplaced, placed=placed)
    more = sum((count * cls.request for cls, count in still_needed(task.job, task, unplaced)), 0.0 * own)
    others, needed = ledger.held - own, own + more
    limit, over = ledger.limit, exceeding(ledger.held + more, ledger.limit, more)
    never = [] if ledger.ever is None else exceeding(needed, ledger.ever, needed)
    if ledger.ever is not None and never:
        limit, over = ledger.ever, never
    limited = any(limit[r] + EPS < session.total[r] for r in over)
    hopeless = (bool(never) and (limited or not session.shared(Judge).nodes.growing)) or (
        not limited and _beyond(session, needed, over)
    )
    dims, whose_queue = session.dims, ledger.queue or queue.name
    whose = "in the whole cluster" if not limited else "allowed" if never else ledger.word
    parts = [
        f"{dims.names[r]} {dims.format(r, float(needed[r]))} with {dims.format(r, float(others[r]))} held "
        f"of {dims.format(r, whole(dims, r, float(limit[r])))} {whose}"
        for r in over
    ]
    needs = f"the gang needs {', '.join(parts)} (queue {whose_queue})"
    if not limited and not hopeless:
        at_nodes = no_node(session, task, unplaced=unplaced, placed=placed)
        if at_nodes.place:
            return replace(at_nodes, text=f"{needs}; {at_nodes.text}", nodes_examined=0, nodes={})
        if at_nodes.reason is not WaitReason.INSUFFICIENT:
            return at_nodes
    short = [short_of(session, r, float(needed[r]), whole(dims, r, float(limit[r] - others[r]))) for r in over]
    by = ", ".join(f"{s.resource} {s.short_by}" for s in short)
    waits = WaitReason.QUEUE_LIMIT if limited else WaitReason.INSUFFICIENT
    return Blocker(
        reason=WaitReason.IMPOSSIBLE if hopeless else waits,
        text=f"{needs}: short by {by}",
        task=task.name,
        placed=placed,
        shortages=short,
        place=f"queue/{whose_queue}" if limited else "",
        remedies=raise_limit(session.state, whose_queue, short) if limited else (),
    )


def _pool_is_short(session: Session, task: Task, unplaced: int) -> bool:
    """Whether the pod may run on some nodes only, and these have no capacity."""
    static = session.placer.static(task.cls)
    if static.admits_all:
        return False
    free = np.maximum(session.nodes.future(), 0.0)
    return bool(nearest_places(session, task.job, still_needed(task.job, task, unplaced), static.mask, free))


def _beyond(session: Session, needed: Vector, columns: Sequence[int]) -> bool:
    """Whether that is more than the capacity of all nodes together."""
    capacity = session.shared(Judge).nodes.capacity
    return any(needed[r] > float(capacity[r].sum()) for r in columns)


def _fits_nowhere(session: Session, task: Task) -> bool:
    """Whether no node that admits the task, now or later, would be large enough if it were empty."""
    rows = np.flatnonzero(session.placer.static(task.cls).lasting)
    if not len(rows):
        return True
    capacity = session.shared(Judge).nodes.capacity
    return any(float(capacity[r, rows].max()) + EPS < task.cls.request[r] for r in task.cls.needed)
