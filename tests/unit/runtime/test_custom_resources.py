"""Custom resources are followed by lists where kopf can't be had, and rarely listed where it delivers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.resources import QUEUES, Resource
from vcbatch.runtime.caches import handlers
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.caches.handlers import CustomResources, Feed
from vcbatch.runtime.caches.kopf_operator import Observe
from vcbatch.runtime.client.kubeconfig import Connection


class Dead:
    """In place of kopf: it ends as soon as it is started."""

    unwatched: Sequence[Resource] = ()
    stopped = False

    def __init__(self, *_: object, **__: object) -> None:
        self.scanned = asyncio.Event()

    async def run(self) -> None:
        raise RuntimeError("an answer was cut")


class Quiet(Dead):
    """In place of kopf: it delivers what there is, and then nothing happens."""

    def __init__(self, *_: object, observe: Observe, **__: object) -> None:
        super().__init__()
        self._observe = observe

    async def run(self) -> None:
        self.scanned.set()
        self._observe(QUEUES, None, queue("old"))
        await asyncio.Event().wait()


def queue(name: str) -> dict[str, Any]:
    return {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"},
    }


async def _seconds_until_found(operator: type, monkeypatch: pytest.MonkeyPatch) -> float:
    """How long it takes until a queue is known that was made when everything had settled."""
    monkeypatch.setattr(handlers, "KopfOperator", operator)
    api, cache = FakeApi(), Cache[Any]()
    source = CustomResources(
        api,
        Connection(server="https://unused"),
        [Feed(resource=QUEUES, cache=cache)],
        clock=VirtualClock(),
        random=SeededRandom(1),
    )
    tasks = [asyncio.ensure_future(part) for part in (source.audit(), source.watch())]
    await asyncio.sleep(400)
    made = asyncio.get_running_loop().time()
    await api.create(QUEUES, queue("new"))
    while cache.by_key("new") is None:  # noqa: ASYNC110 - virtual seconds
        await asyncio.sleep(1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return asyncio.get_running_loop().time() - made


def test_where_kopf_keeps_ending_lists_find_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(_seconds_until_found(Dead, monkeypatch)) < 12


def test_where_kopf_delivers_lists_are_minutes_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 60 < run(_seconds_until_found(Quiet, monkeypatch)) < 340
