"""The controllers on a server in a dictionary, killed at their writes and started afresh with what is stored there.

A story says what people and other programs do. However often the controllers die in it, and however late they hear of
things, it comes to the same end: the same objects, each made and deleted as often, no more said to the server than was
needed, and nothing at all by a program that is started when all is over.
"""

from __future__ import annotations

import asyncio
import copy
import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.fakes.api import FakeApi
from tests.fakes.faults import CrashingApi
from tests.support import virtual_time
from tests.support.plain_watches import PlainWatches
from tests.support.virtual_time import SeededRandom, VirtualClock
from vcbatch.api.names import CRONJOB_SCHEDULED_TIMESTAMP
from vcbatch.api.queue import DEFAULT, ROOT
from vcbatch.api.resources import EVENTS, QUEUES, Resource
from vcbatch.api.timestamps import format_time
from vcbatch.core.hypernode import parse_discovery
from vcbatch.runtime.control_plane import ControlPlane
from vcbatch.runtime.followed_file import FollowedFile
from vcbatch.runtime.informers import Informers
from vcbatch.runtime.kubeconfig import Connection
from vcbatch.runtime.supervise import Supervisor
from vcbatch.seams.api import Api, Json, Listing, WatchEvent

Story = Callable[["Stage"], Awaitable[None]]
Write = tuple[str, str, str]
"""Verb, plural and name."""

NAMESPACE = "ns"
_QUIET_SECONDS = 20
"""Longer than anything in the controllers waits before it writes what it could write now."""
_FOREGROUND = "foregroundDeletion"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_LASTING_TIMES = (CRONJOB_SCHEDULED_TIMESTAMP, "lastScheduleTime")
_PASSING = ("resourceVersion", "runningDuration", "ranSeconds")


@dataclass(frozen=True, slots=True)
class Death:
    """The program dies at that write of its life, counted from 0: instead of it, or right after it."""

    at: int
    after: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What a story came to, without what no two tellings have alike: versions, and times but for those of slots.

    `writes` are those of all lives; `afterwards`, those of a program that was started when all was over."""

    objects: Mapping[str, Any]
    made: Counter[tuple[str, str]]
    """How often an object of that name was made (`ADDED`) and went (`DELETED`)."""
    writes: Sequence[Write]
    afterwards: Sequence[Write]
    deaths: int


class Server(FakeApi):
    """With creation times, generations and the garbage collector, whose part `collect` does. UIDs are alike in every
    telling: they say which of the objects of its name it is."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock
        self._named: Counter[tuple[Resource, str]] = Counter()
        self.stillborn: set[str] = set()
        """UIDs of what was made for an owner that was gone already: nobody can know before, and it is collected."""
        self.happened: dict[int, float] = {}
        """When each version came to be."""

    def seed(self, resource: Resource, body: Json) -> Json:
        name = body["metadata"]["name"]
        self._named[resource, name] += 1
        uid = f"{name}-{resource.plural}-{self._named[resource, name]}"
        created = {"creationTimestamp": format_time(self._clock.now()), "generation": 1, "uid": uid}
        owners = _owners(body)
        if owners and all(self._with_uid(owner) is None for owner in owners):
            self.stillborn.add(uid)
        return super().seed(resource, {**body, "metadata": {**created, **body["metadata"]}})

    def remove(self, resource: Resource, name: str, namespace: str = "") -> None:
        super().remove(resource, name, namespace)
        self.happened[self.version] = self._clock.monotonic()

    async def delete(self, resource: Resource, name: str, **options: Any) -> None:
        stored = self.objects.get((resource, options.get("namespace") or "", name))
        named = stored is not None and options.get("uid") in (None, stored["metadata"]["uid"])
        if stored is None or not named or options.get("propagation") != "Foreground" or not self._dependents(stored):
            await super().delete(resource, name, **options)
            return
        self.writes.append(("delete", resource.plural, name))
        if not stored["metadata"].get("deletionTimestamp"):
            marks = {"deletionTimestamp": format_time(self._clock.now()), "finalizers": [_FOREGROUND]}
            self._store("MODIFIED", resource, {**stored, "metadata": {**stored["metadata"], **marks}})

    def collect(self) -> None:
        """Remove what has no owner left or whose owner goes, and owners that waited for it."""
        for (resource, namespace, name), stored in list(self.objects.items()):
            there = [self._with_uid(uid) for uid in _owners(stored)]
            if there and all(owner is None or _goes(owner) for owner in there):
                self.remove(resource, name, namespace)
        for (resource, namespace, name), stored in list(self.objects.items()):
            if _goes(stored) and not self._dependents(stored):
                self.remove(resource, name, namespace)

    def _store(self, event: str, resource: Resource, body: Json) -> Json:
        metadata = body["metadata"]
        before = self.objects.get((resource, metadata.get("namespace", ""), metadata["name"]))
        if before is not None and before.get("spec") != body.get("spec"):
            metadata = body["metadata"] = {**metadata, "generation": metadata["generation"] + 1}
        stored = super()._store(event, resource, body)
        self.happened[self.version] = self._clock.monotonic()
        return stored

    def _with_uid(self, uid: str) -> Json | None:
        return next((stored for stored in self.objects.values() if stored["metadata"]["uid"] == uid), None)

    def _dependents(self, owner: Json) -> list[Json]:
        return [stored for stored in self.objects.values() if owner["metadata"]["uid"] in _owners(stored)]


