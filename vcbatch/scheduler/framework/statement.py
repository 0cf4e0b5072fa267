"""A statement: placements and evictions that are applied to the snapshot at once, then committed or rolled back
exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from msgspec.structs import replace

from vcbatch.scheduler.framework.placing.placement import Placer
from vcbatch.scheduler.model.objects import Job, Task, TaskStatus
from vcbatch.scheduler.model.resources import Vector
from vcbatch.scheduler.model.result import Bind, Eviction, Held
from vcbatch.scheduler.snapshot.snapshot import Snapshot


class _Placement(NamedTuple):
    tasks: Sequence[Task]
    rows: Sequence[int]
    status: TaskStatus
    nominated: bool = False


class _Evicted(NamedTuple):
    task: Task
    before: TaskStatus
    reason: str
    message: str


class Ground(Protocol):
    """What a statement needs of a session: the snapshot that it changes, and the notification of plugins."""

    journal: list[tuple[Sequence[Task], TaskStatus | None]]

    @property
    def state(self) -> Snapshot:
        """The snapshot."""
        ...

    @property
    def placer(self) -> Placer:
        """The slots of nodes."""
        ...

    @property
    def binding_annotations(self) -> Callable[[Task, int], Mapping[str, str] | None] | None:
        """The annotations that a pod gets with its binding; None if no plugin adds any."""
        ...

    @property
    def node_lock(self) -> Callable[[Task], str] | None:
        """The annotation that locks a pod's node while the pod is being bound; None if no plugin locks any."""
        ...

    def placed(self, tasks: Sequence[Task], sign: int, *, rows: Sequence[int]) -> None:
        """Notify the plugins of a placement (`sign` 1) or its rollback (-1) of equal tasks of one gang."""
        ...


