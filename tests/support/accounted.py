"""Histories of jobs (`lives`) whose controllers keep accounting records, with a store that fails and crashes, and the
usage of each attempt as it follows from what the server stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.fakes.faults import Crash
from tests.support.job_world import job_object, task
from tests.support.lives import NAMESPACE, Stage
from tests.support.plain_watches import control_plane
from vcbatch.api import names
from vcbatch.api.defaults import default_job
from vcbatch.api.resources import JOBS, PODGROUPS, PODS
from vcbatch.api.timestamps import format_time, parse_time
from vcbatch.core.accounting import Attempt, Filter
from vcbatch.hosting.supervise import Supervisor
from vcbatch.interfaces.accounting import AccountingError
from vcbatch.interfaces.api import Api, Json
from vcbatch.runtime.accounting.recorder import Accounting
from vcbatch.runtime.accounting.store import sqlite_store
from vcbatch.runtime.caches.informers import Informers

T = TypeVar("T")
LIVE = ("", "Pending", "Running", "Restarting")
AttemptKey = tuple[str, int]


class Inline:
    """Runs calls of the store at once: virtual time has no threads."""

    async def run(self, work: Callable[[], T]) -> T:
        return work()


class FaultyStore:
    """A store that refuses calls while `down`, and kills its program at a call of `crashes`, counted over all
    programs: instead of it, or after it."""

    def __init__(self, stage: AccountedStage, api: Any) -> None:
        self._stage = stage
        self._api = api
        self._store = sqlite_store(stage.path)

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        real = getattr(self._store, verb)

        def call(*args: Any, **kwargs: Any) -> Any:
            stage = self._stage
            if self._api.dead:
                raise Crash
            if stage.down:
                raise AccountingError("the store is down")
            crash = stage.crashes.pop(stage.calls, None)
            stage.calls += 1
            if crash is None:
                return real(*args, **kwargs)
            self._api.dead = True
            if crash == "after":
                real(*args, **kwargs)
            raise Crash

        return call


class AccountedStage(Stage):
    def __init__(self, path: Path, *, crashes: dict[int, str] | None = None, **options: Any) -> None:
        self.path = path
        self.crashes = dict(crashes or {})
        self.calls = 0
        self.down = False
        self.accounting: Accounting | None = None
        """That of the present program."""
        super().__init__(**options)

    async def _program(self, api: Api) -> None:
        clock, random = self.clock, self._random
        informers = Informers(api, clock=clock, random=random)
        store: Any = FaultyStore(self, api)
        plane = control_plane(api, informers, clock=clock, random=random, accounting=store)
        assert plane.accounting is not None
        plane.accounting._worker = Inline()
        self.accounting = plane.accounting
        supervisor = Supervisor(clock=clock, random=random)
        try:
            await supervisor.run(*plane.sources(), *plane.parts(), *informers.parts())
        finally:
            store._store.close()

    def remove_job(self, name: str) -> None:
        self.remove(JOBS, name)

    def records(self) -> dict[AttemptKey, Attempt]:
        store = sqlite_store(self.path)
        try:
            found, token = store.page(Filter(), limit=10_000, now=self.clock.now().timestamp())
            assert not token
            return {(each.job_uid, each.attempt): each for each in found}
        finally:
            store.close()


# Users, a scheduler and a kubelet -------------------------------------------------------------------------------------


def submit(stage: Stage, name: str, pods: int = 2, **spec: Any) -> Json:
    given = default_job(job_object(tasks=[task("w", pods)], **spec))["spec"]
    return stage.put(JOBS, name, metadata={"annotations": {names.USER: f"user-of-{name}"}}, spec=given)


async def admit(stage: Stage) -> None:
    """Admit every gang."""
    for name in stage.names(PODGROUPS):
        if stage.get(PODGROUPS, name).get("status", {}).get("phase", "Pending") == "Pending":
            await stage.change(PODGROUPS, name, {"status": {"phase": "Inqueue"}})


async def start_pods(stage: Stage) -> None:
    """Start every pod that waits."""
    for name in stage.names(PODS):
        if stage.get(PODS, name).get("status", {}).get("phase", "Pending") == "Pending":
            now = format_time(stage.clock.now())
            status = {"phase": "Running", "startTime": now}
            await stage.change(PODS, name, {"spec": {"nodeName": "n0"}, "status": status})


async def end_pod(stage: Stage, name: str, exit_code: int) -> None:
    """End a running pod; does nothing for any other."""
    if name not in stage.names(PODS) or stage.get(PODS, name)["status"].get("phase") != "Running":
        return
    ended = {"exitCode": exit_code, "finishedAt": format_time(stage.clock.now())}
    containers = [{"name": "main", "state": {"terminated": ended}}]
    phase = "Failed" if exit_code else "Succeeded"
    await stage.change(PODS, name, {"status": {"phase": phase, "containerStatuses": containers}})


# What the server stored -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Told:
    """One attempt, from the versions of its job and of its pods that the server stored."""

    ended: float | None = None
    deleted: bool = False
    pods: dict[str, tuple[float, float | None]] = field(default_factory=dict[str, tuple[float, float | None]])
    """UID -> start and end."""

    def pod_seconds(self, end: float) -> float:
        return sum(max(min(end if to is None else to, end) - start, 0.0) for start, to in self.pods.values())


def attempts_of(stage: Stage) -> dict[AttemptKey, Told]:
    """The attempts in the history of the server, with their pods, computed from nothing else."""
    epoch = stage.clock._epoch.timestamp()
    found: dict[AttemptKey, Told] = {}
    current: dict[str, AttemptKey] = {}
    versions: dict[str, int] = {}
    for entry in stage.server.history:
        body, uid = entry.object, entry.object["metadata"]["uid"]
        at = epoch + stage.server.happened.get(int(body["metadata"]["resourceVersion"]), 0.0)
        if entry.resource == JOBS:
            status = body.get("status", {})
            key = uid, status.get("version", 0)
            versions[uid] = key[1]
            live = status.get("state", {}).get("phase", "") in LIVE and entry.type != "DELETED"
            before = current.get(uid)
            if before is not None and (not live or before != key):
                found[before].ended = at
                found[before].deleted = entry.type == "DELETED"
                del current[uid]
            if live:
                found.setdefault(key, Told())
                current[uid] = key
        elif entry.resource == PODS:
            owner = next((each["uid"] for each in body["metadata"].get("ownerReferences") or ()), "")
            told = found.get((owner, int(body["metadata"]["annotations"].get(names.JOB_VERSION, "0"))))
            start = body.get("status", {}).get("startTime")
            if told is None or not start:
                continue
            states = body["status"].get("containerStatuses") or ()
            known = told.pods.get(uid, (0.0, None))[1]
            if known is None and states:
                known = parse_time(states[0]["state"]["terminated"]["finishedAt"]).timestamp()
            if known is None and entry.type == "DELETED":
                known = at
            told.pods[uid] = parse_time(start).timestamp(), known
    return found


__all__ = ["NAMESPACE", "AccountedStage", "Told", "admit", "attempts_of", "end_pod", "start_pods", "submit"]
