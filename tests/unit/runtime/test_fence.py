"""A replica that may not write any more sends nothing, however far the request has come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from aiohttp import web

from tests.support.handled_http import handled
from tests.support.virtual_time import SeededRandom
from vcbatch.api.resources import PODS
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.client.http import ClientLimits, HttpApi
from vcbatch.runtime.client.kubeconfig import Connection
from vcbatch.runtime.clock import SystemClock


async def requests_that_arrive(may_write: Callable[[], bool], ask: str) -> list[str]:
    arrived: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        arrived.append(request.method)
        await request.read()
        return web.json_response({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}})

    limits = ClientLimits(retries=0, request_timeout=5)
    try:
        async with (
            handled(handle) as url,
            HttpApi(
                Connection(server=url), clock=SystemClock(), random=SeededRandom(1), limits=limits, may_write=may_write
            ) as api,
        ):
            if ask == "create":
                await api.create(PODS, {"metadata": {"name": "p"}}, namespace="ns")
            elif ask == "delete":
                await api.delete(PODS, "p", namespace="ns", uid="u")
            else:
                await api.get(PODS, "p", namespace="ns")
    except ApiError as error:
        assert error.code == 0
    return arrived


def answers(*said: bool) -> Callable[[], bool]:
    """Says these in turn, and the last for ever."""
    left: Iterator[bool] = iter(said)
    return lambda: next(left, said[-1])


@pytest.mark.parametrize("ask", ["create", "delete"])
@pytest.mark.parametrize("may_write", [(False,), (True, False)], ids=["from the start", "while it was on its way"])
def test_a_write_that_is_not_allowed_never_leaves(ask: str, may_write: tuple[bool, ...]) -> None:
    assert asyncio.run(requests_that_arrive(answers(*may_write), ask)) == []


def test_writes_that_are_allowed_and_all_reads_pass() -> None:
    assert asyncio.run(requests_that_arrive(answers(True), "create")) == ["POST"]
    assert asyncio.run(requests_that_arrive(answers(False), "get")) == ["GET"]
