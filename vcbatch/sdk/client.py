"""The client for scripts and notebooks: the synchronous twin of `async_client`, which runs on a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar, Unpack, overload

from vcbatch.sdk.async_client import AsyncClient
from vcbatch.sdk.connecting import Place, local
from vcbatch.sdk.functions.async_calls import AsyncFunctionHandle
from vcbatch.sdk.functions.calls import FunctionHandle, MapHandle
from vcbatch.sdk.functions.folder import SharedFolder
from vcbatch.sdk.job import JobHandle
from vcbatch.sdk.models.job import Job
from vcbatch.sdk.models.queue import Queue, QueueChanges
from vcbatch.sdk.portal import Portal

P = ParamSpec("P")
R = TypeVar("R")


class Client:
    """`AsyncClient` for scripts and notebooks, where an event loop may be running already: jobs and queues of one
    server.

    Without arguments it connects to the server that kubectl would use: the current context of $KUBECONFIG or
    ~/.kube/config, or the cluster of the pod that it runs in; where none is configured, to the local server
    (`vcbatch up`). Raises `NotConfigured` where there is none of these.

    Throttled requests are retried after the time that the server gives. Requests that failed on the network or with a
    server error are retried where that can't take effect twice. `timeout` is the maximum of seconds of one attempt of a
    request. It is closed at the end of the program; `with` closes it earlier.
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
        self._portal = Portal(client.close)

    @classmethod
    def local(
        cls,
        *,
        state_dir: str | Path | None = None,
        namespace: str | None = None,
        timeout: float = 30.0,
        start: bool = True,
    ) -> Self:
        """Connect to the local server and return a client.

        The server is started where it doesn't run, unless `start` is False. It keeps running after the program:
        `vcbatch down` stops it. `state_dir` is the directory of its state. Raises `NotConfigured` where it doesn't run
        and isn't or can't be started.
        """
        place = local(Path(state_dir) if state_dir is not None else None, start=start)
        return cls.of(place, namespace=namespace, timeout=timeout)

    @classmethod
    def of(cls, place: Place, *, namespace: str | None = None, timeout: float = 30.0) -> Self:
        """Return a client of a server that was already found."""
        client = cls.__new__(cls)
        client._use(AsyncClient.of(place, namespace=namespace, timeout=timeout))
        return client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections of the client, and end its thread."""
        self._portal.close()

    @property
    def server(self) -> str:
        """The URL of the server."""
        return self._async.server

    @property
    def namespace(self) -> str:
        """The default namespace of jobs."""
        return self._async.namespace

    def __repr__(self) -> str:
        return f"{type(self).__name__}(server={self.server!r}, namespace={self.namespace!r})"

    # Jobs

    @overload
    def submit(self, work: Job | Mapping[str, Any], /, *, namespace: str | None = None) -> JobHandle: ...

    @overload
    def submit(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> FunctionHandle[R]: ...

    def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Create a job and return its handle.

        `work` is a model, a manifest, or a function with its arguments (`@task` has the options of its job). Raises
        `AdmissionDenied` where the job is invalid, `AlreadyExists` where its name is in use, and `Unavailable` where it
        is unknown whether it was created.
        """
        handle: Any = self._portal.run(self._async.submit(work, *args, **kwargs))
        return (
            FunctionHandle(self._portal, handle)
            if isinstance(handle, AsyncFunctionHandle)
            else JobHandle(self._portal, handle)
        )

    def map(self, function: Callable[..., R], /, *iterables: Iterable[Any]) -> MapHandle[R]:
        """Create one job for many calls, one for each item as in Python's `map`, and return its handle.

        Calls run as capacity allows. A call that fails doesn't stop the others. Raises the same errors as `submit`.
        """
        return MapHandle(self._portal, self._portal.run(self._async.map(function, *iterables)))

    def attach(self, name: str, *, namespace: str | None = None, shared: SharedFolder | None = None) -> MapHandle[Any]:
        """Return the handle of a job of functions that another program, or an earlier run of this one, submitted.

        On a cluster `shared` has to be given again. Raises `NotFound` where the job doesn't exist, and `VcbatchError`
        where it runs no function or its directory can't be read.
        """
        return MapHandle(self._portal, self._portal.run(self._async.attach(name, namespace=namespace, shared=shared)))

    def job(self, name: str, *, namespace: str | None = None) -> JobHandle:
        """Return a handle of the job of this name. No request is sent before a method of the handle is called."""
        return JobHandle(self._portal, self._async.job(name, namespace=namespace))

    def jobs(
        self,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        labels: str | Mapping[str, str] = "",
        fields: str = "",
    ) -> list[JobHandle]:
        """Return handles of the jobs of a namespace, or of all namespaces.

        `labels` and `fields` are selectors in kubectl's format; `labels` may also be a mapping. Raises `Forbidden`
        where the jobs may not be listed.
        """
        work = self._async.jobs(namespace=namespace, all_namespaces=all_namespaces, labels=labels, fields=fields)
        return [JobHandle(self._portal, handle) for handle in self._portal.run(work)]

    # Queues

    def queues(self) -> list[Queue]:
        """Return all queues. Raises `Forbidden` where they may not be listed."""
        return self._portal.run(self._async.queues())

    def queue(self, name: str) -> Queue:
        """Return the queue of this name. Raises `NotFound` where it doesn't exist."""
        return self._portal.run(self._async.queue(name))

    def create_queue(self, queue: Queue) -> Queue:
        """Create a queue and return it as stored.

        Raises `AdmissionDenied` where it is invalid and `AlreadyExists` where its name is in use.
        """
        return self._portal.run(self._async.create_queue(queue))

    def update_queue(self, name: str, **changes: Unpack[QueueChanges]) -> Queue:
        """Change these fields of the stored queue and return the result; concurrent changes of other fields are kept.

        Raises `NotFound` where the queue doesn't exist and `AdmissionDenied` where the result is invalid.
        """
        return self._portal.run(self._async.update_queue(name, **changes))

    def replace_queue(self, queue: Queue) -> Queue:
        """Store a queue that was read and changed, and return it as stored.

        Raises `Conflict` where another client changed it since it was read; changed counts in its status are no
        conflict. Raises `AdmissionDenied` where the queue is invalid.
        """
        return self._portal.run(self._async.replace_queue(queue))

    def delete_queue(self, name: str) -> None:
        """Delete a queue; a missing one is ignored. Raises `AdmissionDenied` for a queue that is in use."""
        self._portal.run(self._async.delete_queue(name))

    def open_queue(self, name: str) -> None:
        """Open a queue for new jobs. Below a closed parent it stays closed, which is reported as an event on it.

        Raises `NotFound` where it doesn't exist.
        """
        self._portal.run(self._async.open_queue(name))

    def close_queue(self, name: str) -> None:
        """Close a queue for new jobs; its present jobs continue. Raises `NotFound` where it doesn't exist."""
        self._portal.run(self._async.close_queue(name))
