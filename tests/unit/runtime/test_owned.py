"""An owner is read from the server before it adopts anything."""

from __future__ import annotations

from typing import Any

from tests.fakes.api import FakeApi
from tests.support.virtual_time import run
from vcbatch.api.meta import ObjectMeta
from vcbatch.api.resources import REPLICASETS, Resource
from vcbatch.core.workload.ownership import Owner
from vcbatch.runtime.caches.cache import Cache, metadata_of
from vcbatch.runtime.controllers.owned import view_for_adoption

Json = dict[str, Any]
ORPHAN = ObjectMeta(name="o", namespace="ns", uid="o", labels={"app": "a"})


class _Api(FakeApi):
    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    async def get(self, resource: Resource, name: str, **options: Any) -> Any:
        self.reads += 1
        return await super().get(resource, name, **options)


class _World:
    def __init__(self) -> None:
        self.api = _Api()
        self.owners: Cache[Json] = Cache()
        self.candidates = [ORPHAN]

    async def known(self) -> Json:
        """An owner as the cache has it."""
        body = {"metadata": {"name": "r", "namespace": "ns"}, "spec": {"selector": {"matchLabels": {"app": "a"}}}}
        stored = await self.api.create(REPLICASETS, body, namespace="ns")
        self.owners.put(stored)
        return stored

    async def view(self, stored: Json) -> Json | None:
        def claims(view: Json) -> tuple[Owner, list[ObjectMeta]]:
            owner = Owner(resource=REPLICASETS, metadata=metadata_of(view), selector=view["spec"]["selector"])
            return owner, self.candidates

        return await view_for_adoption(self.api, self.owners, stored, lambda seen: {**seen}, claims)


def test_without_an_orphan_to_adopt_the_cache_is_enough() -> None:
    async def scenario() -> None:
        world = _World()
        stored = await world.known()
        world.candidates = [ObjectMeta(name="x", namespace="ns", uid="x", labels={"app": "b"})]
        assert (await world.view(stored), world.api.reads) == (stored, 0)

    run(scenario())


def test_with_one_it_is_seen_as_the_server_has_it() -> None:
    async def scenario() -> None:
        world = _World()
        stored = await world.known()
        await world.api.patch(REPLICASETS, "r", {"spec": {"replicas": 3}}, namespace="ns")
        seen = await world.view(stored)
        assert seen is not None
        assert (seen["spec"]["replicas"], world.api.reads) == (3, 1)
        held = world.owners.get(stored["metadata"]["uid"])
        assert held is not None
        assert held["spec"]["replicas"] == 3

    run(scenario())


def test_an_owner_that_is_gone_adopts_nothing() -> None:
    async def scenario() -> None:
        world = _World()
        stored = await world.known()
        await world.api.delete(REPLICASETS, "r", namespace="ns")
        assert await world.view(stored) is None
        assert world.owners.get(stored["metadata"]["uid"]) is None

    run(scenario())


def test_neither_does_one_whose_name_is_another_owners_by_now() -> None:
    async def scenario() -> None:
        world = _World()
        stored = await world.known()
        await world.api.delete(REPLICASETS, "r", namespace="ns")
        body = {"metadata": {"name": "r", "namespace": "ns"}, "spec": stored["spec"]}
        other = await world.api.create(REPLICASETS, body, namespace="ns")
        assert await world.view(stored) is None
        assert [each["metadata"]["uid"] for each in world.owners] == [other["metadata"]["uid"]]

    run(scenario())
