"""Handles of functions that run as jobs, for scripts and notebooks: the synchronous twins of `async_calls`."""

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
        """Wait for the call and return the function's return value. In a notebook the job is shown, unless `show` is
        False.

        `timeout` is in seconds, None for no limit. Raises `TaskFailed` with the function's exception as its cause,
        `ResultUnavailable` where the call ended without a result, and `WaitTimeout`.
        """
        self.wait(timeout=timeout, show=show)
        return self._portal.run(self._call.result())


class MapHandle(JobHandle, Generic[R]):
    """One job with a call of a function for each item."""

    def __init__(self, portal: Portal, handle: AsyncMapHandle[R]) -> None:
        super().__init__(portal, handle)
        self._calls = handle

    def results(self, *, timeout: float | None = None, show: bool = True) -> list[R]:
        """Wait for all calls and return their return values in the order of the items. In a notebook the job is shown,
        unless `show` is False.

        `timeout` is in seconds, None for no limit. Raises the first `TaskFailed` or `ResultUnavailable`, which
        `outcomes` returns among the results, and `WaitTimeout`.
        """
        self.wait(timeout=timeout, show=show)
        return self._portal.run(self._calls.results())

    def outcomes(self, *, timeout: float | None = None, show: bool = True) -> list[R | TaskFailed | ResultUnavailable]:
        """Wait for all calls and return for each its return value, or the error that `results` would raise."""
        self.wait(timeout=timeout, show=show)
        return self._portal.run(self._calls.outcomes())

    def result(self, *, timeout: float | None = None, show: bool = True) -> list[R]:
        """The same as `results`."""
        return self.results(timeout=timeout, show=show)
