"""Watchers that read late or not at all: what waits for them is bounded, and costs nothing while they wait."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.unit.apiserver.core.servers import CONFIGMAPS, Client, configmap, server, virtual
from vcbatch.api.resources import CONFIGMAPS as MAPS
from vcbatch.local.apiserver.history import HISTORY_BYTES, Change
from vcbatch.local.apiserver.watch import GROUP_BYTES

LARGE = 20_000
PARTIAL = {"accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
SLACK = 4096
"""Of an event beside the object, and of an object that is a little larger than its data."""


async def fill(client: Client, count: int, size: int = LARGE) -> None:
    for index in range(count):
        answer = await client.post(CONFIGMAPS, configmap(f"large-{index:03}", data={"k": "x" * size}))
        assert answer.code == 201


async def watch(client: Client, query: str, **headers: str) -> AsyncIterator[bytes]:
    answer = await client.get(f"{CONFIGMAPS}?watch=1&{query}", headers=headers)
    assert answer.code == 200
    return answer.body


def names(chunks: list[bytes]) -> list[str]:
    events: list[Any] = [json.loads(line) for chunk in chunks for line in chunk.splitlines()]
    return [event["object"]["metadata"]["name"] for event in events if event["type"] != "BOOKMARK"]


@virtual
async def test_an_initial_list_comes_in_bounded_chunks() -> None:
    async with server() as client:
        await fill(client, 30)
        chunks = [chunk async for chunk in await watch(client, "resourceVersion=0&timeoutSeconds=1")]

    assert len(chunks) >= 30 * LARGE // GROUP_BYTES
    assert max(map(len, chunks)) <= GROUP_BYTES + SLACK
    assert [name for name in names(chunks) if name.startswith("large")] == [f"large-{index:03}" for index in range(30)]


@virtual
async def test_an_object_that_is_larger_than_a_chunk_comes_by_itself() -> None:
    async with server() as client:
        await fill(client, 3, 3 * GROUP_BYTES)
        chunks = [chunk async for chunk in await watch(client, "resourceVersion=0&timeoutSeconds=1")]

    assert sorted(name for name in names(chunks) if name.startswith("large")) == ["large-000", "large-001", "large-002"]
    assert max(map(len, chunks)) <= 3 * GROUP_BYTES + SLACK


@virtual
async def test_a_watcher_that_reads_late_gets_every_change_in_bounded_chunks() -> None:
    async with server() as client:
        version = (await client.get(CONFIGMAPS)).body["metadata"]["resourceVersion"]
        stream = await watch(client, f"resourceVersion={version}&timeoutSeconds=1")
        await fill(client, 30)
        chunks = [chunk async for chunk in stream]

    assert max(map(len, chunks)) <= GROUP_BYTES + SLACK
    assert names(chunks) == [f"large-{index:03}" for index in range(30)]


@virtual
async def test_a_watcher_that_is_too_late_is_told_to_list_again() -> None:
    async with server() as client:
        version = (await client.get(CONFIGMAPS)).body["metadata"]["resourceVersion"]
        stream = await watch(client, f"resourceVersion={version}&timeoutSeconds=1")
        await fill(client, HISTORY_BYTES // 900_000 + 2, 900_000)
        events = [json.loads(chunk) async for chunk in stream]

    assert [event["type"] for event in events] == ["ERROR"]
    assert events[0]["object"]["code"] == 410


@pytest.mark.parametrize("query", ["timeoutSeconds=5", "timeoutSeconds=5&allowWatchBookmarks=true"])
def test_a_watcher_that_does_not_read_past_its_end_keeps_nothing_busy(query: str) -> None:
    @virtual
    async def check() -> None:
        async with server() as client:
            await fill(client, 10)
            stream = aiter(await watch(client, f"resourceVersion=0&{query}"))
            version = (await client.get(CONFIGMAPS)).body["metadata"]["resourceVersion"]
            waiting = aiter(await watch(client, f"resourceVersion={version}&{query}"))
            await fill_later(client)
            await anext(stream)
            await anext(waiting)
            await asyncio.sleep(3600)  # time passes only where nothing is busy

    async def fill_later(client: Client) -> None:
        assert (await client.post(CONFIGMAPS, configmap("later"))).code == 201

    check()


@virtual
async def test_a_watch_ends_in_time_though_there_are_always_changes() -> None:
    async with server() as client:
        version = (await client.get(CONFIGMAPS)).body["metadata"]["resourceVersion"]
        stream = await watch(client, f"resourceVersion={version}&timeoutSeconds=1")
        count = 0
        await client.post(CONFIGMAPS, configmap("first"))
        async for _ in stream:
            count += 1
            await client.post(CONFIGMAPS, configmap(f"more-{count}"))
            await asyncio.sleep(0.1)

    assert 5 < count < 20


def test_an_event_is_encoded_once_for_all_watchers() -> None:
    made: list[int] = []

    class Counted(Change):
        def line(self, form: tuple[str, ...], encoded: Callable[[], bytes]) -> bytes:
            def counted() -> bytes:
                made.append(1)
                return encoded()

            return super().line(form, counted)

    @virtual
    async def check() -> None:
        async with server() as client:
            version = (await client.get(CONFIGMAPS)).body["metadata"]["resourceVersion"]
            query = f"resourceVersion={version}&timeoutSeconds=1"
            streams = [await watch(client, query, **PARTIAL) for _ in range(3)]
            await client.post(CONFIGMAPS, configmap("one"))
            history = client.kernel.store.collection(MAPS).history
            change = history._changes[-1]
            history._changes[-1] = Counted(change.type, change.record, change.old)
            first, second, third = [await anext(aiter(stream)) for stream in streams]

        assert first == second == third
        assert names([first]) == ["one"]
        assert len(made) == 1

    check()
