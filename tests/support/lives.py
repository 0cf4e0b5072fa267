"""The controllers on an in-memory server, killed at their writes and restarted with what is stored there.

A history (`Story`) lists the actions of users and other programs. However often the controllers crash in it, and
however late they observe changes, the result must be the same: the same objects, each created and deleted as often, no
more writes than needed, and no writes at all by a program that is started at the end.
"""

from __future__ import annotations

import asyncio
import copy
import re
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.fakes.faults import CrashingApi
from tests.fakes.server import LateApi, Server
from tests.support import virtual_time
from tests.support.plain_watches import control_plane
from tests.support.virtual_time import SeededRandom, VirtualClock
from vcbatch.api.names import CRONJOB_SCHEDULED_TIMESTAMP
from vcbatch.api.queue import DEFAULT, ROOT
from vcbatch.api.resources import EVENTS, QUEUES, Resource
from vcbatch.core.hypernode import parse_discovery
from vcbatch.hosting.supervise import Supervisor
from vcbatch.interfaces.api import Api, Json
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.configuration.followed_file import FollowedFile

Story = Callable[["Stage"], Awaitable[None]]
Write = tuple[str, str, str]
"""Verb, plural and name."""

NAMESPACE = "ns"
_QUIET_STEPS = (1.0, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0)
"""Seconds between two runs of the garbage collector; their sum is longer than any delay of the controllers before a
possible write."""
_WORKERS = 4
"""Maximum number of objects of a kind that a controller reconciles concurrently. No history has more active ones at a
time, and each run of the program starts all workers."""
_STORM = 1000
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_LASTING_TIMES = (CRONJOB_SCHEDULED_TIMESTAMP, "lastScheduleTime")
_PASSING = ("resourceVersion", "runningDuration", "ranSeconds")


