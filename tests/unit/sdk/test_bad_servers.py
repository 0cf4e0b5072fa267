"""The client against servers that are slow, throttle, break off and half-close."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from tests.support.handled_http import Handler, handled
from vcbatch import AsyncClient, Conflict, Forbidden, Job, JobEnded, JobPhase, NotFound, Task, Unavailable, WaitTimeout
from vcbatch.runtime.client.kubeconfig import Connection
from vcbatch.sdk.connecting import Place

JOB = Job(name="a", tasks=[Task(name="w", image="x", command=["true"])])
JOBS_PATH = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


def manifest(phase: str, version: int) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": str(version)}
    return {"metadata": metadata, "status": {"state": {"phase": phase}}}


def status(code: int, reason: str, *, headers: dict[str, str] | None = None) -> web.Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": reason}
    return web.json_response(body, status=code, headers=headers)


@asynccontextmanager
async def served(handler: Handler, *, timeout: float = 5.0) -> AsyncIterator[AsyncClient]:
    async with handled(handler) as url:
        place = Place(connection=Connection(server=url), state_dir=None)
        async with AsyncClient.of(place, timeout=timeout) as client:
            yield client


class Server:
    """Lists and watches one job. `watches` says what each watch does: the phases that it tells, and how it ends."""

    def __init__(self, *watches: tuple[list[str], str]) -> None:
        self.watches = list(watches)
        self.phase, self.version = "Pending", 1
        self.lists = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path != JOBS_PATH:
            return web.json_response({"metadata": {}, "items": []})
        if "watch" not in request.query:
            self.lists += 1
            body = {"metadata": {"resourceVersion": str(self.version)}, "items": [manifest(self.phase, self.version)]}
            return web.json_response(body)
        phases, end = self.watches.pop(0)
        if end == "gone":
            self.phase, self.version = phases[-1], self.version + 1
            return status(410, "Expired")
        response = web.StreamResponse()
        await response.prepare(request)
        for self.phase in phases:
            self.version += 1
            event = {"type": "MODIFIED", "object": manifest(self.phase, self.version)}
            data = json.dumps(event).encode() + b"\n"
            await response.write(data[:20])
            await response.write(data[20:])
        match end:
            case "reset":
                assert request.transport is not None
                request.transport.abort()
            case "garbage":
                await response.write(b"<html>Bad Gateway</html>\n")
            case "error":
                await response.write(json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 410}}).encode())
        return response


@pytest.mark.parametrize("end", ["close", "reset", "garbage", "gone", "error"])
async def test_waiting_goes_on_however_a_watch_ends(end: str):
    server = Server((["Running"], end), (["Running"], end), (["Completed"], "close"))
    async with served(server.answer) as client:
        seen: list[JobPhase] = []
        done = await client.job("a").wait(timeout=60, on_change=lambda job: seen.append(job.phase))
    assert done.phase is JobPhase.COMPLETED
    assert seen[0] is JobPhase.PENDING and seen[-1] is JobPhase.COMPLETED


async def test_a_job_that_vanishes_from_the_list_is_gone():
    server = Server((["Running"], "gone"))

    async def handler(request: web.Request) -> web.StreamResponse:
        if server.lists and "watch" not in request.query:
            return web.json_response({"metadata": {"resourceVersion": "9"}, "items": []})
        return await server.answer(request)

    async with served(handler) as client:
        with pytest.raises(NotFound, match="deleted"):
            await client.job("a").wait(timeout=60)


async def test_a_silent_server_ends_in_the_time_that_was_given():
    async def handler(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            await asyncio.sleep(600)
        if request.path == JOBS_PATH:
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": [manifest("Pending", 1)]})
        if request.path.startswith(JOBS_PATH):
            return web.json_response(manifest("Pending", 1))
        return status(403, "Forbidden")

    async with served(handler) as client:
        with pytest.raises(WaitTimeout, match="Pending"):
            await client.job("a").wait(until="Running", timeout=2)


async def test_what_is_throttled_is_made_again():
    calls = 0

    async def handler(_: web.Request) -> web.StreamResponse:
        nonlocal calls
        calls += 1
        if calls < 3:
            return status(429, "TooManyRequests", headers={"Retry-After": "0"})
        return web.json_response(manifest("Pending", 1))

    async with served(handler) as client:
        assert (await client.submit(JOB)).name == "a"
    assert calls == 3


async def test_a_read_is_made_again_and_a_write_is_not():
    calls: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        calls.append(request.method)
        if request.method == "GET" and len(calls) > 1:
            return web.json_response(manifest("Running", 1))
        return status(500, "InternalError")

    async with served(handler) as client:
        assert (await client.job("a").get()).phase is JobPhase.RUNNING
        calls.clear()
        with pytest.raises(Unavailable):
            await client.submit(JOB)
        assert calls == ["POST"]


async def test_a_request_that_takes_too_long_is_an_error():
    async def handler(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(600)
        raise AssertionError

    async with served(handler, timeout=0.1) as client:
        with pytest.raises(Unavailable, match="doesn't answer") as caught:
            await client.submit(JOB)
        assert "isn't known whether" in caught.value.hint


async def test_another_job_of_the_same_name_is_another():
    uid = "u"

    async def handler(_: web.Request) -> web.StreamResponse:
        found = manifest("Running", 1)
        found["metadata"]["uid"] = uid
        return web.json_response(found)

    async with served(handler) as client:
        handle = client.job("a")
        await handle.get()
        uid = "v"
        with pytest.raises(NotFound, match="another"):
            await handle.cancel()


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated"])
async def test_a_job_that_has_ended_is_asked_nothing_more(phase: str):
    methods: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        methods.append(request.method)
        return web.json_response(manifest(phase, 1))

    async with served(handler) as client:
        handle = client.job("a")
        for deed in (handle.suspend(), handle.resume(), handle.restart(), handle.scale("w", 2)):
            with pytest.raises(JobEnded, match=phase) as caught:
                await deed
            assert caught.value.job.phase == phase
        await handle.cancel()
    assert set(methods) == {"GET"}


async def test_a_job_that_is_not_there_is_named_with_its_namespace():
    found = True

    async def handler(_: web.Request) -> web.StreamResponse:
        if found:
            return web.json_response(manifest("Running", 1))
        body = {"kind": "Status", "code": 404, "reason": "NotFound", "message": "x", "details": {"name": "a"}}
        return web.json_response(body, status=404)

    async with served(handler) as client:
        handle = client.job("a", namespace="research")
        found = False
        with pytest.raises(NotFound, match="there is no job research/a") as caught:
            await handle.get()
        assert "client.jobs(" in caught.value.hint
        found = True
        await handle.get()
        found = False
        with pytest.raises(NotFound, match="it was deleted"):
            async for _ in handle.logs(follow=True):
                pass


async def test_a_server_that_stays_away_is_told_of_once(caplog: pytest.LogCaptureFixture):
    async def handler(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            return status(503, "ServiceUnavailable")
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": [manifest("Running", 1)]})

    async with served(handler) as client:
        with pytest.raises(WaitTimeout, match="Running") as caught:
            await client.job("a").wait(timeout=3)
        assert "cancel()" in caught.value.hint
    (reported,) = [record.getMessage() for record in caplog.records if record.name == "vcbatch"]
    assert "doesn't answer" in reported and "Trying again" in reported


@pytest.mark.parametrize(("others", "works"), [(0, True), (7, True), (8, False)])
async def test_a_queue_is_changed_whoever_else_writes_to_it(others: int, works: bool):
    """So many times, another has changed the queue between our look and our write."""
    version, written = 1, {"weight": 1, "priority": 5}

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal version, written, others
        metadata = {"name": "q", "resourceVersion": str(version), "generation": version}
        if request.method == "PUT":
            if others:
                others, version, written = others - 1, version + 1, {**written, "priority": version}
                return status(409, "Conflict")
            written = (await request.json())["spec"]
        return web.json_response({"metadata": metadata, "spec": written})

    async with served(handler) as client:
        if works:
            changed = await client.update_queue("q", weight=3)
            assert (changed.weight, changed.priority) == (3, written["priority"])
        else:
            with pytest.raises(Conflict):
                await client.update_queue("q", weight=3)
    assert (written["weight"], others) == (3 if works else 1, 0)


async def test_what_may_not_be_read_is_left_out_of_an_explanation():
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path.startswith(JOBS_PATH):
            return web.json_response(manifest("Pending", 1))
        return status(403, "Forbidden")

    async with served(handler) as client:
        waiting = await client.job("a").explain()
        assert waiting.queue == "default" and waiting.gang is None
        with pytest.raises(Forbidden):
            await client.queues()