class LateApi:
    """`vcbatch.seams.Api` that tells of each kind in `lags` (by plural) so many seconds late, in lists and watches.
    Reads of one object, and answers to writes, are as they are."""

    def __init__(self, server: Server, lags: Mapping[str, float]) -> None:
        self._server = server
        self._lags = lags

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        return getattr(self._server, verb)

    async def list(self, resource: Resource, **options: Any) -> Listing[Any]:
        listing = await self._server.list(resource, **options)
        await asyncio.sleep(self._lags.get(resource.plural, 0.0))
        return listing

    async def watch(self, resource: Resource, **options: Any) -> AsyncIterator[WatchEvent[Any]]:
        async for event in self._server.watch(resource, **options):
            due = self._server.happened[int(event.resource_version)] + self._lags.get(resource.plural, 0.0)
            await asyncio.sleep(max(due - asyncio.get_running_loop().time(), 0.0))
            yield event


class Stage:
    """Where a story is played. What its methods do is done by people and other programs, at once and unhurt."""

    def __init__(
        self, *, deaths: Iterable[Death] = (), lags: Mapping[str, float] | None = None, discovery: Path | None = None
    ) -> None:
        self.clock = VirtualClock()
        self.server = Server(self.clock)
        self._random = SeededRandom(1)
        self._lags = lags or {}
        self._discovery = discovery
        self._deaths: Iterator[Death | None] = chain(deaths, repeat(None))
        self._apis: list[CrashingApi] = []
        self._life: asyncio.Task[None] | None = None
        for name, parent in ((ROOT, ""), (DEFAULT, ROOT)):
            spec = {"weight": 1, **({"parent": parent} if parent else {})}
            self.put(QUEUES, name, spec=spec, status={"state": "Open"})

    # What people do

    def put(self, resource: Resource, name: str, *, metadata: Json | None = None, **fields: Any) -> Json:
        """A new object."""
        place = {"namespace": NAMESPACE} if resource.namespaced else {}
        named = {"name": name, **place, **(metadata or {})}
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        return self.server.seed(resource, copy.deepcopy({**kind, "metadata": named, **fields}))

    async def change(self, resource: Resource, name: str, patch: Json) -> None:
        await self.server.patch(resource, name, patch, namespace=_namespace(resource))

    def remove(self, resource: Resource, name: str) -> None:
        self.server.remove(resource, name, _namespace(resource))

    # What is so

    def get(self, resource: Resource, name: str) -> Json:
        return self.server.objects[resource, _namespace(resource), name]

    def names(self, resource: Resource) -> list[str]:
        return [obj["metadata"]["name"] for obj in self.server.all(resource)]

    # The program

    async def rest(self) -> None:
        """Let time pass until nothing happens any more."""
        for _ in range(30):
            before = self.server.version, self.deaths
            for _ in range(_QUIET_SECONDS):
                await self._tick(1.0)
            if (self.server.version, self.deaths) == before:
                return
        raise AssertionError(f"it doesn't come to rest: {self.writes[-10:]}")

    async def pass_time(self, seconds: float) -> None:
        await self.until(self.clock.now() + timedelta(seconds=seconds))

    async def until(self, moment: datetime) -> None:
        """Let time pass, however much of it a death has cost already."""
        while (left := (moment - self.clock.now()).total_seconds()) > 0:
            await self._tick(min(left, 60.0))

    async def restart(self) -> None:
        """The program is stopped wherever it is, and started again."""
        await self.stop()
        self._life = asyncio.create_task(self._live())

    def doom(self, *deaths: Death) -> None:
        """So the lives end that begin from now on; the one after them goes on."""
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
        if self._life is not None and self._life.done():
            self._life.result()

    async def _live(self) -> None:
        for death in self._deaths:
            at, after = (death.at, death.after) if death is not None else (None, False)
            late: Any = LateApi(self.server, self._lags)
            api: Any = CrashingApi(late, at=at, after=after, uncounted=frozenset({EVENTS}))
            self._apis.append(api)
            try:
                await self._program(api)
            except BaseExceptionGroup:
                if not api.dead:
                    raise
            except asyncio.CancelledError:
                if death is not None and not api.dead:  # it is for the next life
                    self._deaths = chain([Death(death.at - len(api.tried), death.after)], self._deaths)
                raise

    async def _program(self, api: Api) -> None:
        clock, random = self.clock, self._random
        informers = Informers(api, clock=clock, random=random)
        plane = ControlPlane(
            api,
            Connection(server="https://nowhere.invalid"),
            informers,
            clock=clock,
            random=random,
            discovery=FollowedFile(self._discovery, parse_discovery, clock=clock) if self._discovery else None,
            followed_by=lambda feeds: PlainWatches(api, feeds, clock=clock, random=random),
        )
        supervisor = Supervisor(clock=clock, random=random)
        await supervisor.run(*plane.sources(), *plane.parts(), *informers.parts())


