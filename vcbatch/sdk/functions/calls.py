"""Handles of functions that run as jobs, for scripts and notebooks: the twins of `async_calls`."""

from __future__ import annotations

from typing import Generic, TypeVar

from vcbatch.sdk.errors import ResultUnavailable, TaskFailed
from vcbatch.sdk.functions.async_calls import AsyncFunctionHandle, AsyncMapHandle
from vcbatch.sdk.job import JobHandle
from vcbatch.sdk.portal import Portal

R = TypeVar("R")


class FunctionHandle(JobHandle, Generic[R]):
    """One call of a function that runs as a job."""

    def __init__(self, portal: Portal, handle: AsyncFunctionHandle[R]) -> None:
        super().__init__(portal, handle)
        self._call = handle

    def result(self, *, timeout: float | None = None, show: bool = True) -> R:
        """What the function returned, once it has. Raises `TaskFailed` where it raised, from its exception, and
        `ResultUnavailable` where it ended in another way."""
        self.wait(timeout=timeout, show=show)
        return self._portal.run(self._call.result())


class MapHandle(JobHandle, Generic[R]):
    """One call of a function for each item, which run as one job."""

    def __init__(self, portal: Portal, handle: AsyncMapHandle[R]) -> None:
        super().__init__(portal, handle)
        self._calls = handle

    def results(self, *, timeout: float | None = None, show: bool = True) -> list[R]:
        """What the calls returned, in the order of the items, once all have ended. Raises the first `TaskFailed` or
        `ResultUnavailable`; `outcomes` gives them with the results."""
        self.wait(timeout=timeout, show=show)
        return self._portal.run(self._calls.results())

    def outcomes(self, *, timeout: float | None = None, show: bool = True) -> list[R | TaskFailed | ResultUnavailable]:
        """Of each call what it returned, or the error that `result` would raise."""
        self.wait(timeout=timeout, show=show)
        return self._portal.run(self._calls.outcomes())

    def result(self, *, timeout: float | None = None, show: bool = True) -> list[R]:
        """The same as `results`."""
        return self.results(timeout=timeout, show=show)
