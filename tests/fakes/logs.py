"""Pods with logs in memory, with log connections that fail as real ones do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from tests.fakes.api import FakeApi, not_found
from tests.support.virtual_time import EPOCH
from vcbatch.api import names
from vcbatch.api.resources import JOBS, PODS
from vcbatch.interfaces.api import ApiError, Json
from vcbatch.runtime.client.kept_logs import KeptLogs, KeptRun


class Cut(StrEnum):
    """How a log connection fails."""

    ERROR = "error"  # reset in the middle
    CLOSE = "close"  # closed as if the log were complete, which happens only to followed logs
    SILENCE = "silence"  # no more data, until the client times out


@dataclass
class Run:
    """One run of a container: its lines with their times."""

    lines: list[tuple[datetime, str]] = field(default_factory=list)
    ended: bool = False


class GangApi(FakeApi):
    """`LogApi` with one job. `cuts` says for each log connection after how many lines it fails, and how."""

    def __init__(self, cuts: Iterable[tuple[int, Cut] | None] = ()) -> None:
        super().__init__()
        self.cuts = iter(cuts)
        self.connections = 0
        self.open = 0
        self.most_open = 0
        self.time = EPOCH
        self.runs: dict[tuple[str, str], list[Run]] = {}
        self.keeps = False
        self.kept: list[tuple[KeptRun, Run]] = []
        self.job = self.seed(JOBS, {"metadata": {"name": "train", "namespace": "default"}, "status": {}})

    # Operations of tests

    def phase(self, phase: str) -> None:
        self._store("MODIFIED", JOBS, {**self.job, "status": {"state": {"phase": phase}}})

    def pod(self, index: int, *, task: str = "worker", retry: int = 0, containers: tuple[str, ...] = ("main",)) -> str:
        """Create a waiting pod; returns its name."""
        name = f"train-{task}-{index}"
        owner = {"kind": "Job", "name": "train", "uid": self.job["metadata"]["uid"], "controller": True}
        self.seed(
            PODS,
            {
                "metadata": {
                    "name": name,
                    "namespace": "default",
                    "labels": {names.JOB_NAME: "train", names.TASK_SPEC: task, names.TASK_INDEX: str(index)},
                    "annotations": {names.JOB_RETRY_COUNT: str(retry)},
                    "ownerReferences": [owner],
                },
                "spec": {"containers": [{"name": container} for container in containers]},
                "status": {"phase": "Pending"},
            },
        )
        for container in containers:
            self.runs[name, container] = []
        return name

    def start(self, pod: str, container: str = "main") -> None:
        self.runs[pod, container].append(Run())
        self._report(pod)

    def print(self, pod: str, *texts: str, container: str = "main", seconds: float = 0.0) -> None:
        """Print lines `seconds` after the last ones, all with the same timestamp."""
        self.time += timedelta(seconds=seconds)
        self.runs[pod, container][-1].lines.extend((self.time, text) for text in texts)
        self._wake()

    def exit(self, pod: str, container: str = "main", *, phase: str = "", reported: bool = True) -> None:
        self.runs[pod, container][-1].ended = True
        if reported:
            self._report(pod, phase)
        else:
            self._wake()

    def vanish(self, pod: str) -> None:
        metadata = self.objects[PODS, "default", pod]["metadata"]
        for (name, container), runs in self.runs.items():
            if name == pod and runs:
                runs[-1].ended = True
                self.kept += [
                    (_kept(metadata, container, number, last=len(runs) - 1), run) for number, run in enumerate(runs)
                ]
        self.remove(PODS, pod, "default")

    def _report(self, pod: str, phase: str = "") -> None:
        obj = self.objects[PODS, "default", pod]
        statuses = [self._status(name, runs) for (owner, name), runs in self.runs.items() if owner == pod]
        status = {"phase": phase or "Running", "containerStatuses": statuses}
        self._store("MODIFIED", PODS, {**obj, "status": status})

    def _status(self, container: str, runs: list[Run]) -> Json:
        if not runs:
            return {"name": container, "restartCount": 0, "state": {"waiting": {}}}
        state = {"terminated": {"exitCode": 1}} if runs[-1].ended else {"running": {}}
        before = {"terminated": {"exitCode": 1}} if len(runs) > 1 else {}
        return {"name": container, "restartCount": len(runs) - 1, "state": state, "lastState": before}

    # The interface

    async def log_lines(
        self,
        name: str,
        *,
        namespace: str,
        container: str = "",
        follow: bool = False,
        previous: bool = False,
        timestamps: bool = False,
        tail: int | None = None,
        since: datetime | None = None,
    ) -> AsyncIterator[bytes]:
        self.connections += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            async for line in self._lines(name, container, follow, previous, tail, since):
                yield line
        finally:
            self.open -= 1

    async def kept_logs(self, job: str, *, namespace: str) -> KeptLogs:
        """The logs of `vanish`ed pods where `keeps` is set."""
        return KeptLogs(enabled=self.keeps, runs=[run for run, _ in self.kept] if self.keeps else [])

    async def kept_log_lines(
        self,
        run: KeptRun,
        *,
        namespace: str,
        job: str,
        tail: int | None = None,
        since: datetime | None = None,
    ) -> AsyncIterator[bytes]:
        found = next(lines for kept, lines in self.kept if kept == run).lines
        lines = [line for line in found if since is None or line[0] >= since.replace(microsecond=0)]
        for time, text in lines if tail is None else lines[len(lines) - tail :]:
            yield f"{time:%Y-%m-%dT%H:%M:%S.%f}000Z {text}".encode()

    async def _lines(
        self, name: str, container: str, follow: bool, previous: bool, tail: int | None, since: datetime | None
    ) -> AsyncIterator[bytes]:
        if (PODS, "default", name) not in self.objects:
            raise not_found(name)
        runs = self.runs[name, container]
        wanted = runs[-2:-1] if previous else runs[-1:]
        if not wanted:
            raise ApiError(400, "BadRequest", "waiting to start")
        run, at, given = wanted[0], 0, 0
        left, how = next(self.cuts, None) or (-1, Cut.ERROR)
        lines = [line for line in run.lines if since is None or line[0] >= since.replace(microsecond=0)]
        at = len(run.lines) - len(lines)
        if tail is not None:
            at = max(at, len(run.lines) - tail)
        while True:
            changed = self.changed
            while at < len(run.lines):
                if given == left:
                    break
                time, text = run.lines[at]
                at, given = at + 1, given + 1
                yield f"{time:%Y-%m-%dT%H:%M:%S.%f}000Z {text}".encode()
            if given == left:
                if how is Cut.CLOSE and follow:
                    return
                if how is Cut.SILENCE:
                    await asyncio.sleep(300.0 if follow else 30.0)
                raise ApiError(0, "ConnectionLost", "reset")
            if run.ended or not follow:
                return
            if changed is self.changed:
                await changed.wait()


def _kept(metadata: Json, container: str, number: int, *, last: int) -> KeptRun:
    return KeptRun(
        job_uid=metadata["ownerReferences"][0]["uid"],
        attempt=int(metadata["annotations"][names.JOB_RETRY_COUNT]) + 1,
        task=metadata["labels"][names.TASK_SPEC],
        index=int(metadata["labels"][names.TASK_INDEX]),
        pod=metadata["name"],
        pod_uid=metadata["uid"],
        container=container,
        run=number,
        restarts=number,
        finished="2026-01-01T00:00:00Z" if number < last else "2026-01-01T00:00:01Z",
    )