@dataclass(frozen=True, slots=True)
class Death:
    """The program crashes at that write of its run, counted from 0: instead of it, or right after it."""

    at: int
    after: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The result of a history, without what differs between runs: resourceVersions, and times except scheduled ones.

    `writes` are those of all runs; `afterwards`, those of a program that was started at the end."""

    objects: Mapping[str, Any]
    made: Counter[tuple[str, str]]
    """How often an object of that name was created (`ADDED`) and deleted (`DELETED`)."""
    writes: Sequence[Write]
    afterwards: Sequence[Write]
    deaths: int


class Stage:
    """Runs one history. Its methods are actions of users and other programs; they take effect at once and never
    fail."""

    def __init__(
        self, *, deaths: Iterable[Death] = (), lags: Mapping[str, float] | None = None, discovery: Path | None = None
    ) -> None:
        self.clock = VirtualClock()
        self.server = Server(self.clock)
        self._random = SeededRandom(1)
        self.lags: Mapping[str, float] = lags or {}
        """By plural, the delay in seconds with which runs that start from now on observe changes."""
        self._discovery = discovery
        self._deaths: Iterator[Death | None] = chain(deaths, repeat(None))
        self._apis: list[CrashingApi] = []
        self._life: asyncio.Task[None] | None = None
        for name, parent in ((ROOT, ""), (DEFAULT, ROOT)):
            spec = {"weight": 1, **({"parent": parent} if parent else {})}
            self.put(QUEUES, name, spec=spec, status={"state": "Open"})

    # Actions of users

    def put(self, resource: Resource, name: str, *, metadata: Json | None = None, **fields: Any) -> Json:
        """Create an object."""
        place = {"namespace": NAMESPACE} if resource.namespaced else {}
        named = {"name": name, **place, **(metadata or {})}
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        return self.server.seed(resource, copy.deepcopy({**kind, "metadata": named, **fields}))

    async def change(self, resource: Resource, name: str, patch: Json) -> None:
        await self.server.patch(resource, name, patch, namespace=_namespace(resource))

    def remove(self, resource: Resource, name: str) -> None:
        self.server.remove(resource, name, _namespace(resource))

    # State

    def get(self, resource: Resource, name: str) -> Json:
        return self.server.objects[resource, _namespace(resource), name]

    def names(self, resource: Resource) -> list[str]:
        return [obj["metadata"]["name"] for obj in self.server.all(resource)]

    # Program

    async def rest(self) -> None:
        """Advance the time until nothing changes any more."""
        for _ in range(30):
            before = self.server.version, self.deaths
            for seconds in _QUIET_STEPS:
                await self._tick(seconds)
            if (self.server.version, self.deaths) == before:
                return
        raise AssertionError(f"it doesn't come to rest: {self.writes[-10:]}")

    async def pass_time(self, seconds: float) -> None:
        await self.until(self.clock.now() + timedelta(seconds=seconds))

    async def until(self, moment: datetime) -> None:
        """Advance the time to this moment, which crashes may have passed already."""
        while (left := (moment - self.clock.now()).total_seconds()) > 0:
            await self._tick(min(left, 60.0))

    async def restart(self) -> None:
        """Stop the program at its current point, and start it again."""
        await self.stop()
        self._life = asyncio.create_task(self._live())

    def doom(self, *deaths: Death) -> None:
        """Crash the next runs of the program at these points; the run after them isn't crashed."""
        self._deaths = chain(deaths, repeat(None))

    async def stop(self) -> None:
        if self._life is not None:
            self._life.cancel()
            await asyncio.gather(self._life, return_exceptions=True)
            self._life = None

    @property
    def writes(self) -> list[Write]:
        return [write for api in self._apis for write in api.tried]

    @property
    def deaths(self) -> int:
        return sum(api.dead for api in self._apis)

    async def _tick(self, seconds: float) -> None:
        await self.clock.sleep(seconds)
        self.server.collect()
        assert len(self.writes) < _STORM, f"a storm of writes: {self.writes[-10:]}"
        if self._life is not None and self._life.done():
            self._life.result()

    async def _live(self) -> None:
        for death in self._deaths:
            at, after = (death.at, death.after) if death is not None else (None, False)
            late: Any = LateApi(self.server, self.lags)
            api: Any = CrashingApi(late, at=at, after=after, uncounted=frozenset({EVENTS}))
            self._apis.append(api)
            try:
                await self._program(api)
            except BaseExceptionGroup:
                if not api.dead:
                    raise
            except asyncio.CancelledError:
                if death is not None and not api.dead:  # it belongs to the next run
                    self._deaths = chain([Death(death.at - len(api.tried), death.after)], self._deaths)
                raise

    async def _program(self, api: Api) -> None:
        clock, random = self.clock, self._random
        informers = Informers(api, clock=clock, random=random)
        discovery = FollowedFile(self._discovery, parse_discovery, clock=clock) if self._discovery else None
        plane = control_plane(api, informers, clock=clock, random=random, discovery=discovery)
        for each in plane._controllers():
            each.controller._workers = min(each.controller._workers, _WORKERS)
        supervisor = Supervisor(clock=clock, random=random)
        await supervisor.run(*plane.sources(), *plane.parts(), *informers.parts())


