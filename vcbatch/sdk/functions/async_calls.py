"""Handles of functions that run as jobs, for programs with an event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

from vcbatch.api import names
from vcbatch.sdk.async_job import AsyncJobHandle
from vcbatch.sdk.errors import ResultUnavailable, TaskFailed
from vcbatch.sdk.functions.folder import CallFolder, SharedFolder
from vcbatch.sdk.models.job import Job
from vcbatch.sdk.records import exit_codes_of

if TYPE_CHECKING:
    from vcbatch.sdk.session import Session

R = TypeVar("R")


class AsyncCalls(AsyncJobHandle, Generic[R]):
    """A job whose pods each call a function once."""

    def __init__(self, session: Session, *, job: Job, folder: CallFolder) -> None:
        super().__init__(session, namespace=job.namespace or session.namespace, name=job.name, last=job)
        self.folder = folder

    async def _outcome(self, index: int) -> R:
        try:
            return await asyncio.to_thread(self.folder.result, index)
        except ResultUnavailable as error:
            with self._session.translated():
                codes = await exit_codes_of(await self._session.api(), (await self.get()).to_manifest())
            code = codes.get(names.pod_name(self.name, "call", index))
            if code is None:
                raise
            raise ResultUnavailable(f"{error.message} (exit code {code})", hint=error.hint) from None

    async def delete(self) -> None:
        """Remove the job, its calls and their results."""
        await super().delete()
        await asyncio.to_thread(self.folder.remove)


class AsyncFunctionHandle(AsyncCalls[R]):
    """One call."""

    async def result(self, *, timeout: float | None = None) -> R:
        """What the function returned, once it has. Raises `TaskFailed` where it raised, from its exception, and
        `ResultUnavailable` where it ended in another way."""
        await self.wait(timeout=timeout)
        return await self._outcome(0)


class AsyncMapHandle(AsyncCalls[R]):
    """One call for each item."""

    async def results(self, *, timeout: float | None = None) -> list[R]:
        """What the calls returned, in the order of the items, once all have ended. Raises the first `TaskFailed` or
        `ResultUnavailable`; `outcomes` gives them with the results."""
        for outcome in (outcomes := await self.outcomes(timeout=timeout)):
            if isinstance(outcome, TaskFailed | ResultUnavailable):
                raise outcome
        return outcomes  # type: ignore[return-value]

    async def outcomes(self, *, timeout: float | None = None) -> list[R | TaskFailed | ResultUnavailable]:
        """Of each call what it returned, or the error that `result` would raise."""
        await self.wait(timeout=timeout)
        found: list[R | TaskFailed | ResultUnavailable] = []
        for index in range(await asyncio.to_thread(self.folder.calls)):
            try:
                found.append(await self._outcome(index))
            except (TaskFailed, ResultUnavailable) as error:
                found.append(error)
        return found

    async def result(self, *, timeout: float | None = None) -> list[R]:
        """The same as `results`."""
        return await self.results(timeout=timeout)


def folder_of(job: Job, session: Session, shared: SharedFolder | None) -> CallFolder:
    """The folder of a job that runs a function. Raises `VcbatchError`."""
    token = job.annotations.get(names.CALL_FOLDER)
    if token is None:
        raise ResultUnavailable(f"job {job.namespace}/{job.name} doesn't run a function")
    return CallFolder.at(token, state_dir=session.state_dir, shared=shared)
