"""The present contents of a job's logs: of its pods, and of deleted pods as far as the server keeps them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from vcbatch.api import names
from vcbatch.api.meta import ObjectMeta, Wire
from vcbatch.api.resources import JOBS, PODS
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.client.kept_logs import KeptLogs, KeptRun
from vcbatch.sdk.log_reader import SIMULATED, LogApi, LogLine, parse_line
from vcbatch.sdk.log_sources import LogSource, choose, latest_uid, sources_of
from vcbatch.sdk.pod_view import PodView


class _JobName(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest:
    """Which logs to read. `uid` names one of several jobs of the name, by default the existing one, else the one that
    ended last. `attempt` counts from 1; `previous` is the attempt before the latest. Other parameters as in
    `follow_job`."""

    namespace: str
    name: str
    uid: str = ""
    attempt: int | None = None
    previous: bool = False
    tail: int | None = None
    since: datetime | None = None
    containers: Collection[str] | None = None
    tasks: Collection[str] | None = None
    indices: Collection[int] | None = None


class PastLogs:
    """The logs for one request, chosen when it was opened. `job_exists`: whether the job with `uid` still exists."""

    def __init__(
        self, api: LogApi, request: LogRequest, sources: Sequence[LogSource], kept: KeptLogs, *, job_exists: bool
    ) -> None:
        self._api = api
        self.request = request
        self.sources = sources
        self.kept = kept
        self.job_exists = job_exists

    @classmethod
    async def open(cls, api: LogApi, request: LogRequest) -> PastLogs:
        """Choose the logs. Raises `NoSuchAttemptError`; `ApiError` with 404 where there is no such job and no kept log
        of one."""
        missing: ApiError | None = None
        found = ""
        try:
            job = await api.get(JOBS, request.name, namespace=request.namespace, model=_JobName)
            found = job.metadata.uid
        except ApiError as error:
            if not error.not_found:
                raise
            missing = error
        exists = bool(found) and request.uid in ("", found)
        pods = await _pods(api, request, found) if exists else []
        kept = await api.kept_logs(request.name, namespace=request.namespace)  # after the pods: none is missed
        uid = request.uid or found or latest_uid(kept)
        runs = [run for run in kept.runs if run.job_uid == uid]
        if not exists and not runs:
            raise missing or ApiError(404, "NotFound", f"no job {request.name} with the UID {uid} exists or left logs")
        request = replace(request, uid=uid)
        sources = sources_of(
            [pod for pod in pods if _selected(request, pod.task, pod.index)],
            [run for run in runs if _selected(request, run.task, run.index)],
        )
        chosen = choose(sources, attempt=request.attempt, previous=request.previous)
        return cls(api, request, chosen, kept, job_exists=exists)

    async def lines(self, on_silence: Callable[[str], None] | None = None) -> AsyncGenerator[LogLine, None]:
        """Yield the lines, pod by pod. `on_silence` gets the reason why the log of a pod is missing."""
        said: set[str] = set()

        def say(sentence: str) -> None:
            if on_silence is not None and sentence not in said:
                said.add(sentence)
                on_silence(sentence)

        for source in self.sources:
            try:
                async with aclosing(self._of(source, say)) as lines:
                    async for line in lines:
                        yield line
            except ApiError as error:
                if error.code == SIMULATED:
                    say(simulated(self.request.name))
                elif error.code not in (400, 404):  # 400: it hasn't started
                    raise

    async def _of(self, source: LogSource, say: Callable[[str], None]) -> AsyncGenerator[LogLine, None]:
        for container in self._containers(source):
            runs = self._runs(source, container)
            if source.live is not None:
                runs = runs if self.request.attempt is not None else []
            for run in runs:
                if run.removed:
                    say(f"the log of {source.task}/{source.index} in attempt {run.attempt} was removed: {run.removed}")
                    continue
                async with aclosing(self._kept_lines(source, run)) as lines:
                    async for line in lines:
                        yield line
            if source.live is not None:
                async with aclosing(self._live_lines(source, container)) as lines:
                    async for line in lines:
                        yield line

    def _containers(self, source: LogSource) -> list[str]:
        """The containers of a pod, by default without its init containers."""
        if source.live is not None:
            all_of, regular = source.live.all_containers(), source.live.containers()
        else:
            all_of = list(dict.fromkeys(run.container for run in source.runs))
            regular = [name for name in all_of if not any(run.init for run in source.runs if run.container == name)]
        wanted = self.request.containers
        return regular if wanted is None else [name for name in all_of if name in wanted]

    def _runs(self, source: LogSource, container: str) -> list[KeptRun]:
        runs = [run for run in source.runs if run.container == container]
        if source.previous:
            return runs[-2:-1]
        return runs if self.request.attempt is not None else runs[-1:]

    async def _kept_lines(self, source: LogSource, run: KeptRun) -> AsyncGenerator[LogLine, None]:
        request = self.request
        lines = self._api.kept_log_lines(
            run, namespace=request.namespace, job=request.name, tail=request.tail, since=request.since
        )
        async for line in self._parsed(lines, source, run.container, run.restarts):
            yield line

    async def _live_lines(self, source: LogSource, container: str) -> AsyncGenerator[LogLine, None]:
        request, live = self.request, source.live
        assert live is not None  # noqa: S101
        latest = live.run_of(container).number
        earlier = source.previous or (request.attempt is not None and latest > 0)
        both = [True, False] if earlier and not source.previous else [source.previous]
        for previous in both:
            lines = self._api.log_lines(
                live.metadata.name, namespace=request.namespace, container=container, previous=previous,
                timestamps=True, tail=request.tail, since=request.since,
            )  # fmt: skip
            try:
                async for line in self._parsed(lines, source, container, latest - previous):
                    yield line
            except ApiError as error:
                if error.code == 404:
                    break
                if error.code != 400:
                    raise
        else:
            return
        # Deleted since the pods were listed.
        kept = await self._api.kept_logs(request.name, namespace=request.namespace)
        runs = [run for run in kept.runs if (run.pod_uid, run.container) == (source.uid, container)]
        for run in runs[-1:]:
            async with aclosing(self._kept_lines(source, run)) as lines:
                async for line in lines:
                    yield line

    async def _parsed(
        self, lines: AsyncIterator[bytes], source: LogSource, container: str, run: int
    ) -> AsyncGenerator[LogLine, None]:
        since = self.request.since.astimezone(UTC) if self.request.since is not None else None
        async with aclosing(cast("Any", lines)) as stream:
            async for data in stream:
                time, text = parse_line(data)
                if since is not None and time is not None and time < since:
                    continue
                yield LogLine(
                    task=source.task,
                    index=source.index,
                    pod=source.pod,
                    container=container,
                    restart=source.attempt - 1 + run,
                    text=text,
                    time=time,
                )


def simulated(job: str) -> str:
    """The reason why pods on simulated nodes have no logs."""
    return f"pods of {job} on simulated nodes print nothing"


def _selected(request: LogRequest, task: str, index: int) -> bool:
    if request.indices is not None and index not in request.indices:
        return False
    return request.tasks is None or task in request.tasks


async def _pods(api: LogApi, request: LogRequest, uid: str) -> list[PodView]:
    listing = await api.list(
        PODS, namespace=request.namespace, label_selector=f"{names.JOB_NAME}={request.name}", model=PodView
    )
    return list(_owned(listing.items, uid))


def _owned(pods: Sequence[PodView], uid: str) -> Iterator[PodView]:
    for pod in pods:
        owner = pod.metadata.controller_owner()
        if owner is not None and owner.uid == uid:
            yield pod