class Statement:
    """Placements of one gang's tasks, and evictions of other pods for it. Quantities are integers, so that a rollback
    restores every number."""

    __slots__ = ("_bound", "_done", "_session")

    def __init__(self, session: Ground) -> None:
        self._session = session
        self._done: list[_Placement | _Evicted] = []
        self._bound: list[_Placement] = []

    def __bool__(self) -> bool:
        return bool(self._done)

    def allocate(self, tasks: Sequence[Task], rows: Sequence[int], *, nominated: bool = False) -> None:
        """Place equal pending tasks on free resources; `nominated` if these stay reserved for them beyond the cycle."""
        self._place(tasks, rows, TaskStatus.ALLOCATED, nominated=nominated)

    def pipeline(self, tasks: Sequence[Task], rows: Sequence[int], *, nominated: bool = False) -> None:
        """Place equal pending tasks on resources being released; `nominated` if these stay reserved for them beyond the
        cycle."""
        self._place(tasks, rows, TaskStatus.PIPELINED, nominated=nominated)

    def nominate(self) -> None:
        """Reserve all its placements beyond the cycle, except those of best-effort tasks, which need no resources."""
        self._done = [
            done._replace(nominated=True)
            if isinstance(done, _Placement) and not done.tasks[0].cls.best_effort
            else done
            for done in self._done
        ]

    def places(self) -> dict[str, int]:
        """By UID of the tasks that it placed, the row of the node."""
        return {t.uid: row for placed in self._placements() for t, row in zip(placed.tasks, placed.rows, strict=True)}

    def evict(self, task: Task, *, reason: str, message: str) -> None:
        """Evict a pod that is bound or running. `reason` is the action's name, `message` names the gang that it is
        evicted for."""
        self._done.append(_Evicted(task, self._evict(task), reason, message))

    def reword(self, message: Callable[[Task], str]) -> None:
        """Set the message of every eviction."""
        self._done = [
            done._replace(message=message(done.task)) if isinstance(done, _Evicted) else done for done in self._done
        ]

    def _evict(self, task: Task) -> TaskStatus:
        """Evict the task and return its status before."""
        session = self._session
        before = session.state.evict(task)
        session.journal.append(((task,), before))
        self._evicted(task, -1)
        return before

    def _spare(self, done: _Evicted) -> None:
        self._session.state.spare(done.task, done.before)
        self._evicted(done.task, 1)

    def _evicted(self, task: Task, sign: int) -> None:
        row = self._session.state.row_of(task)
        self._session.placed([task], sign, rows=(row,))
        self._session.placer.freed((row,))

    def _place(
        self, tasks: Sequence[Task], rows: Sequence[int], status: TaskStatus, *, nominated: bool = False
    ) -> None:
        self._session.state.shift(tasks, status, rows)
        self._session.journal.append((tasks, None))
        self._session.placed(tasks, 1, rows=rows)
        self._done.append(_Placement(tasks, rows, status, nominated))

    def amount(self, width: int) -> Vector:
        """The sum of the requests of the tasks that it placed, shape [width]."""
        total = np.zeros(width)
        for placement in self._placements():
            total += len(placement.tasks) * placement.tasks[0].cls.request
        return total

    def mark(self) -> int:
        """The present position in the statement, for `take_back`."""
        return len(self._done)

    def take_back(self, mark: int) -> None:
        """Roll back what was done after that position, the last first."""
        for done in reversed(self._done[mark:]):
            if isinstance(done, _Evicted):
                self._spare(done)
            else:
                self._unplace(done)
        del self._done[mark:]

    def reprieve(self, mark: int, enough: Callable[[], bool]) -> None:
        """Roll back, the last first, the evictions after that position without which `enough` still holds."""
        for done in reversed(self._done[mark:]):
            if isinstance(done, _Evicted):
                self.spare(done.task, enough)

    def spare(self, task: Task, enough: Callable[[], bool]) -> bool:
        """Roll back the eviction of one pod if `enough` holds without it. Returns whether it was rolled back."""
        for at in range(len(self._done) - 1, -1, -1):
            done = self._done[at]
            if isinstance(done, _Evicted) and done.task is task:
                self._spare(done)
                if enough():
                    del self._done[at]
                    return True
                self._evict(task)
        return False

    def release_best_effort(self) -> None:
        """Roll back the pipelining of best-effort tasks: they need no resources, so they needn't wait for any."""
        for at in range(len(self._done) - 1, -1, -1):
            done = self._done[at]
            if (
                isinstance(done, _Placement)
                and done.status is TaskStatus.PIPELINED
                and not done.nominated
                and done.tasks[0].cls.best_effort
            ):
                self._unplace(done)
                del self._done[at]

    def _unplace(self, done: _Placement) -> None:
        session = self._session
        session.state.shift(done.tasks, TaskStatus.PENDING, done.rows)
        session.placed(done.tasks, -1, rows=done.rows)
        session.placer.returned(done.rows)

    def discard(self) -> None:
        """Roll back everything."""
        self.take_back(0)

    def recorded(self) -> Sequence[object]:
        """The operations of the statement, for `replay` after they were rolled back."""
        return tuple(self._done)

    def replay(self, recorded: Sequence[object]) -> None:
        """Repeat the operations of another trial on the same snapshot."""
        session = self._session
        for done in recorded:
            if isinstance(done, _Evicted):
                self.evict(done.task, reason=done.reason, message=done.message)
            elif isinstance(done, _Placement):
                self._place(done.tasks, done.rows, done.status, nominated=done.nominated)
                session.placer.returned(done.rows)

    def _placements(self) -> Iterator[_Placement]:
        return (done for done in self._done if isinstance(done, _Placement))

    @property
    def job(self) -> Job | None:
        """The gang whose tasks it placed; None while it placed none."""
        first = next(self._placements(), None)
        return None if first is None else first.tasks[0].job

    @property
    def size(self) -> int:
        """How many tasks it placed."""
        return sum(len(placement.tasks) for placement in self._placements())

    @property
    def victims(self) -> list[Task]:
        """The tasks that it evicts, in the order of their eviction."""
        return [done.task for done in self._done if isinstance(done, _Evicted)]

    def commit(self) -> tuple[list[Bind], list[Eviction]]:
        """Turn placements on free resources into binds, and evictions into deletions. Pipelined tasks stay in the
        statement, which the session keeps until the cycle ends."""
        session = self._session
        evictions: list[Eviction] = []
        promised: list[_Placement | _Evicted] = []
        for done in self._done:
            if isinstance(done, _Evicted):
                task = done.task
                evictions.append(
                    Eviction(
                        namespace=task.namespace,
                        name=task.name,
                        uid=task.uid,
                        reason=done.reason,
                        message=done.message,
                    )
                )
            elif done.status is TaskStatus.PIPELINED:
                promised.append(done)
            else:
                session.state.bind(done.tasks)
                self._bound.append(done)
        binds = self._with_claims() if self._claims() else self._plain()
        self._done = promised
        return binds, evictions

    def _claims(self) -> bool:
        asked = self._session.state.claimed.asked
        return any(p.tasks[0].cls.claiming or asked(p.tasks[0].cls) for p in self._bound)

    def _plain(self) -> list[Bind]:
        notes, locks = self._session.binding_annotations, self._session.node_lock
        if notes is None:
            binds = [Bind(t.namespace, t.name, t.uid, t.node) for placement in self._bound for t in placement.tasks]
        else:
            binds = [
                Bind(t.namespace, t.name, t.uid, t.node, annotations=notes(t, row))
                for placement in self._bound
                for t, row in zip(placement.tasks, placement.rows, strict=True)
            ]
        if locks is None:
            return binds
        tasks = (task for placement in self._bound for task in placement.tasks)
        return [replace(bind, lock=locks(task)) for bind, task in zip(binds, tasks, strict=True)]

    def _with_claims(self) -> list[Bind]:
        """The binds with the claims that have to be bound before them; bound for the gang as a whole if there are
        any."""
        volumes, claimed = self._session.state.volumes, self._session.state.claimed
        tasks = [task for placement in self._bound for task in placement.tasks]
        wanted = [tuple(volumes.bindings(task, task.node)) for task in tasks]
        devices = [claimed.bindings(task) for task in tasks]
        gang = tasks[0].job.key if tasks[0].job is not None and (any(wanted) or any(devices)) else ""
        return [
            replace(bind, gang=gang, claims=claims, devices=given)
            for bind, claims, given in zip(self._plain(), wanted, devices, strict=True)
        ]

    def retract(self) -> set[str]:
        """Roll back the committed placements before they are sent. Returns the UIDs of the pods."""
        for placement in reversed(self._bound):
            self._session.state.shift(placement.tasks, TaskStatus.PENDING, placement.rows)
            self._session.placed(placement.tasks, -1, rows=placement.rows)
        taken = {task.uid for placement in self._bound for task in placement.tasks}
        self._bound.clear()
        return taken

    def held(self) -> list[Held]:
        """The tasks that the statement has placed and not bound, with their nodes."""
        return [
            Held(t.namespace, t.name, t.uid, t.node, placement.status is TaskStatus.PIPELINED, placement.nominated)
            for placement in self._placements()
            for t in placement.tasks
        ]
