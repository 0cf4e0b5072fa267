"""The client for scripts and notebooks: the twins of `async_client` and `async_job`, which do the work on a thread."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from vcbatch.core.waiting import Waiting
from vcbatch.sdk.async_client import AsyncClient
from vcbatch.sdk.async_job import FINISHED, AsyncJobHandle, Phases
from vcbatch.sdk.connecting import Place, local
from vcbatch.sdk.display import JobDisplay, live_display
from vcbatch.sdk.models.job import Job
from vcbatch.sdk.models.queue import Queue
from vcbatch.sdk.portal import Portal
from vcbatch.sdk.records import JobEvent

if TYPE_CHECKING:
    from vcbatch.sdk.logs import LogLine


class JobHandle(JobDisplay):
    """`AsyncJobHandle` for callers without an event loop: every method waits for its answer."""

    def __init__(self, client: Client, handle: AsyncJobHandle) -> None:
        self._client = client
        self._portal = client._portal  # pyright: ignore[reportPrivateUsage]
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
        tasks: Collection[str] | None = None,
        containers: Collection[str] | None = None,
    ) -> Iterator[LogLine]:
        """The lines of all its pods: those that are there or, with `follow`, all that come until the job has ended.
        `tail` is a number of lines of each container."""
        lines = self._handle.logs(follow=follow, tail=tail, since=since, tasks=tasks, containers=containers)
        return self._portal.iterate(lines)

    def events(self) -> list[JobEvent]:
        """What happened to the job, its PodGroup and its pods, oldest first."""
        return self._portal.run(self._handle.events())

    def explain(self) -> Waiting:
        """Why it waits: the reason with its numbers, its place in the queue, who is before it, and who holds what it
        needs. What you may not read is left out."""
        return self._portal.run(self._handle.explain())

    def suspend(self) -> None:
        """Stop its pods until it is resumed; those that have succeeded stay. `wait(until="Aborted")` sees it done."""
        self._portal.run(self._handle.suspend())

    def resume(self) -> None:
        """Let a suspended job go on with what hadn't succeeded."""
        self._portal.run(self._handle.resume())

    def restart(self) -> None:
        """Stop all pods and start anew; it counts as one retry."""
        self._portal.run(self._handle.restart())

    def cancel(self) -> None:
        """End it for good: it becomes Terminated, and stays to be looked at until it is deleted."""
        self._portal.run(self._handle.cancel())

    def delete(self) -> None:
        """Remove the job with all that belongs to it. Nothing happens where it is gone already."""
        self._portal.run(self._handle.delete())

    def scale(self, task: str, replicas: int, *, min_available: int | None = None) -> Job:
        """Give a task so many pods, and the job another minimum where one is named: pods that are too many are taken
        from the highest index. Raises `AdmissionDenied` where the result isn't valid."""
        return self._portal.run(self._handle.scale(task, replicas, min_available=min_available))


class Client:
    """`AsyncClient` for scripts and notebooks, where an event loop may run already: jobs and queues of one server.

    Without arguments it goes where kubectl goes: to the current context of $KUBECONFIG or ~/.kube/config, to the
    cluster of the pod that it runs in, and else to the server that `vcbatch up` runs here. Raises `NotConfigured`.

    Requests that are throttled are made again when the server says so. What fails on the way, or by the server's fault,
    is made again where that can't do harm twice. `timeout` is the seconds that one try of a request may take. It closes
    itself at the end; `with` closes it sooner.
    """

    def __init__(
        self,
        *,
        kubeconfig: str | Path | None = None,
        context: str | None = None,
        namespace: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        self._use(AsyncClient(kubeconfig=kubeconfig, context=context, namespace=namespace, timeout=timeout))

    def _use(self, client: AsyncClient) -> None:
        self._async = client
        self._portal = Portal()
        self._end = weakref.finalize(self, _close, self._portal, client)

    @classmethod
    def local(
        cls,
        *,
        state_dir: str | Path | None = None,
        namespace: str | None = None,
        timeout: float = 30.0,
        start: bool = True,
    ) -> Self:
        """A client of the local server, which is started where it doesn't run, unless `start` is False. It goes on
        after the program: `vcbatch down` stops it."""
        place = local(Path(state_dir) if state_dir is not None else None, start=start)
        return cls.of(place, namespace=namespace, timeout=timeout)

    @classmethod
    def of(cls, place: Place, *, namespace: str | None = None, timeout: float = 30.0) -> Self:
        """A client of a server that has been found already."""
        client = cls.__new__(cls)
        client._use(AsyncClient.of(place, namespace=namespace, timeout=timeout))
        return client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._end()

    @property
    def server(self) -> str:
        return self._async.server

    @property
    def namespace(self) -> str:
        return self._async.namespace

    def __repr__(self) -> str:
        return f"{type(self).__name__}(server={self.server!r}, namespace={self.namespace!r})"

    # Jobs

    def submit(self, job: Job | Mapping[str, Any], *, namespace: str | None = None) -> JobHandle:
        """Make a job, from a model or a manifest. Raises `AdmissionDenied` where it isn't valid and `AlreadyExists`
        where its name is taken."""
        return JobHandle(self, self._portal.run(self._async.submit(job, namespace=namespace)))

    def job(self, name: str, *, namespace: str | None = None) -> JobHandle:
        """The job of this name, which isn't looked at before something is asked of it."""
        return JobHandle(self, self._async.job(name, namespace=namespace))

    def jobs(
        self,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        labels: str | Mapping[str, str] = "",
        fields: str = "",
    ) -> list[JobHandle]:
        """The jobs of a namespace, or of all. `labels` and `fields` are selectors as kubectl takes them."""
        work = self._async.jobs(namespace=namespace, all_namespaces=all_namespaces, labels=labels, fields=fields)
        return [JobHandle(self, handle) for handle in self._portal.run(work)]

    # Queues

    def queues(self) -> list[Queue]:
        return self._portal.run(self._async.queues())

    def queue(self, name: str) -> Queue:
        return self._portal.run(self._async.queue(name))

    def create_queue(self, queue: Queue) -> Queue:
        """Raises `AdmissionDenied` where it isn't valid and `AlreadyExists` where its name is taken."""
        return self._portal.run(self._async.create_queue(queue))

    def replace_queue(self, queue: Queue) -> Queue:
        """Store a queue that was read and changed. Raises `Conflict` where somebody else changed it meanwhile."""
        return self._portal.run(self._async.replace_queue(queue))

    def delete_queue(self, name: str) -> None:
        """Nothing happens where it is gone already. Raises `AdmissionDenied` for one that is in use."""
        self._portal.run(self._async.delete_queue(name))

    def open_queue(self, name: str) -> None:
        """Let a queue take jobs again."""
        self._portal.run(self._async.open_queue(name))

    def close_queue(self, name: str) -> None:
        """Let a queue take no more jobs; those that it has go on."""
        self._portal.run(self._async.close_queue(name))


def _close(portal: Portal, client: AsyncClient) -> None:
    portal.close(client.close())
