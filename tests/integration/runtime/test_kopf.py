"""kopf as a source of events: it tells everything, writes nothing, and what it misses is found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.fakes.api import FakeApi
from tests.integration.up.manifests import job
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.names import USER
from vcbatch.api.resources import JOBS, QUEUES
from vcbatch.local.apiserver.server import EmbeddedServer
from vcbatch.runtime.bootstrap import ensure_queues
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.caches.handlers import CustomResources, Feed
from vcbatch.runtime.client.kubeconfig import Connection, load
from vcbatch.runtime.client.wire import decode_json
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - a condition of another thread's making
            await asyncio.sleep(0.01)


async def open_queues(server: EmbeddedServer) -> None:
    await ensure_queues(server.api, clock=SystemClock(), random=SystemRandom())
    for name in ("root", "default"):
        await server.api.patch(QUEUES, name, {"status": {"state": "Open"}}, subresource="status")


async def test_it_tells_of_objects_that_come_change_and_go_and_writes_to_none(server: EmbeddedServer):
    await open_queues(server)
    jobs: Cache = Cache()
    queues: Cache = Cache()
    feeds = [Feed(resource=JOBS, cache=jobs), Feed(resource=QUEUES, cache=queues)]
    source = CustomResources(server.api, load(server.kubeconfig), feeds, clock=SystemClock(), random=SystemRandom())
    watching = asyncio.create_task(source.watch())
    try:
        await until(source.watching.is_set)
        for number in range(30):
            await server.api.create(JOBS, decode_json(job(f"j{number}", "true").encode()), namespace="default")
        await until(lambda: len(jobs) == 30)
        await server.api.patch(JOBS, "j1", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
        await server.api.delete(JOBS, "j2", namespace="default")
        await until(lambda: jobs.by_key("default/j2") is None)
        versions = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in jobs}
        stored = (await server.api.list(JOBS)).items
        assert {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in stored} == versions
        for item in stored:
            assert not item["metadata"].get("finalizers")
            assert item["metadata"].get("annotations", {}).keys() <= {USER}
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def test_it_comes_back_after_the_server_was_away(server: EmbeddedServer):
    await open_queues(server)
    queues: Cache = Cache()
    source = CustomResources(
        server.api,
        load(server.kubeconfig),
        [Feed(resource=QUEUES, cache=queues)],
        clock=SystemClock(),
        random=SystemRandom(),
    )
    watching = asyncio.create_task(source.watch())
    try:
        await until(source.watching.is_set)
        server.kernel.end_watches()
        queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "new"}, "spec": {"weight": 2}}
        await server.api.create(QUEUES, queue)
        await until(lambda: queues.by_key("new") is not None)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def test_a_deletion_that_nobody_told_of_is_found_by_the_next_list():
    async def main() -> None:
        server, clock = FakeApi(), VirtualClock()
        jobs: Cache = Cache()
        gone: list[str] = []
        server.seed(JOBS, {"metadata": {"name": "a", "namespace": "ns"}})
        source = CustomResources(
            server,
            Connection(server="http://nowhere"),
            [Feed(resource=JOBS, cache=jobs)],
            clock=clock,
            random=SeededRandom(1),
        )
        jobs.listen(lambda change: gone.append(change.current["metadata"]["name"]) if change.new is None else None)
        auditing = asyncio.ensure_future(source.audit())
        await source.listed.wait()
        assert len(jobs) == 1
        server.remove(JOBS, "a", "ns")
        await clock.sleep(400)
        assert gone == ["a"]
        auditing.cancel()
        await asyncio.gather(auditing, return_exceptions=True)

    run(main())
