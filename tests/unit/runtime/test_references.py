"""Which objects that pods name the controllers take for missing, and what they ask for to know it."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, TypeVar

import pytest

from tests.fakes.api import FakeApi
from tests.support.virtual_time import VirtualClock, run
from vcbatch.api.pod_references import Reference
from vcbatch.api.resources import (
    ACCESS_REVIEWS,
    CONFIGMAPS,
    PERSISTENTVOLUMECLAIMS,
    PRIORITYCLASSES,
    SECRETS,
    SERVICEACCOUNTS,
    Resource,
)
from vcbatch.api.scheduling import PriorityClassView
from vcbatch.api.storage import Claim
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.claims import Claims
from vcbatch.runtime.controllers.references import GRACE_SECONDS, RECHECK_SECONDS, References
from vcbatch.runtime.named_by_pods import missing_of

T = TypeVar("T")
Json = dict[str, Any]
ALL = [
    Reference(PERSISTENTVOLUMECLAIMS, "data"),
    Reference(CONFIGMAPS, "settings"),
    Reference(SECRETS, "keys"),
    Reference(SERVICEACCOUNTS, "runner"),
    Reference(PRIORITYCLASSES, "urgent"),
]


class Server(FakeApi):
    """Refuses reads of some kinds, in the way that one of these codes says."""

    def __init__(self, *, refuses: tuple[str, ...] = (), code: int = 403) -> None:
        super().__init__()
        self.refuses = refuses
        self.code = code
        self.asked: Counter[str] = Counter()

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None, model: type[T] = dict) -> T:
        self.asked[resource.plural] += 1
        if resource.plural in self.refuses:
            raise ApiError(self.code, "Forbidden", f"{resource.plural} is refused")
        return await super().get(resource, name, namespace=namespace, model=model)

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        if resource != ACCESS_REVIEWS:
            return await super().create(resource, body, namespace=namespace)
        self.asked[resource.plural] += 1
        allowed = body["spec"]["resourceAttributes"]["resource"] not in self.refuses
        return {**body, "status": {"allowed": allowed}}


class World:
    def __init__(self, api: Server) -> None:
        self.api = api
        self.claims: Cache[Claim] = Cache(model=Claim)
        self.classes: Cache[PriorityClassView] = Cache(model=PriorityClassView)
        self.references = References(api, Claims(api, self.claims), self.classes, clock=VirtualClock())

    async def absent(self, *wanted: Reference) -> set[Reference]:
        found, _ = await self.references.absent("job", "ns", wanted or ALL)
        return set(found)

    async def settled(self, *wanted: Reference) -> set[Reference]:
        """Once they had the time in which they may still come."""
        await self.absent(*wanted)
        await asyncio.sleep(GRACE_SECONDS)
        return await self.absent(*wanted)


def test_all_that_is_missing_is_found_at_once_and_looked_for_again_until_it_is_there() -> None:
    async def main() -> None:
        world = World(Server())
        assert await world.absent() == set()
        _, again = await world.references.absent("job", "ns", ALL)
        assert again is not None and again <= GRACE_SECONDS
        await asyncio.sleep(again)
        assert await world.absent() == set(ALL)
        world.api.seed(CONFIGMAPS, {"metadata": {"name": "settings", "namespace": "ns"}})
        world.api.seed(PERSISTENTVOLUMECLAIMS, {"metadata": {"name": "data", "namespace": "ns"}})
        _, again = await world.references.absent("job", "ns", ALL)
        assert again is not None and again <= RECHECK_SECONDS
        await asyncio.sleep(again)
        assert await world.absent() == set(ALL[2:])
        assert world.claims.by_key("ns/data") is not None

    run(main())


def test_those_of_a_job_are_named_together_though_each_is_asked_for_at_another_time() -> None:
    class Slow(Server):
        async def get(self, resource: Resource, name: str, *, namespace: str | None = None, model: type[T] = dict) -> T:
            await asyncio.sleep(0.2)
            return await super().get(resource, name, namespace=namespace, model=model)

    async def main() -> None:
        world = World(Slow())
        known = await world.references.absent("another job", "ns", ALL[:1])
        assert known[0] == frozenset()
        await asyncio.sleep(GRACE_SECONDS / 2)
        _, again = await world.references.absent("job", "ns", ALL)
        assert again is not None
        await asyncio.sleep(again)
        assert await world.absent() == set(ALL)

    run(main())


def test_what_is_there_by_the_end_of_the_grace_is_not_named() -> None:
    async def main() -> None:
        world = World(Server())
        _, again = await world.references.absent("job", "ns", ALL)
        world.api.seed(CONFIGMAPS, {"metadata": {"name": "settings", "namespace": "ns"}})
        assert again is not None
        await asyncio.sleep(again)
        assert await world.absent() == set(ALL) - {ALL[1]}

    run(main())


def test_one_of_another_namespace_is_another_object() -> None:
    async def main() -> None:
        world = World(Server())
        world.api.seed(CONFIGMAPS, {"metadata": {"name": "settings", "namespace": "other"}})
        assert await world.settled(ALL[1]) == {ALL[1]}

    run(main())


def test_what_comes_a_moment_after_the_job_never_counts_as_missing() -> None:
    async def main() -> None:
        world = World(Server())
        await world.absent(ALL[1])
        world.api.seed(CONFIGMAPS, {"metadata": {"name": "settings", "namespace": "ns"}})
        await asyncio.sleep(GRACE_SECONDS)
        assert await world.references.absent("job", "ns", [ALL[1]]) == (frozenset(), None)

    run(main())


@pytest.mark.parametrize("code", [401, 403, 500, 0])
def test_what_is_refused_or_not_answered_counts_as_there(code: int) -> None:
    async def main() -> None:
        world = World(Server(refuses=("persistentvolumeclaims", "configmaps"), code=code))
        assert await world.settled(*ALL[:2]) == set()

    run(main())


def test_secrets_and_accounts_that_may_not_be_read_are_not_asked_for() -> None:
    async def main() -> None:
        world = World(Server(refuses=("secrets", "serviceaccounts")))
        for _ in range(5):
            assert await world.settled(*ALL[2:4]) == set()
        assert world.api.asked == {"selfsubjectaccessreviews": 2}

    run(main())


def test_many_looks_at_a_job_are_few_reads() -> None:
    async def main() -> None:
        world = World(Server())
        world.api.seed(CONFIGMAPS, {"metadata": {"name": "settings", "namespace": "ns"}})
        for _ in range(100):
            await world.absent(ALL[1])
        assert world.api.asked["configmaps"] == 1
        for _ in range(100):
            await world.absent(ALL[0])
        assert world.api.asked["persistentvolumeclaims"] == 1

    run(main())


def _job(**spec: Any) -> Json:
    named = {
        "serviceAccountName": "runner",
        "priorityClassName": "urgent",
        "volumes": [
            {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "s", "configMap": {"name": "settings"}},
            {"name": "k", "secret": {"secretName": "keys"}},
        ],
    }
    task = {"name": "w", "replicas": 1, "template": {"spec": named}}
    return {"metadata": {"name": "j", "namespace": "ns"}, "spec": {"tasks": [task], **spec}}


@pytest.mark.parametrize(
    ("refused", "silent"),
    [
        ((), set[str]()),
        (("secrets",), {"Secret"}),
        (("secrets", "configmaps", "priorityclasses"), {"Secret", "ConfigMap", "PriorityClass"}),
    ],
    ids=["who may read all", "who may not read Secrets", "who may read little"],
)
def test_a_person_learns_what_their_rights_show(refused: tuple[str, ...], silent: set[str]) -> None:
    async def main() -> None:
        missing, tasks = await missing_of(Server(refuses=refused), _job())
        assert {kind for kind, _ in missing} == {one.resource.kind for one in ALL} - silent
        assert tasks == ["w"]

    run(main())


@pytest.mark.parametrize(
    "job",
    [
        {**_job(), "status": {"state": {"phase": "Running"}}},
        {**_job(), "status": {"taskStatusCount": {"w": {"phase": {"Running": 1}}}}},
        {"metadata": {"name": "j", "namespace": "ns"}, "spec": {"tasks": [1, {"name": "w", "replicas": "x"}]}},
    ],
    ids=["a job that runs", "a task that runs", "what can't be read"],
)
def test_nothing_is_missing_of(job: Json) -> None:
    async def main() -> None:
        api = Server()
        missing, tasks = await missing_of(api, job)
        assert not missing
        assert not tasks
        assert not api.asked

    run(main())


def test_of_a_plugin_of_others_nobody_says_what_it_makes() -> None:
    async def main() -> None:
        missing, _ = await missing_of(Server(), _job(plugins={"mine": []}))
        assert {kind for kind, _ in missing} == {"PersistentVolumeClaim", "ServiceAccount", "PriorityClass"}

    run(main())