def tell(
    story: Story, *, deaths: Iterable[Death] = (), lags: Mapping[str, float] | None = None, discovery: str = ""
) -> End:
    """Play a story from its beginning. `discovery` is the configuration that HyperNodes are made by, if any are."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "volcano-controller.conf")
        path.write_text(discovery)
        return virtual_time.run(_tell(story, deaths, lags or {}, path if discovery else None))


def assert_deaths_change_nothing(story: Story, *, least: int, slack: int = 4, discovery: str = "") -> None:
    """Tell the story once undisturbed, where it takes `least` writes or more; once for every death at one of them; and
    once to a program that never makes more than one write in its life. A death may cost `slack` writes more."""
    whole = tell(story, discovery=discovery)
    assert len(whole.writes) >= least, whole.writes
    assert not whole.afterwards, "written for nothing"
    for number, write in enumerate(whole.writes):
        for after in (False, True):
            told = tell(story, deaths=[Death(number, after)], discovery=discovery)
            assert told.deaths == 1
            where = f"died {'after' if after else 'instead of'} write {number}, {write}"
            assert_alike(told, whole, where)
            assert len(told.writes) <= len(whole.writes) + slack, f"{where}: {told.writes}"
    assert_alike(
        tell(story, deaths=repeat(Death(0, after=True), 500), discovery=discovery), whole, "one write per life"
    )


def assert_alike(told: End, whole: End, where: str) -> None:
    """`where` is what befell the told one."""
    unlike = _unlike(dict(told.objects), dict(whole.objects))
    assert not unlike, "\n".join([where, *unlike])
    more, less = told.made - whole.made, whole.made - told.made
    assert not more and not less, f"{where}\ntoo often: {dict(more)}\ntoo seldom: {dict(less)}"
    assert not told.afterwards, f"{where}\nwritten for nothing when all was over: {told.afterwards}"


def _unlike(told: Any, whole: Any, path: str = "") -> list[str]:
    """Where the two differ, and how."""
    if isinstance(told, dict) and isinstance(whole, dict):
        keys = sorted(told.keys() | whole.keys())
        return [line for key in keys for line in _unlike(told.get(key), whole.get(key), f"{path}.{key}")]
    return [] if told == whole else [f"{path.removeprefix('.')}: {told!r}, want {whole!r}"]


def misfortunes(*resources: Resource) -> st.SearchStrategy[Mapping[str, Any]]:
    """Deaths, and how late news of these kinds come; as arguments of `tell`."""
    deaths = st.lists(st.builds(Death, st.integers(0, 4), st.booleans()), max_size=5)
    late = st.sampled_from([0.0, 0.05, 0.4, 2.0, 7.0])
    return st.fixed_dictionaries(
        {"deaths": deaths, "lags": st.fixed_dictionaries({resource.plural: late for resource in resources})}
    )


async def _tell(story: Story, deaths: Iterable[Death], lags: Mapping[str, float], discovery: Path | None) -> End:
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
    """A count of zero says as much as none at all."""
    return not (type(value) is int and value == 0)


def _owners(stored: Json) -> list[str]:
    return [reference["uid"] for reference in stored["metadata"].get("ownerReferences") or ()]


def _goes(stored: Json) -> bool:
    return _FOREGROUND in (stored["metadata"].get("finalizers") or ())


def _namespace(resource: Resource) -> str:
    return NAMESPACE if resource.namespaced else ""
