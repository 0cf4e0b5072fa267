"""The program is ended while clients write, watch and train: what it acknowledged is there, all who watch know the
truth in the end, and no process is lost or run twice."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException
from kubernetes.informer import SharedInformer

from tests.integration.badluck.conftest import Unlucky
from tests.integration.clients.waiting import until_async
from tests.integration.up.manifests import job
from vcbatch.api.resources import CONFIGMAPS, JOBS
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.caches.watch import Reflector
from vcbatch.runtime.client.http import HttpApi
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

Json = dict[str, Any]
_WRITERS = 6


class Load:
    """Writers that go on until the server doesn't answer, and what it told them."""

    def __init__(self, round_: str) -> None:
        self._round = round_
        self.stored: dict[str, str] = {}
        """Value by name: what the server acknowledged last."""
        self.deleted: set[str] = set()
        self.under_way: dict[str, str] = {}
        """What was sent and not answered: it may have happened or not."""
        self.answers = 0
        self.enough = asyncio.Event()

    async def write(self, api: HttpApi, writer: int) -> None:
        with suppress(ApiError):
            for number in range(100_000):
                name = f"{self._round}-{writer}-{number}"
                await self._put(api, name)
                if number % 3 == 0:
                    await self._change(api, name)
                elif number % 3 == 1:
                    await self._delete(api, name)
                if self.answers > 400:
                    self.enough.set()

    async def _put(self, api: HttpApi, name: str) -> None:
        self.under_way[name] = "1"
        await api.create(CONFIGMAPS, {"metadata": {"name": name}, "data": {"v": "1"}}, namespace="default")
        self._answered(name, "1")

    async def _change(self, api: HttpApi, name: str) -> None:
        self.under_way[name] = "2"
        await api.patch(CONFIGMAPS, name, {"data": {"v": "2"}}, namespace="default")
        self._answered(name, "2")

    async def _delete(self, api: HttpApi, name: str) -> None:
        self.under_way[name] = ""
        await api.delete(CONFIGMAPS, name, namespace="default")
        del self.under_way[name], self.stored[name]
        self.deleted.add(name)
        self.answers += 1

    def _answered(self, name: str, value: str) -> None:
        del self.under_way[name]
        self.stored[name] = value
        self.answers += 1

    def check(self, found: dict[str, str]) -> None:
        """`found`: values by name, as the server has them now."""
        settled = {name: value for name, value in self.stored.items() if name not in self.under_way}
        assert {name: found.get(name) for name in settled} == settled
        assert not self.deleted & found.keys()
        for name, value in self.under_way.items():
            assert found.get(name) in (self.stored.get(name), value or None)
        ours = {name for name in found if name.startswith(f"{self._round}-")}
        assert ours <= self.stored.keys() | self.under_way.keys(), "nothing that nobody wrote"


async def values(api: HttpApi) -> dict[str, str]:
    items = (await api.list(CONFIGMAPS, namespace="default")).items
    return {item["metadata"]["name"]: (item.get("data") or {}).get("v", "") for item in items}


@asynccontextmanager
async def followed(api: HttpApi) -> AsyncIterator[Cache[Json]]:
    cache: Cache[Json] = Cache(model=dict)
    reflector = Reflector(api, CONFIGMAPS, cache, clock=SystemClock(), random=SystemRandom())
    running = asyncio.create_task(reflector.run())
    try:
        await asyncio.wait_for(reflector.synced.wait(), 60)
        yield cache
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def snapshots(objects: Any) -> dict[str, str]:
    return {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in objects}


async def equal(cache: Cache[Json], informer: SharedInformer, api: HttpApi) -> None:
    """Both who watch know what the server has, to the version."""

    async def same() -> bool:
        stored = snapshots((await api.list(CONFIGMAPS)).items)
        theirs = {one.metadata.uid: one.metadata.resource_version for one in informer.cache.list()}
        return snapshots(cache) == stored == theirs

    await until_async(same)


async def test_nothing_acknowledged_is_lost_and_watches_find_the_truth(program: Unlucky):
    await asyncio.to_thread(program.up)
    go = program.folder / "go"
    starts = program.folder / "starts"
    command = f"echo $HOSTNAME >> {starts}; until [ -e {go} ]; do sleep 0.05; done"
    settings = client.Configuration()
    config.load_kube_config(str(program.kubeconfig), client_configuration=settings)
    settings.retries = False
    with client.ApiClient(settings) as connection:
        core = client.CoreV1Api(connection)
        informer = SharedInformer(core.list_config_map_for_all_namespaces)
        async with program.api() as api, followed(api) as cache:
            await api.create(JOBS, json.loads(job("trains", command, replicas=3)), namespace="default")
            await until_async(lambda: phase(api, "Running"))
            old = (await api.list(CONFIGMAPS)).resource_version
            informer.start()
            try:
                await one_round(program, signal.SIGKILL)
                await equal(cache, informer, api)
                go.touch()
                await until_async(lambda: phase(api, "Completed"))
                assert len(starts.read_text().split()) == 3, "no process was started twice"
                await one_round(program, signal.SIGTERM)
                await equal(cache, informer, api)
                assert await phase(api, "Completed")
                with pytest.raises(ApiException) as expired:
                    for _ in watch.Watch().stream(
                        core.list_config_map_for_all_namespaces, resource_version=old, timeout_seconds=20
                    ):
                        pass
                assert expired.value.status == 410
            finally:
                await asyncio.to_thread(informer.stop)


async def one_round(program: Unlucky, how: signal.Signals) -> None:
    """Write, end the server in the middle of it, start it again, and look."""
    load = Load(how.name.lower())
    async with program.api() as api:
        writers = [asyncio.create_task(load.write(api, number)) for number in range(_WRITERS)]
        await asyncio.wait_for(load.enough.wait(), 60)
        await asyncio.to_thread(program.end, how)
        await asyncio.gather(*writers)
    await asyncio.to_thread(program.again)
    async with program.api() as api:
        load.check(await values(api))


async def phase(api: HttpApi, wanted: str) -> bool:
    status = (await api.get(JOBS, "trains", namespace="default")).get("status") or {}
    return (status.get("state") or {}).get("phase") == wanted