def report(
    story: Story, *, deaths: Iterable[Death] = (), lags: Mapping[str, float] | None = None, discovery: str = ""
) -> End:
    """Run a history from its beginning. `discovery` is the configuration of HyperNode discovery, if any."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "volcano-controller.conf")
        path.write_text(discovery)
        return virtual_time.run(_report(story, deaths, lags or {}, path if discovery else None))


def assert_deaths_change_nothing(
    story: Story,
    *,
    least: int,
    slack: int = 4,
    discovery: str = "",
    lags: Mapping[str, float] | None = None,
) -> None:
    """Run the history once without crashes, where it takes at least `least` writes; once for every crash at one of
    them; and once with a program that crashes after each write. A crash may cause up to `slack` additional writes."""
    whole = report(story, discovery=discovery, lags=lags)
    assert len(whole.writes) >= least, whole.writes
    assert not whole.afterwards, "written for nothing"
    for number, write in enumerate(whole.writes):
        for after in (False, True):
            reported = report(story, deaths=[Death(number, after)], discovery=discovery, lags=lags)
            assert reported.deaths == 1
            where = f"died {'after' if after else 'instead of'} write {number}, {write}"
            assert_alike(reported, whole, where)
            assert len(reported.writes) <= len(whole.writes) + slack, f"{where}: {reported.writes}"
    assert_alike(
        report(story, deaths=repeat(Death(0, after=True), 500), discovery=discovery), whole, "one write per life"
    )


def assert_alike(reported: End, whole: End, where: str) -> None:
    """Compare the results; `where` describes the crashes of the reported one."""
    unlike = _unlike(dict(reported.objects), dict(whole.objects))
    assert not unlike, "\n".join([where, *unlike])
    more, less = reported.made - whole.made, whole.made - reported.made
    assert not more and not less, f"{where}\ntoo often: {dict(more)}\ntoo seldom: {dict(less)}"
    assert not reported.afterwards, f"{where}\nwritten for nothing when all was over: {reported.afterwards}"


def _unlike(reported: Any, whole: Any, path: str = "") -> list[str]:
    """The differences between the two, with their paths."""
    if isinstance(reported, dict) and isinstance(whole, dict):
        keys = sorted(reported.keys() | whole.keys())
        return [line for key in keys for line in _unlike(reported.get(key), whole.get(key), f"{path}.{key}")]
    return [] if reported == whole else [f"{path.removeprefix('.')}: {reported!r}, want {whole!r}"]


def misfortunes(*resources: Resource) -> st.SearchStrategy[Mapping[str, Any]]:
    """Crashes, and delays with which changes of these kinds are observed; as arguments of `report`."""
    late = st.sampled_from([0.0, 0.05, 0.4, 2.0, 7.0])
    lags = st.fixed_dictionaries({resource.plural: late for resource in resources})
    deaths = st.lists(st.builds(Death, st.integers(0, 4), st.booleans()), max_size=5)
    return st.fixed_dictionaries({"deaths": deaths, "lags": lags})


async def _report(story: Story, deaths: Iterable[Death], lags: Mapping[str, float], discovery: Path | None) -> End:
    stage = Stage(deaths=deaths, lags=lags, discovery=discovery)
    try:
        await stage.restart()
        await stage.rest()
        await story(stage)
        await stage.rest()
        writes, died = stage.writes, stage.deaths
        stage.doom()
        await stage.restart()
        await stage.rest()
        return End(
            objects=_objects(stage.server),
            made=_made(stage.server),
            writes=writes,
            afterwards=stage.writes[len(writes) :],
            deaths=died,
        )
    finally:
        await stage.stop()


def _objects(server: Server) -> Json:
    return {
        f"{resource.plural}/{name}": _lasting(stored)
        for (resource, _, name), stored in server.objects.items()
        if resource != EVENTS
    }


def _made(server: Server) -> Counter[tuple[str, str]]:
    return Counter(
        (entry.type, f"{entry.resource.plural}/{entry.object['metadata']['name']}")
        for entry in server.history
        if entry.type != "MODIFIED"
        and entry.resource != EVENTS
        and entry.object["metadata"]["uid"] not in server.stillborn
    )


def _lasting(value: Any, key: str = "") -> Any:
    match value:
        case dict():
            return {name: _lasting(each, name) for name, each in value.items() if name not in _PASSING and _says(each)}
        case list():
            return [_lasting(each) for each in value]
        case str() if key not in _LASTING_TIMES and _TIME.fullmatch(value):
            return "a time"
        case _:
            return value


def _says(value: Any) -> bool:
    """False for a count of zero, which means the same as a missing count."""
    return not (type(value) is int and value == 0)


def _namespace(resource: Resource) -> str:
    return NAMESPACE if resource.namespaced else ""
