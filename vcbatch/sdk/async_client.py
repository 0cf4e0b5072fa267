"""The client for programs with an event loop. `vcbatch.sdk.client` has its synchronous twin."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, Unpack, overload

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

if TYPE_CHECKING:
    from vcbatch.sdk.export import Export

P = ParamSpec("P")
R = TypeVar("R")

_UPDATE_TRIES = 8


class AsyncClient:
    """Jobs and queues of one server, with a default namespace.

    Without arguments it connects to the server that kubectl would use: the current context of $KUBECONFIG or
    ~/.kube/config, or the cluster of the pod that it runs in; where none is configured, to the local server
    (`vcbatch up`). Raises `NotConfigured` where there is none of these.

    Throttled requests are retried after the time that the server gives. Requests that failed on the network or with a
    server error are retried where that can't take effect twice. `timeout` is the maximum of seconds of one attempt of a
    request. Close it, or use it in `async with`.
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
        """Connect to the local server and return a client.

        The server is started where it doesn't run, unless `start` is False. It keeps running after the program:
        `vcbatch down` stops it. `state_dir` is the directory of its state. Raises `NotConfigured` where it doesn't run
        and isn't or can't be started.
        """
        return cls.of(
            local(Path(state_dir) if state_dir is not None else None, start=start), namespace=namespace, timeout=timeout
        )

    @classmethod
    def of(cls, place: Place, *, namespace: str | None = None, timeout: float = 30.0) -> Self:
        """Return a client of a server that was already found."""
        client = cls.__new__(cls)
        client._session = Session(place, namespace=namespace, timeout=timeout)
        return client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections of the client."""
        await self._session.close()

    @property
    def server(self) -> str:
        """The URL of the server."""
        return self._session.server

    @property
    def namespace(self) -> str:
        """The default namespace of jobs."""
        return self._session.namespace

    def __repr__(self) -> str:
        return f"{type(self).__name__}(server={self.server!r}, namespace={self.namespace!r})"

    # Jobs

    @overload
    async def submit(self, work: Job | Mapping[str, Any], /, *, namespace: str | None = None) -> AsyncJobHandle: ...

    @overload
    async def submit(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> AsyncFunctionHandle[R]: ...

    async def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Create a job and return its handle.

        `work` is a model, a manifest, or a function with its arguments (`@task` has the options of its job). Raises
        `AdmissionDenied` where the job is invalid, `AlreadyExists` where its name is in use, and `Unavailable` where it
        is unknown whether it was created.
        """
        if isinstance(work, Job | Mapping):
            return await self._make(work, *args, **kwargs)
        if not callable(work):
            raise TypeError(f"submit() wants a Job, a manifest as a dict, or a function, got {work!r}")
        job, folder = await self._send(as_task(work), [(args, kwargs)])
        return AsyncFunctionHandle(self._session, job=job, folder=folder)

    async def map(self, function: Callable[..., R], /, *iterables: Iterable[Any]) -> AsyncMapHandle[R]:
        """Create one job for many calls, one for each item as in Python's `map`, and return its handle.

        Calls run as capacity allows. A call that fails doesn't stop the others. Raises the same errors as `submit`.
        """
        if not iterables:
            raise TypeError("map() wants at least one iterable of arguments")
        calls = islice(zip(*iterables, strict=False), MOST_CALLS + 1)
        job, folder = await self._send(as_task(function), [(items, {}) for items in calls])
        return AsyncMapHandle(self._session, job=job, folder=folder)

    async def attach(
        self, name: str, *, namespace: str | None = None, shared: SharedFolder | None = None
    ) -> AsyncMapHandle[Any]:
        """Return the handle of a job of functions that another program, or an earlier run of this one, submitted.

        On a cluster `shared` has to be given again. Raises `NotFound` where the job doesn't exist, and `VcbatchError`
        where it runs no function or its directory can't be read.
        """
        job = await self.job(name, namespace=namespace).get()
        return AsyncMapHandle(self._session, job=job, folder=folder_of(job, self._session, shared))

    async def _send(self, function: TaskFunction[..., Any], calls: Sequence[Call]) -> tuple[Job, CallFolder]:
        """Write the calls and create their job. The files are removed where creating the job fails."""
        function.check(calls)
        token = self._session.random.token(16)
        folder = CallFolder.at(token, state_dir=self._session.state_dir, shared=function.settings.shared)
        job = job_of(function, count=len(calls), token=token, folder=folder)
        state_dir = None if folder.remote else self._session.state_dir
        exported = None
        if state_dir is not None:
            from vcbatch.sdk.export import Export

            exported = Export.parse(function.settings.export, os.environ)
        await asyncio.to_thread(folder.write, function.function, calls, retries=function.settings.retries)
        try:
            if state_dir is None or exported is None:
                handle = await self._make(job)
            else:
                handle = await self._make_with(exported, job, state_dir)
        except BaseException:
            await asyncio.to_thread(folder.remove)
            raise
        return handle.last or job, folder

    async def _make_with(self, exported: Export, job: Job, state_dir: Path) -> AsyncJobHandle:
        """Create the job with the environment of this process, which is removed where creating the job fails."""
        from vcbatch.sdk.export import discard, store, with_environment

        namespace = job.namespace or self.namespace
        try:
            number = await asyncio.to_thread(store, exported, state_dir=state_dir, namespace=namespace)
        except OSError as error:
            hint = f"It is stored in {state_dir}, which has to be a directory of yours that only you can write to."
            raise VcbatchError(f"the environment can't be exported: {error.strerror or error}", hint=hint) from error
        try:
            return await self._make(with_environment(job.to_manifest(), number))
        except BaseException:
            await asyncio.to_thread(discard, number, state_dir=state_dir)
            raise

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
            # An automatic retry could run a job with a generated name twice.
            hint = "It isn't known whether the job was made: look with client.jobs() before you resubmit it."
            raise Unavailable(error.message, hint=hint, code=error.code, reason=error.reason) from error
        seen = Job.from_manifest(made)
        return AsyncJobHandle(self._session, namespace=at, name=seen.name, last=seen)

    def job(self, name: str, *, namespace: str | None = None) -> AsyncJobHandle:
        """Return a handle of the job of this name. No request is sent before a method of the handle is called."""
        return AsyncJobHandle(self._session, namespace=namespace or self.namespace, name=name)

    async def jobs(
        self,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        labels: str | Mapping[str, str] = "",
        fields: str = "",
    ) -> list[AsyncJobHandle]:
        """Return handles of the jobs of a namespace, or of all namespaces.

        `labels` and `fields` are selectors in kubectl's format; `labels` may also be a mapping. Raises `Forbidden`
        where the jobs may not be listed.
        """
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
        """Return all queues. Raises `Forbidden` where they may not be listed."""
        with self._session.translated():
            api = await self._session.api()
            return [Queue.from_manifest(manifest) for manifest in (await api.list(QUEUES)).items]

    async def queue(self, name: str) -> Queue:
        """Return the queue of this name. Raises `NotFound` where it doesn't exist."""
        with self._session.translated():
            return Queue.from_manifest(await (await self._session.api()).get(QUEUES, name))

    async def create_queue(self, queue: Queue) -> Queue:
        """Create a queue and return it as stored.

        Raises `AdmissionDenied` where it is invalid and `AlreadyExists` where its name is in use.
        """
        with self._session.translated():
            return Queue.from_manifest(await (await self._session.api()).create(QUEUES, queue.to_manifest()))

    async def update_queue(self, name: str, **changes: Unpack[QueueChanges]) -> Queue:
        """Change these fields of the stored queue and return the result; concurrent changes of other fields are kept.

        Raises `NotFound` where the queue doesn't exist and `AdmissionDenied` where the result is invalid.
        """
        for _ in range(_UPDATE_TRIES - 1):
            with suppress(Conflict):
                return await self.replace_queue((await self.queue(name)).replace(**changes))
        return await self.replace_queue((await self.queue(name)).replace(**changes))

    async def replace_queue(self, queue: Queue) -> Queue:
        """Store a queue that was read and changed, and return it as stored.

        Raises `Conflict` where another client changed it since it was read; changed counts in its status are no
        conflict. Raises `AdmissionDenied` where the queue is invalid.
        """
        with self._session.translated():
            return Queue.from_manifest(await replaced(await self._session.api(), QUEUES, queue.to_manifest()))

    async def delete_queue(self, name: str) -> None:
        """Delete a queue; a missing one is ignored. Raises `AdmissionDenied` for a queue that is in use."""
        try:
            with self._session.translated():
                await (await self._session.api()).delete(QUEUES, name)
        except NotFound:
            pass
        except AdmissionDenied as error:
            error.hint = ""  # no field needs a correction; the message names the work in the queue
            raise

    async def open_queue(self, name: str) -> None:
        """Open a queue for new jobs. Below a closed parent it stays closed, which is reported as an event on it.

        Raises `NotFound` where it doesn't exist.
        """
        await self._ask_queue(name, Action.OPEN_QUEUE)

    async def close_queue(self, name: str) -> None:
        """Close a queue for new jobs; its present jobs continue. Raises `NotFound` where it doesn't exist."""
        await self._ask_queue(name, Action.CLOSE_QUEUE)

    async def _ask_queue(self, name: str, action: Action) -> None:
        with self._session.translated():
            api = await self._session.api()
            uid = str(part(await api.get(QUEUES, name), "metadata").get("uid"))
            command = command_manifest(QUEUES, name, uid, action, namespace=self.namespace)
            await api.create(COMMANDS, command, namespace=self.namespace)
