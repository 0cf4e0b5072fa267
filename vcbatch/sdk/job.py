"""One job on a server, for scripts and notebooks: the synchronous twin of `async_job`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from vcbatch.core.waiting import Waiting
from vcbatch.sdk.async_job import FINISHED, AsyncJobHandle, Phases
from vcbatch.sdk.display import JobDisplay, live_display
from vcbatch.sdk.models.job import Job
from vcbatch.sdk.portal import Portal
from vcbatch.sdk.records import JobEvent

if TYPE_CHECKING:
    from vcbatch.sdk.logs import LogLine


class JobHandle(JobDisplay):
    """`AsyncJobHandle` for callers without an event loop: every method blocks until it has its result."""

    def __init__(self, portal: Portal, handle: AsyncJobHandle) -> None:
        self._portal = portal
        self._handle = handle
        self.namespace = handle.namespace
        self.name = handle.name

    @property
    def last(self) -> Job | None:  # type: ignore[override]
        """The last observed state of the job; None before the first request."""
        return self._handle.last

    def get(self) -> Job:
        """Read the job and return it. Raises `NotFound` where it doesn't exist."""
        return self._portal.run(self._handle.get())

    def watch(self) -> Iterator[Job]:
        """Yield the job, and then its new state after each change, without end. Raises `NotFound` once it is
        deleted."""
        return self._portal.iterate(self._handle.watch())

    def wait(
        self,
        *,
        until: Phases = FINISHED,
        timeout: float | None = None,
        on_change: Callable[[Job], None] | None = None,
        show: bool = True,
    ) -> Job:
        """Wait until the job's phase is one of `until`, by default until it has ended in any way, and return the job.

        In a notebook its state is shown while waiting, unless `show` is False. `timeout` is in seconds, None for no
        limit; `on_change` is called with the job after each change. Raises `JobEnded` (`JobFailed` for a failed job)
        when it has ended in another phase, and `WaitTimeout` with the reason why the job waits when the timeout is
        over. Raises `ValueError` where `until` has an unknown phase.
        """
        update = live_display(self) if show else None
        # `on_change` is called on the caller's own thread.
        for job in self._portal.iterate(self._handle.states(until=until, timeout=timeout)):
            if update is not None:
                update()
            if on_change is not None:
                on_change(job)
        return self._handle.last or self.get()

    def result(self, *, timeout: float | None = None, show: bool = True) -> Any:
        """Wait for the end and return the result: the return value of a function's job, else the job itself.

        `timeout` is in seconds, None for no limit. Raises `JobFailed` unless the job is Completed, `TaskFailed` where
        the function raised, and `WaitTimeout`.
        """
        self.wait(timeout=timeout, show=show)
        return self._portal.run(self._handle.result())

    def logs(
        self,
        *,
        follow: bool = False,
        tail: int | None = None,
        since: datetime | None = None,
        tasks: str | Collection[str] | None = None,
        indices: int | Collection[int] | None = None,
        containers: str | Collection[str] | None = None,
        attempt: int | None = None,
        previous: bool = False,
    ) -> Iterator[LogLine]:
        """Yield the log lines of all its pods: the present ones or, with `follow`, all until the job has ended.

        `tail` limits the present lines to the last ones of each container, `since` to those after a time. `tasks`,
        `indices` (of the pods of a task) and `containers` select; `attempt`, from 1, and `previous`, the attempt before
        the latest, need a server that keeps the logs of deleted pods, as the local one does. Raises `NotFound` for a
        name, index or attempt that the job doesn't have, and `ValueError` for a negative `tail`, and for an attempt
        with `follow`.
        """
        lines = self._handle.logs(
            follow=follow,
            tail=tail,
            since=since,
            tasks=tasks,
            indices=indices,
            containers=containers,
            attempt=attempt,
            previous=previous,
        )
        return self._portal.iterate(lines)

    def events(self) -> list[JobEvent]:
        """Return the events of the job, its PodGroup and its pods, oldest first."""
        return self._portal.run(self._handle.events())

    def explain(self) -> Waiting:
        """Return why the job waits: the reason with its numbers, its position in the queue, the gangs ahead of it, and
        the gangs that use the resources it needs. Objects that you may not read are left out."""
        return self._portal.run(self._handle.explain())

    def suspend(self) -> None:
        """Request the suspension of the job: its pods are deleted until it is resumed; succeeded ones are kept.

        `wait(until="Aborted")` waits for it. Raises `JobEnded` where the job has ended.
        """
        self._portal.run(self._handle.suspend())

    def resume(self) -> None:
        """Request the resumption of a suspended job: indices that hadn't succeeded run again.

        Raises `JobEnded` where the job has ended.
        """
        self._portal.run(self._handle.resume())

    def restart(self) -> None:
        """Request a restart: all pods are deleted and recreated, which uses one retry.

        Raises `JobEnded` where the job has ended.
        """
        self._portal.run(self._handle.restart())

    def cancel(self) -> None:
        """Request the cancellation of the job: it becomes Terminated, and its record is kept until it is deleted.

        A job that has ended already is ignored.
        """
        self._portal.run(self._handle.cancel())

    def delete(self) -> None:
        """Delete the job with all its dependents. A missing job is ignored."""
        self._portal.run(self._handle.delete())

    def scale(self, task: str, replicas: int, *, min_available: int | None = None) -> Job:
        """Set the number of replicas of a task and, where given, the job's `min_available`; return the job.

        Surplus pods are deleted from the highest index on. Raises `NotFound` where the job has no such task,
        `AdmissionDenied` where the result is invalid, and `JobEnded` where the job has ended.
        """
        return self._portal.run(self._handle.scale(task, replicas, min_available=min_available))
