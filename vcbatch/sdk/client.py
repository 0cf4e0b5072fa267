"""The client for scripts and notebooks: the twin of `async_client`, which does the work on a thread."""

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
    """`AsyncClient` for scripts and notebooks, where an event loop may run already: jobs and queues of one server.

    Without arguments it goes where kubectl goes: to the current context of $KUBECONFIG or ~/.kube/config, to the
    cluster of the pod that it runs in, and else to the server that `vcbatch up` runs here. Raises `NotConfigured`.

    Requests that are throttled are made again when the server says so. What fails on the way, or by the server's error,
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
        self._portal.close()

    @property
    def server(self) -> str:
        return self._async.server

    @property
    def namespace(self) -> str:
        return self._async.namespace

    def __repr__(self) -> str:
        return f"{type(self).__name__}(server={self.server!r}, namespace={self.namespace!r})"

    # Jobs

    @overload
    def submit(self, work: Job | Mapping[str, Any], /, *, namespace: str | None = None) -> JobHandle: ...

    @overload
    def submit(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> FunctionHandle[R]: ...

    def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Make a job: from a model, from a manifest, or of a function and its arguments (`@task` says how it runs).
        Raises `AdmissionDenied` where it isn't valid and `AlreadyExists` where its name is taken."""
        handle: Any = self._portal.run(self._async.submit(work, *args, **kwargs))
        return (
            FunctionHandle(self._portal, handle)
            if isinstance(handle, AsyncFunctionHandle)
            else JobHandle(self._portal, handle)
        )

    def map(self, function: Callable[..., R], /, *iterables: Iterable[Any]) -> MapHandle[R]:
        """Make one job of many calls, as `map` would make them, which run as there is room for them. One that fails
        stops no other."""
        return MapHandle(self._portal, self._portal.run(self._async.map(function, *iterables)))

    def attach(self, name: str, *, namespace: str | None = None, shared: SharedFolder | None = None) -> MapHandle[Any]:
        """The handle of a job of functions that another program, or an earlier run of this one, has submitted. On a
        cluster `shared` has to be named again."""
        return MapHandle(self._portal, self._portal.run(self._async.attach(name, namespace=namespace, shared=shared)))

    def job(self, name: str, *, namespace: str | None = None) -> JobHandle:
        """The job of this name, which isn't looked at before something is asked of it."""
        return JobHandle(self._portal, self._async.job(name, namespace=namespace))

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
        return [JobHandle(self._portal, handle) for handle in self._portal.run(work)]

    # Queues

    def queues(self) -> list[Queue]:
        return self._portal.run(self._async.queues())

    def queue(self, name: str) -> Queue:
        return self._portal.run(self._async.queue(name))

    def create_queue(self, queue: Queue) -> Queue:
        """Raises `AdmissionDenied` where it isn't valid and `AlreadyExists` where its name is taken."""
        return self._portal.run(self._async.create_queue(queue))

    def update_queue(self, name: str, **changes: Unpack[QueueChanges]) -> Queue:
        """Change these fields of a queue as it is now, whoever changes others meanwhile. Raises `AdmissionDenied` where
        the result isn't valid."""
        return self._portal.run(self._async.update_queue(name, **changes))

    def replace_queue(self, queue: Queue) -> Queue:
        """Store a queue that was read and changed. Raises `Conflict` where somebody else changed it meanwhile."""
        return self._portal.run(self._async.replace_queue(queue))

    def delete_queue(self, name: str) -> None:
        """Nothing happens where it is gone already. Raises `AdmissionDenied` for one that is in use."""
        self._portal.run(self._async.delete_queue(name))

    def open_queue(self, name: str) -> None:
        """Let a queue take jobs again. Below one that is closed it stays so, which an event on it says."""
        self._portal.run(self._async.open_queue(name))

    def close_queue(self, name: str) -> None:
        """Let a queue take no more jobs; those that it has go on."""
        self._portal.run(self._async.close_queue(name))
