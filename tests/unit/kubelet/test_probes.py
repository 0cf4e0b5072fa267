"""Probes and hooks: what counts as success, and when a run of results means something."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from tests.support.virtual_time import VirtualClock, run
from vcbatch.interfaces.processes import CommandResult
from vcbatch.local.kubelet import probes
from vcbatch.runtime.clock import SystemClock


@asynccontextmanager
async def a_server() -> AsyncIterator[int]:
    """Answers `/CODE` with that status; the other paths redirect, or tell what was asked."""

    async def answer(request: web.Request) -> web.Response:
        path = request.path
        if path == "/here":
            return web.Response(status=302, headers={"Location": "/500"})
        if path == "/elsewhere":
            return web.Response(status=307, headers={"Location": "http://203.0.113.1/"})
        if path == "/round":
            return web.Response(status=301, headers={"Location": "/round"})
        if path == "/agent":
            agents = ("kube-probe/vcbatch", "mine")
            return web.Response(
                status=200 if request.headers["User-Agent"] == agents["X-Mine" in request.headers] else 400
            )
        return web.Response(status=int(path.strip("/")))

    runner = web.AppRunner(_app(answer))
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _app(answer: Any) -> web.Application:
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    return app


async def outcome(handler: dict[str, Any], port: int = 0, *, result: CommandResult | None = None) -> probes.Outcome:
    async def execute(_argv: list[str], _timeout: float) -> CommandResult:
        assert result is not None
        return result

    target = probes.Target(address="127.0.0.1", ports={"web": port}, execute=execute)
    return await probes.run_handler(handler, target, timeout=5.0, clock=SystemClock())


@pytest.mark.parametrize(
    ("path", "ok", "message"),
    [
        ("/200", True, ""),
        ("204", True, ""),
        ("/399", True, ""),
        ("/400", False, "HTTP probe failed with statuscode: 400"),
        ("/503", False, "HTTP probe failed with statuscode: 503"),
        ("/here", False, "HTTP probe failed with statuscode: 500"),
        ("/elsewhere", True, ""),
        ("/round", False, "stopped after 10 redirects"),
        ("/agent", True, ""),
    ],
)
async def test_an_http_probe_goes_by_the_status(path: str, ok: bool, message: str) -> None:
    async with a_server() as port:
        assert await outcome({"httpGet": {"path": path, "port": "web"}}, port) == probes.Outcome(ok=ok, message=message)


async def test_an_http_probe_sends_the_headers_that_it_is_given() -> None:
    headers = [{"name": "User-Agent", "value": "mine"}, {"name": "X-Mine", "value": "1"}]
    async with a_server() as port:
        assert (await outcome({"httpGet": {"path": "/agent", "port": port, "httpHeaders": headers}})).ok


@pytest.mark.parametrize(
    "action",
    [
        {"port": "none"},
        {"port": "web", "httpHeaders": [{"name": "X", "value": "a\r\nb"}]},
        {"port": "web", "host": "a..b"},
        {"port": "web", "scheme": "HTTPS"},
    ],
    ids=["no such port", "a header with a line break", "no host name", "TLS where there is none"],
)
async def test_what_cannot_be_asked_is_a_failure_with_a_reason(action: dict[str, Any]) -> None:
    async with a_server() as port:
        found = await outcome({"httpGet": action}, port)
    assert not found.ok and found.message


async def test_a_tcp_probe_goes_by_whether_somebody_listens() -> None:
    async with a_server() as port:
        assert (await outcome({"tcpSocket": {"port": port}})).ok
    assert not (await outcome({"tcpSocket": {"port": port}})).ok
    assert not (await outcome({"tcpSocket": {"port": port, "host": "a..b"}})).ok


@pytest.mark.parametrize(("code", "ok"), [(0, True), (1, False), (126, False)])
async def test_an_exec_probe_goes_by_the_exit_code(code: int, ok: bool) -> None:
    found = await outcome({"exec": {"command": ["x"]}}, result=CommandResult(exit_code=code, output=" why \n"))
    assert found == probes.Outcome(ok=ok, message="why")


def reports(probe: dict[str, Any], results: Iterable[bool], **how: Any) -> list[tuple[float, bool]]:
    """When and with what verdict `watch_probe` reports, given the results of its runs; the last one ends it."""
    reported: list[tuple[float, bool]] = []
    left = iter(results)

    async def follow() -> None:
        clock = VirtualClock()

        class Done(Exception):
            pass

        async def run_once(_timeout: float) -> probes.Outcome:
            try:
                return probes.Outcome(ok=next(left))
            except StopIteration:
                raise Done from None

        def report(ok: bool, _message: str) -> None:
            reported.append((clock.monotonic(), ok))

        try:
            await probes.watch_probe(probe, run=run_once, report=report, clock=clock, **how)
        except Done:
            return

    run(follow())
    return reported


Y, N = True, False


@pytest.mark.parametrize(
    ("probe", "initially", "results", "expected"),
    [
        # A verdict turns after as many failures in a row as the threshold says, three by default.
        ({"periodSeconds": 2}, True, [Y, N, N, Y, N, N, N], [(12, N)]),
        ({"periodSeconds": 1, "failureThreshold": 1}, True, [N, N], [(0, N), (1, N)]),
        ({}, False, [Y, Y], [(0, Y)]),
        ({"initialDelaySeconds": 7, "periodSeconds": 1}, False, [Y], [(7, Y)]),
        ({"periodSeconds": 1, "successThreshold": 2, "failureThreshold": 1}, False, [Y, N, Y, Y], [(1, N), (3, Y)]),
        ({}, True, [Y, Y, Y], []),
    ],
)
def test_a_verdict_turns_at_its_threshold(
    probe: dict[str, Any], initially: bool, results: list[bool], expected: list[tuple[float, bool]]
) -> None:
    assert reports(probe, results, initially=initially) == expected


def test_a_startup_probe_ends_with_its_success() -> None:
    probe = {"periodSeconds": 5, "failureThreshold": 3}
    assert reports(probe, [N, N, Y, N, N, N], initially=None, until_success=True) == [(10, Y)]
