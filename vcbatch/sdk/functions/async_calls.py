"""Handles of functions that run as jobs, for programs with an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from vcbatch.api import names
from vcbatch.api.phases import JobPhase
from vcbatch.api.reasons import LossCause
from vcbatch.sdk.async_job import AsyncJobHandle
from vcbatch.sdk.errors import ResultUnavailable, TaskFailed
from vcbatch.sdk.functions.folder import CallFolder, NoResult, SharedFolder
from vcbatch.sdk.models.job import Job
from vcbatch.sdk.records import PodEnd, pod_ends_of

if TYPE_CHECKING:
    from vcbatch.sdk.session import Session

R = TypeVar("R")

_ENDED: Final[dict[str, str]] = {
    LossCause.DEADLINE_EXCEEDED: "ran longer than its time limit",
    LossCause.OOM_KILLED: "was killed for using more memory than it may",
}
"""Pod reasons that explain an end better than an exit code does."""


class AsyncCalls(AsyncJobHandle, Generic[R]):
    """A job whose pods each call a function once."""

    def __init__(self, session: Session, *, job: Job, folder: CallFolder) -> None:
        super().__init__(session, namespace=job.namespace or session.namespace, name=job.name, last=job)
        self.folder = folder

    async def _outcomes(self, indices: Sequence[int]) -> list[R | TaskFailed | ResultUnavailable]:
        """The result of each call: its return value, or the error with the reason why there is none."""
        found = await asyncio.to_thread(self.folder.results, indices)
        if any(isinstance(outcome, NoResult) for outcome in found):
            manifest = await self._manifest()
            with self._session.translated():
                ends = await pod_ends_of(await self._session.api(), manifest)
            job = self._seen(Job.from_manifest(manifest))
            found = [self._why(outcome, job, ends) if isinstance(outcome, NoResult) else outcome for outcome in found]
        return found

    def _why(self, none: NoResult, job: Job, ends: Mapping[str, PodEnd]) -> ResultUnavailable:
        end = ends.get(names.pod_name(self.name, "call", none.index))
        code = end.exit_code if end is not None else None
        if end is not None and end.reason in _ENDED:
            why = f"call {none.index} {_ENDED[end.reason]}"
        elif code is not None:
            why = f"{none.message} (exit code {code})"
        elif job.phase is JobPhase.COMPLETED:
            why = none.message
        else:
            said = f", {job.status.why}" if job.status.why else ""
            why = f"call {none.index} has no result: the job is {job.phase}{said}"
        return ResultUnavailable(why, hint=none.hint, index=none.index, exit_code=code)

    async def delete(self) -> None:
        """Delete the job, and the files of its calls and their results."""
        await super().delete()
        await asyncio.to_thread(self.folder.remove)


class AsyncFunctionHandle(AsyncCalls[R]):
    """A job with one call of a function."""

    async def result(self, *, timeout: float | None = None) -> R:
        """Wait for the call and return the function's return value.

        `timeout` is in seconds, None for no limit. Raises `TaskFailed` with the function's exception as its cause,
        `ResultUnavailable` where the call ended without a result, and `WaitTimeout`.
        """
        await self.wait(timeout=timeout)
        return _value((await self._outcomes([0]))[0])


class AsyncMapHandle(AsyncCalls[R]):
    """A job with one call of a function for each item."""

    async def results(self, *, timeout: float | None = None) -> list[R]:
        """Wait for all calls and return their return values in the order of the items.

        `timeout` is in seconds, None for no limit. Raises the first `TaskFailed` or `ResultUnavailable`, which
        `outcomes` returns among the results, and `WaitTimeout`.
        """
        return [_value(outcome) for outcome in await self.outcomes(timeout=timeout)]

    async def outcomes(self, *, timeout: float | None = None) -> list[R | TaskFailed | ResultUnavailable]:
        """Wait for all calls and return for each its return value, or the error that `results` would raise."""
        await self.wait(timeout=timeout)
        return await self._outcomes(range(await asyncio.to_thread(self.folder.calls)))

    async def result(self, *, timeout: float | None = None) -> list[R]:
        """The same as `results`."""
        return await self.results(timeout=timeout)


def _value(outcome: R | TaskFailed | ResultUnavailable) -> R:
    if isinstance(outcome, TaskFailed | ResultUnavailable):
        raise outcome
    return outcome


def folder_of(job: Job, session: Session, shared: SharedFolder | None) -> CallFolder:
    """The directory of a job that runs a function. Raises `VcbatchError`."""
    token = job.annotations.get(names.CALL_FOLDER)
    if token is None:
        raise ResultUnavailable(f"job {job.namespace}/{job.name} doesn't run a function")
    return CallFolder.at(token, state_dir=session.state_dir, shared=shared)
