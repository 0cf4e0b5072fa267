"""One job on a server, for scripts and notebooks: the twin of `async_job`."""

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
    """`AsyncJobHandle` for callers without an event loop: every method waits for its answer."""

    def __init__(self, portal: Portal, handle: AsyncJobHandle) -> None:
        self._portal = portal
        self._handle = handle
        self.namespace = handle.namespace
        self.name = handle.name

    @property
    def last(self) -> Job | None:  # type: ignore[override]
        """The job as it was last seen."""
        return self._handle.last

    def get(self) -> Job:
        """The job as it is now."""
        return self._portal.run(self._handle.get())

    def watch(self) -> Iterator[Job]:
        """The job now, and then each time that it changes, without end. Raises `NotFound` once it is deleted."""
        return self._portal.iterate(self._handle.watch())

    def wait(
        self,
        *,
        until: Phases = FINISHED,
        timeout: float | None = None,
        on_change: Callable[[Job], None] | None = None,
        show: bool = True,
    ) -> Job:
        """Return the job once its phase is one of `until`, by default once it has ended in whatever way. In a notebook
        it is shown meanwhile, as it is; `show=False` keeps it quiet.

        Raises `JobEnded` (`JobFailed`, where it failed) when it has ended otherwise, and `WaitTimeout`, which says why
        the job waits, after `timeout` seconds.
        """
        update = live_display(self) if show else None
        # What is called for a change is called on the caller's own thread.
        for job in self._portal.iterate(self._handle.states(until=until, timeout=timeout)):
            if update is not None:
                update()
            if on_change is not None:
                on_change(job)
        return self._handle.last or self.get()

    def result(self, *, timeout: float | None = None, show: bool = True) -> Any:
        """Wait for the end: of a function's job what it returned, of any other the job. Raises `JobFailed` unless it is
        Completed, and `TaskFailed` where the function raised."""
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
    ) -> Iterator[LogLine]:
        """The lines of all its pods: those that are there or, with `follow`, all that come until the job has ended.
        `tail` is a number of lines of each container. `tasks`, `indices` (of the pods of a task) and `containers`
        choose; what the job doesn't have raises `NotFound`."""
        lines = self._handle.logs(
            follow=follow, tail=tail, since=since, tasks=tasks, indices=indices, containers=containers
        )
        return self._portal.iterate(lines)

    def events(self) -> list[JobEvent]:
        """What happened to the job, its PodGroup and its pods, oldest first."""
        return self._portal.run(self._handle.events())

    def explain(self) -> Waiting:
        """Why it waits: the reason with its numbers, its place in the queue, who is before it, and who holds what it
        needs. What you may not read is left out."""
        return self._portal.run(self._handle.explain())

    def suspend(self) -> None:
        """Stop its pods until it is resumed; those that have succeeded stay. `wait(until="Aborted")` sees it done.
        Raises `JobEnded` where there is nothing left to suspend."""
        self._portal.run(self._handle.suspend())

    def resume(self) -> None:
        """Let a suspended job go on with what hadn't succeeded. Raises `JobEnded` where it has ended."""
        self._portal.run(self._handle.resume())

    def restart(self) -> None:
        """Stop all pods and start anew; it counts as one retry. Raises `JobEnded` where it has ended."""
        self._portal.run(self._handle.restart())

    def cancel(self) -> None:
        """End it for good: it becomes Terminated, and stays to be looked at until it is deleted. Nothing happens where
        it has ended already."""
        self._portal.run(self._handle.cancel())

    def delete(self) -> None:
        """Remove the job with all that belongs to it. Nothing happens where it is gone already."""
        self._portal.run(self._handle.delete())

    def scale(self, task: str, replicas: int, *, min_available: int | None = None) -> Job:
        """Give a task so many pods, and the job another minimum where one is named: pods that are too many are taken
        from the highest index. Raises `AdmissionDenied` where the result isn't valid, `JobEnded` where it has ended."""
        return self._portal.run(self._handle.scale(task, replicas, min_available=min_available))
