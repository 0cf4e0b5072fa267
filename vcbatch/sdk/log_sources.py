"""The choice of the logs of one attempt of a job, among those of its pods and the kept ones of deleted pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from vcbatch.runtime.client.kept_logs import KeptLogs, KeptRun
from vcbatch.sdk.pod_view import PodView


class NoSuchAttemptError(Exception):
    """There is no log of the requested attempt; `known` are the attempts with one."""

    def __init__(self, attempt: int | None, known: Sequence[int]) -> None:
        self.attempt, self.known = attempt, known
        super().__init__("there is no earlier attempt" if attempt is None else f"there is no attempt {attempt}")


@dataclass(slots=True, kw_only=True)
class LogSource:
    """The logs of one pod: those that the server keeps, and those of the pod itself where it exists. `previous`: only
    the run before the latest of each container is requested."""

    task: str
    index: int
    pod: str
    uid: str
    attempt: int
    """From 1."""
    version: int
    created: str = ""
    live: PodView | None = None
    runs: list[KeptRun] = field(default_factory=list[KeptRun])
    previous: bool = False

    @property
    def started(self) -> bool:
        """Whether it has, or had, a log."""
        return bool(self.runs) or (self.live is not None and self.live.started)

    @property
    def _age(self) -> tuple[int, str]:
        return self.attempt, self.created


def sources_of(pods: Iterable[PodView], runs: Iterable[KeptRun]) -> list[LogSource]:
    """One source for each pod, by task and index, and older pods first."""
    found: dict[str, LogSource] = {}
    for run in runs:
        if run.pod_uid not in found:
            found[run.pod_uid] = LogSource(
                task=run.task, index=run.index, pod=run.pod, uid=run.pod_uid, attempt=run.attempt,
                version=run.job_version, created=run.pod_created,
            )  # fmt: skip
        found[run.pod_uid].runs.append(run)
    for pod in pods:
        uid = pod.metadata.uid
        if uid not in found:
            found[uid] = LogSource(
                task=pod.task, index=pod.index, pod=pod.metadata.name, uid=uid, attempt=pod.attempt + 1,
                version=pod.version, created=pod.metadata.creation_timestamp or "",
            )  # fmt: skip
        found[uid].live = pod
    return sorted(found.values(), key=lambda one: (one.task, one.index, one._age))


def choose(sources: Sequence[LogSource], *, attempt: int | None = None, previous: bool = False) -> list[LogSource]:
    """The sources of one attempt. By default the latest that has a log: of each task and index the newest pod of that
    `status.version` with a log, or without one where it has no other. With `previous` the pods before those; where
    there are none, the runs before the latest in the same pods. Raises `NoSuchAttemptError`."""
    started = [one for one in sources if one.started]
    known = sorted({one.attempt for one in started})
    if attempt is not None:
        found = [one for one in sources if one.attempt == attempt]
        if not found:
            raise NoSuchAttemptError(attempt, known)
        return found
    version = max((one.version for one in started), default=0)
    latest: dict[tuple[str, int], LogSource] = {}
    for one in sources:
        place = (one.task, one.index)
        if one.version == version and (one.started or place not in latest):
            latest[place] = one
    if not previous:
        return list(latest.values()) if started else list(sources)
    before = {
        (one.task, one.index): one
        for one in started
        if (newest := latest.get((one.task, one.index))) is None or (one is not newest and one._age < newest._age)
    }
    if before:
        newest_before = max(one.version for one in before.values())
        return [one for one in before.values() if one.version == newest_before]
    earlier = [one for one in latest.values() if _has_restarted(one)]
    if not earlier:
        raise NoSuchAttemptError(None, known)
    for one in earlier:
        one.previous = True
    return earlier


def _has_restarted(source: LogSource) -> bool:
    live = source.live
    if live is not None:
        return any(live.run_of(container).number for container in live.all_containers())
    return any(run.restarts for run in source.runs)


def latest_uid(kept: KeptLogs) -> str:
    """The UID of the job whose pods ended last, among the jobs of one name; "" without any."""
    return max(kept.runs, key=lambda run: (run.finished, run.started), default=KeptRun()).job_uid
