"""Probes of pods: what can be reached through them, how an answer is judged, and how often is asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.support.virtual_time import VirtualClock, run
from vcbatch.core.jobflow import Probe, ProbeKind
from vcbatch.runtime import probes
from vcbatch.runtime.probes import AT_ONCE, AT_ONCE_PER_FLOW, Prober, Sockets, refused


def _probe(
    port: int = 80, *, kind: ProbeKind = ProbeKind.HTTP, address: str = "127.0.0.1", path: str = "/", pod: str = "p",
    header: tuple[str, str] | None = None,
) -> Probe:  # fmt: skip
    return Probe(pod_uid=pod, namespace="ns", pod=pod, address=address, kind=kind, port=port, path=path, header=header)


# Where it may ask


@pytest.mark.parametrize("address", ["10.0.0.7", "192.168.3.4", "100.64.1.2", "8.8.8.8", "fd12:3456::1", "2001:db9::7"])
def test_addresses_of_pods_are_asked(address: str) -> None:
    assert refused(address, local=False) == ""


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.70.1.2", "::1", "::ffff:127.0.0.1",
        "169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "2002:a9fe:a9fe::1",
        "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254",
        "0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "240.0.0.1",
        "localhost", "kubernetes.default.svc", "10.0.0.1:80", "10.1", "0x7f000001", "2130706433", "", "fe80::1%eth0",
    ],
)  # fmt: skip
def test_nothing_else_is(address: str) -> None:
    assert refused(address, local=False)


def test_on_one_machine_pods_are_at_its_loopback() -> None:
    assert refused("127.70.1.2", local=True) == ""
    assert refused("169.254.169.254", local=True)
    assert refused("::ffff:169.254.169.254", local=True)


# How it asks


@asynccontextmanager
async def _server(answer: bytes, *, wait: float = 0.0) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that says `answer`, and what it was asked."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        await asyncio.sleep(wait)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], asked
    finally:
        server.close()
        await server.wait_closed()


async def _ask(make: Callable[[int], Probe], answer: bytes, *, wait: float = 0.0, local: bool = True):
    sockets = Sockets(local=local)
    async with _server(answer, wait=wait) as (port, asked):
        passed = await sockets.ask(make(port))
    await sockets.close()
    return passed, asked


@pytest.mark.parametrize(
    ("status", "passes"), [("200 OK", True), ("204 No Content", True), ("302 Found", True), ("404 No", False)]
)
def test_an_answer_is_judged_by_its_status(status: str, passes: bool) -> None:
    answer = f"HTTP/1.1 {status}\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n".encode()
    passed, asked = asyncio.run(_ask(_probe, answer))
    assert passed is passes
    assert len(asked) == 1


def test_a_redirect_isnt_followed() -> None:
    async def ask() -> tuple[bool, list[bytes]]:
        sockets = Sockets(local=True)
        async with _server(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as (elsewhere, asked_there):
            location = f"http://127.0.0.1:{elsewhere}/secret"
            answer = f"HTTP/1.1 307 Go\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()
            async with _server(answer) as (port, _):
                passed = await sockets.ask(_probe(port))
        await sockets.close()
        return passed, asked_there

    assert asyncio.run(ask()) == (True, [])


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/ready?full=1", b"GET /ready?full=1 HTTP/1.1"),
        ("ready", b"GET /ready HTTP/1.1"),
        ("@169.254.169.254/x", b"GET /@169.254.169.254/x HTTP/1.1"),
        ("//169.254.169.254/x", b"GET //169.254.169.254/x HTTP/1.1"),
        ("http://169.254.169.254/x", b"GET /http://169.254.169.254/x HTTP/1.1"),
    ],
)
def test_no_path_leads_elsewhere(path: str, line: bytes) -> None:
    _, asked = asyncio.run(_ask(lambda port: _probe(port, path=path), b"HTTP/1.1 200 OK\r\n\r\n"))
    assert asked[0].split(b"\r\n")[0] == line


def test_no_path_or_header_adds_a_line() -> None:
    for probe in (
        lambda port: _probe(port, path="/x\r\nEvil: 1"),
        lambda port: _probe(port, header=("X", "1\r\nEvil: 1")),
        lambda port: _probe(port, header=("X\r\nEvil", "1")),
        lambda port: _probe(port, header=("Content-Length", "100")),
    ):
        _, asked = asyncio.run(_ask(probe, b"HTTP/1.1 200 OK\r\n\r\n"))
        assert not any(b"\r\nEvil" in each or b"Content-Length" in each for each in asked)


def test_a_header_is_sent() -> None:
    passed, asked = asyncio.run(_ask(lambda port: _probe(port, header=("X-A", "b c")), b"HTTP/1.1 200 OK\r\n\r\n"))
    assert passed
    assert b"\r\nX-A: b c\r\n" in asked[0]


def test_loopback_isnt_asked_where_pods_are_elsewhere() -> None:
    assert asyncio.run(_ask(_probe, b"HTTP/1.1 200 OK\r\n\r\n", local=False)) == (False, [])


def test_an_answer_that_never_ends_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "TIMEOUT_SECONDS", 0.2)
    endless = b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000
    assert asyncio.run(_ask(_probe, endless))[0] is False
    assert asyncio.run(_ask(_probe, b"HTTP/1.1 200 OK\r\n\r\n", wait=1.0))[0] is False


def test_an_open_port_passes_and_a_closed_one_doesnt() -> None:
    async def ask() -> list[bool]:
        sockets = Sockets(local=True)
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        found = [await sockets.ask(_probe(port, kind=ProbeKind.TCP))]
        server.close()
        await server.wait_closed()
        return [*found, await sockets.ask(_probe(port, kind=ProbeKind.TCP)), await sockets.ask(_probe(port))]

    assert asyncio.run(ask()) == [True, False, False]


# How often and how much


class _Pods:
    """Implements `Ask`."""

    def __init__(self, *, takes: float = 0.0) -> None:
        self.up: set[str] = set()
        self.asked: Counter[str] = Counter()
        self.now = self.most = 0
        self.closed = False
        self._takes = takes

    async def ask(self, probe: Probe) -> bool:
        self.asked[probe.pod] += 1
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self._takes)
        self.now -= 1
        return probe.pod in self.up

    async def close(self) -> None:
        self.closed = True


def _probing(pods: _Pods, act: Callable[[Prober, list[str]], object]) -> list[str]:
    reported: list[str] = []

    async def go() -> None:
        prober = Prober(pods, clock=VirtualClock())
        prober.changed = reported.append
        running = asyncio.ensure_future(prober.run())
        result = act(prober, reported)
        assert asyncio.iscoroutine(result)
        await result
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run(go())
    assert pods.closed
    return reported


def test_a_flow_is_told_of_each_change() -> None:
    pods = _Pods()

    async def act(prober: Prober, reported: list[str]) -> None:
        prober.want("f", [_probe(pod="a")])
        await asyncio.sleep(0.1)
        assert (reported, dict(prober.answers("f"))) == (["f"], {_probe(pod="a"): False})
        pods.up.add("a")
        await asyncio.sleep(5)
        assert prober.answers("f")[_probe(pod="a")]

    assert _probing(pods, act) == ["f", "f"]


def test_what_doesnt_change_is_asked_less_and_less() -> None:
    pods = _Pods()

    async def act(prober: Prober, _: list[str]) -> None:
        prober.want("f", [_probe(pod="a")])
        await asyncio.sleep(100)

    _probing(pods, act)
    assert 10 <= pods.asked["a"] <= 15


def test_nothing_is_asked_for_a_flow_that_wants_nothing_more() -> None:
    pods = _Pods()

    async def act(prober: Prober, _: list[str]) -> None:
        prober.want("f", [_probe(pod="a"), _probe(pod="b")])
        await asyncio.sleep(0.1)
        prober.want("f", [_probe(pod="b"), _probe(pod="c")])
        await asyncio.sleep(50)
        prober.want("f", [])
        before = pods.asked.total()
        await asyncio.sleep(50)
        assert pods.asked.total() == before
        assert prober.answers("f") == {}

    _probing(pods, act)
    assert pods.asked["a"] == 1
    assert pods.asked["c"] > 1


def test_only_so_many_are_asked_at_a_time() -> None:
    pods = _Pods(takes=1.0)

    async def one(prober: Prober, _: list[str]) -> None:
        prober.want("f", [_probe(pod=f"p{number}") for number in range(50)])
        await asyncio.sleep(20)

    _probing(pods, one)
    assert pods.most == AT_ONCE_PER_FLOW
    assert len(pods.asked) == 50

    async def many(prober: Prober, _: list[str]) -> None:
        for flow in range(40):
            prober.want(f"f{flow}", [_probe(pod=f"p{flow}-{number}") for number in range(5)])
        await asyncio.sleep(60)

    pods = _Pods(takes=1.0)
    _probing(pods, many)
    assert pods.most == AT_ONCE
    assert len(pods.asked) == 200
