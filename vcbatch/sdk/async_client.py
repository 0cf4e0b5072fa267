"""The client for programs that have an event loop. `vcbatch.sdk.client` has its twin for all others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar, Unpack, overload

from vcbatch.api.bus import command_manifest
from vcbatch.api.loose import part
from vcbatch.api.phases import Action
from vcbatch.api.resources import COMMANDS, JOBS, QUEUES
from vcbatch.sdk.async_job import AsyncJobHandle
from vcbatch.sdk.connecting import Place, configured, local
from vcbatch.sdk.errors import AdmissionDenied, Conflict, NotFound, Unavailable, VcbatchError
from vcbatch.sdk.functions.async_calls import AsyncFunctionHandle, AsyncMapHandle, folder_of
from vcbatch.sdk.functions.folder import MOST_CALLS, Call, CallFolder, SharedFolder
from vcbatch.sdk.functions.task import TaskFunction, as_task, job_of
from vcbatch.sdk.models.job import Job
from vcbatch.sdk.models.queue import Queue, QueueChanges
from vcbatch.sdk.replacing import replaced
from vcbatch.sdk.session import Session

P = ParamSpec("P")
R = TypeVar("R")

_UPDATE_TRIES = 8


class AsyncClient:
    """Jobs and queues of one server, seen from one namespace.

    Without arguments it goes where kubectl goes: to the current context of $KUBECONFIG or ~/.kube/config, to the
    cluster of the pod that it runs in, and else to the server that `vcbatch up` runs here. Raises `NotConfigured`.

    Requests that are throttled are made again when the server says so. What fails on the way, or by the server's error,
    is made again where that can't do harm twice. `timeout` is the seconds that one try of a request may take. Close it,
    or use it in `async with`.
    """

    def __init__(
        self,
        *,
        kubeconfig: str | Path | None = None,
        context: str | None = None,
        namespace: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        place = configured(Path(kubeconfig) if kubeconfig is not None else None, context)
        self._session = Session(place, namespace=namespace, timeout=timeout)

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
        return cls.of(
            local(Path(state_dir) if state_dir is not None else None, start=start), namespace=namespace, timeout=timeout
        )

    @classmethod
    def of(cls, place: Place, *, namespace: str | None = None, timeout: float = 30.0) -> Self:
        """A client of a server that has been found already."""
        client = cls.__new__(cls)
        client._session = Session(place, namespace=namespace, timeout=timeout)
        return client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._session.close()

    @property
    def server(self) -> str:
        return self._session.server

    @property
    def namespace(self) -> str:
        return self._session.namespace

    def __repr__(self) -> str:
        return f"{type(self).__name__}(server={self.server!r}, namespace={self.namespace!r})"

    # Jobs

    @overload
    async def submit(self, work: Job | Mapping[str, Any], /, *, namespace: str | None = None) -> AsyncJobHandle: ...

    @overload
    async def submit(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> AsyncFunctionHandle[R]: ...

    async def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Make a job: from a model, from a manifest, or of a function and its arguments (`@task` says how it runs).
        Raises `AdmissionDenied` where it isn't valid and `AlreadyExists` where its name is taken."""
        if isinstance(work, Job | Mapping):
            return await self._make(work, *args, **kwargs)
        if not callable(work):
            raise TypeError(f"submit() wants a Job, a manifest as a dict, or a function, got {work!r}")
        job, folder = await self._send(as_task(work), [(args, kwargs)])
        return AsyncFunctionHandle(self._session, job=job, folder=folder)

    async def map(self, function: Callable[..., R], /, *iterables: Iterable[Any]) -> AsyncMapHandle[R]:
        """Make one job of many calls, as `map` would make them, which run as there is room for them. One that fails
        stops no other."""
        if not iterables:
            raise TypeError("map() wants at least one iterable of arguments")
        calls = islice(zip(*iterables, strict=False), MOST_CALLS + 1)
        job, folder = await self._send(as_task(function), [(items, {}) for items in calls])
        return AsyncMapHandle(self._session, job=job, folder=folder)

    async def attach(
        self, name: str, *, namespace: str | None = None, shared: SharedFolder | None = None
    ) -> AsyncMapHandle[Any]:
        """The handle of a job of functions that another program, or an earlier run of this one, has submitted. On a
        cluster `shared` has to be named again."""
        job = await self.job(name, namespace=namespace).get()
        return AsyncMapHandle(self._session, job=job, folder=folder_of(job, self._session, shared))

    async def _send(self, function: TaskFunction[..., Any], calls: Sequence[Call]) -> tuple[Job, CallFolder]:
        """Write the calls and make their job. Nothing is left where it is refused."""
        function.check(calls)
        token = self._session.random.token(16)
        folder = CallFolder.at(token, state_dir=self._session.state_dir, shared=function.settings.shared)
        job = job_of(function, count=len(calls), token=token, folder=folder)
        await asyncio.to_thread(folder.write, function.function, calls, retries=function.settings.retries)
        try:
            handle = await self._make(job)
        except BaseException:
            await asyncio.to_thread(folder.remove)
            raise
        return handle.last or job, folder

    async def _make(self, job: Job | Mapping[str, Any], *, namespace: str | None = None) -> AsyncJobHandle:
        wanted = (job if isinstance(job, Job) else Job.from_manifest(job)).as_new()
        at = namespace or wanted.namespace or self.namespace
        if not wanted.name and not wanted.generate_name:
            hint = "Give it a name or, for the server to make one, generate_name."
            raise VcbatchError("the job has no name", hint=hint)
        body = wanted.replace(namespace=at).to_manifest()
        try:
            with self._session.translated():
                made = await (await self._session.api()).create(JOBS, body, namespace=at)
        except Unavailable as error:
            # Made again blindly, a job whose name the server makes would run twice.
            hint = "It isn't known whether the job was made: look with client.jobs() before you resubmit it."
            raise Unavailable(error.message, hint=hint, code=error.code, reason=error.reason) from error
        seen = Job.from_manifest(made)
        return AsyncJobHandle(self._session, namespace=at, name=seen.name, last=seen)

    def job(self, name: str, *, namespace: str | None = None) -> AsyncJobHandle:
        """The job of this name, which isn't looked at before something is asked of it."""
        return AsyncJobHandle(self._session, namespace=namespace or self.namespace, name=name)

    async def jobs(
        self,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        labels: str | Mapping[str, str] = "",
        fields: str = "",
    ) -> list[AsyncJobHandle]:
        """The jobs of a namespace, or of all. `labels` and `fields` are selectors as kubectl takes them."""
        selector = labels if isinstance(labels, str) else ",".join(f"{key}={value}" for key, value in labels.items())
        at = None if all_namespaces else namespace or self.namespace
        with self._session.translated():
            api = await self._session.api()
            found = (await api.list(JOBS, namespace=at, label_selector=selector, field_selector=fields)).items
        jobs = [Job.from_manifest(manifest) for manifest in found]
        return [
            AsyncJobHandle(self._session, namespace=job.namespace or self.namespace, name=job.name, last=job)
            for job in jobs
        ]

    # Queues

    async def queues(self) -> list[Queue]:
        with self._session.translated():
            api = await self._session.api()
            return [Queue.from_manifest(manifest) for manifest in (await api.list(QUEUES)).items]

    async def queue(self, name: str) -> Queue:
        with self._session.translated():
            return Queue.from_manifest(await (await self._session.api()).get(QUEUES, name))

    async def create_queue(self, queue: Queue) -> Queue:
        """Raises `AdmissionDenied` where it isn't valid and `AlreadyExists` where its name is taken."""
        with self._session.translated():
            return Queue.from_manifest(await (await self._session.api()).create(QUEUES, queue.to_manifest()))

    async def update_queue(self, name: str, **changes: Unpack[QueueChanges]) -> Queue:
        """Change these fields of a queue as it is now, whoever changes others meanwhile. Raises `AdmissionDenied` where
        the result isn't valid."""
        for _ in range(_UPDATE_TRIES - 1):
            with suppress(Conflict):
                return await self.replace_queue((await self.queue(name)).replace(**changes))
        return await self.replace_queue((await self.queue(name)).replace(**changes))

    async def replace_queue(self, queue: Queue) -> Queue:
        """Store a queue that was read and changed. Raises `Conflict` where somebody else changed it meanwhile; the
        counts in its status, which move all the time, are nobody's change."""
        with self._session.translated():
            return Queue.from_manifest(await replaced(await self._session.api(), QUEUES, queue.to_manifest()))

    async def delete_queue(self, name: str) -> None:
        """Nothing happens where it is gone already. Raises `AdmissionDenied` for one that is in use."""
        try:
            with self._session.translated():
                await (await self._session.api()).delete(QUEUES, name)
        except NotFound:
            pass
        except AdmissionDenied as error:
            error.hint = ""  # there is nothing to correct; what is in the queue is said
            raise

    async def open_queue(self, name: str) -> None:
        """Let a queue take jobs again. Below one that is closed it stays so, which an event on it says."""
        await self._ask_queue(name, Action.OPEN_QUEUE)

    async def close_queue(self, name: str) -> None:
        """Let a queue take no more jobs; those that it has go on."""
        await self._ask_queue(name, Action.CLOSE_QUEUE)

    async def _ask_queue(self, name: str, action: Action) -> None:
        with self._session.translated():
            api = await self._session.api()
            uid = str(part(await api.get(QUEUES, name), "metadata").get("uid"))
            command = command_manifest(QUEUES, name, uid, action, namespace=self.namespace)
            await api.create(COMMANDS, command, namespace=self.namespace)
