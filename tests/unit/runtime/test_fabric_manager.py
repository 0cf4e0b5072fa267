"""What a fabric manager is asked, and what becomes of its answers."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from aiohttp import web

from tests.fakes.api import FakeApi
from tests.support.handled_http import Handler, handled
from vcbatch.api.resources import SECRETS
from vcbatch.core.hypernode import Fabric, Link
from vcbatch.runtime import fabric_manager
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.fabric_manager import FabricError, FabricManager

PORTS = [
    {"description": "Computer IB Port", "system_name": "node-a", "peer_node_name": "leaf-1", "guid": "0x1"},
    {"description": "Computer IB Port", "system_name": "node-b", "peer_node_name": None},
    {"description": "Switch IB Port", "system_name": "leaf-1", "peer_node_name": "spine-1"},
    {"description": None, "system_name": "node-c"},
]


class _Clock(SystemClock):
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


def _secret(**texts: str) -> dict[str, Any]:
    data = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    return {"metadata": {"name": "ufm", "namespace": "ns"}, "data": data}


def _manager(
    api: FakeApi, fabric: Fabric | None = None, reported: Callable[..., None] = lambda *_: None
) -> FabricManager:
    return FabricManager(api, clock=_Clock(), fabric=fabric, learned=reported)


async def test_links_are_those_of_the_ports_of_nodes() -> None:
    async def answer(request: web.Request) -> web.Response:
        assert (request.method, request.path) == ("GET", "/ufmRest/resources/ports")
        assert request.headers["Authorization"] == "Basic " + base64.b64encode(b"me:secret").decode()
        return web.json_response(PORTS)

    api = FakeApi()
    api.seed(SECRETS, _secret(username="me", password="secret"))
    async with handled(answer) as endpoint:
        links = await _manager(api).links(Fabric(endpoint=endpoint, secret=("ns", "ufm")))
    assert links == [Link("leaf-1", "node-a")]


async def _redirect(_: web.Request) -> web.Response:
    raise web.HTTPFound("/elsewhere")


async def _refuse(_: web.Request) -> web.Response:
    return web.Response(status=401, text="who are you?")


async def _garbage(_: web.Request) -> web.Response:
    return web.Response(text="<html>")


async def _no_ports(_: web.Request) -> web.Response:
    return web.json_response({"ports": []})


@pytest.mark.parametrize(
    ("handler", "error"),
    [(_redirect, "HTTP 302"), (_refuse, "HTTP 401"), (_garbage, "JSON"), (_no_ports, "Expected `array`")],
)
async def test_what_is_no_answer_is_said_with_the_address(handler: Handler, error: str) -> None:
    async with handled(handler) as endpoint:
        with pytest.raises(FabricError) as refused:
            await _manager(FakeApi()).links(Fabric(endpoint=endpoint))
    assert str(refused.value).startswith(f"{endpoint}: ")
    assert error in str(refused.value)


async def test_an_answer_without_end_is_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric_manager, "LARGEST_ANSWER", 1000)

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" " * 1000)

    async with handled(endless) as endpoint:
        with pytest.raises(FabricError, match="larger than 1000 bytes"):
            await _manager(FakeApi()).links(Fabric(endpoint=endpoint))


async def test_a_secret_that_isnt_there_or_no_text_is_said_without_its_content() -> None:
    api = FakeApi()
    fabric = Fabric(endpoint="http://127.0.0.1:9", secret=("ns", "ufm"))
    with pytest.raises(FabricError, match="ufm"):
        await _manager(api).links(fabric)
    api.seed(SECRETS, {**_secret(), "data": {"username": "!!", "password": "c2VjcmV0"}})
    with pytest.raises(FabricError, match="username of the Secret ns/ufm is no text") as refused:
        await _manager(api).links(fabric)
    assert "secret" not in str(refused.value).replace("Secret", "")


async def test_it_is_asked_again_and_another_one_when_the_configuration_changes() -> None:
    answers = [web.Response(status=500), None]
    reported: list[tuple[str, Sequence[Link]]] = []
    enough = asyncio.Event()

    def note(fabric: Fabric, links: Sequence[Link]) -> None:
        reported.append((fabric.endpoint, links))
        enough.set()

    async def answer(_: web.Request) -> web.Response:
        return (answers.pop(0) if answers else None) or web.json_response(PORTS)

    async with handled(answer) as one, handled(answer) as other:
        manager = _manager(FakeApi(), Fabric(endpoint=one), note)
        asking = asyncio.ensure_future(manager.run())
        try:
            await asyncio.wait_for(enough.wait(), 30)
            assert reported[0] == (one, [Link("leaf-1", "node-a")])
            enough.clear()
            manager.use(Fabric(endpoint=other))
            while reported[-1][0] != other:
                await asyncio.wait_for(enough.wait(), 30)
                enough.clear()
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
