"""Health is told even by a program that hangs."""

from __future__ import annotations

import asyncio
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from tests.support.virtual_time import VirtualClock, run
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.serving import Address, AddressError, HealthServer, Pulse


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def free() -> Address:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return Address(*probe.getsockname())


class Program:
    def __init__(self) -> None:
        self.wrong = ""
        self.unready = ""
        self.server = HealthServer(
            alive=[lambda: self.wrong], ready=[lambda: self.unready], metrics=lambda: ("text/plain", b"count 1\n")
        )


@pytest.fixture
def program() -> Iterator[Program]:
    found = Program()
    yield found
    found.server.close()


def test_each_address_serves_what_it_is_for(program: Program) -> None:
    health, metrics = free(), free()
    program.server.start(health=health, metrics=metrics)
    at_health, at_metrics = (f"http://127.0.0.1:{address.port}" for address in (health, metrics))
    assert get(f"{at_health}/healthz") == get(f"{at_health}/readyz") == (200, "ok")
    assert get(f"{at_health}/metrics")[0] == 404
    assert get(f"{at_metrics}/metrics") == (200, "count 1\n")
    assert get(f"{at_metrics}/healthz")[0] == 404
    program.unready = "the caches aren't filled yet"
    assert get(f"{at_health}/healthz")[0] == 200
    assert get(f"{at_health}/readyz") == (503, "the caches aren't filled yet")
    program.wrong = "stuck"
    assert get(f"{at_health}/healthz") == (503, "stuck")
    assert get(f"{at_health}/readyz") == (503, "stuck; the caches aren't filled yet")


def test_one_address_may_serve_both(program: Program) -> None:
    both = free()
    program.server.start(health=both, metrics=both)
    assert get(f"http://127.0.0.1:{both.port}/healthz")[0] == 200
    assert get(f"http://127.0.0.1:{both.port}/metrics")[0] == 200


def test_an_address_that_is_taken_is_an_error(program: Program) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(OSError, match="address already in use"):
            program.server.start(health=Address(*other.getsockname()), metrics=None)


def test_a_loop_that_hangs_is_told_by_its_own_server() -> None:
    async def main() -> list[tuple[int, str]]:
        pulse = Pulse(SystemClock(), longest_silence=0.2)
        server = HealthServer(alive=[pulse.fault], ready=[], metrics=lambda: ("text/plain", b""))
        address = free()
        server.start(health=address, metrics=None)
        beating = asyncio.ensure_future(pulse.run())
        await asyncio.sleep(0)
        url = f"http://127.0.0.1:{address.port}/healthz"
        try:
            good = await asyncio.to_thread(get, url)
            asked = asyncio.get_running_loop().run_in_executor(None, lambda: (time.sleep(0.5), get(url))[1])
            time.sleep(1)  # noqa: ASYNC251 - the loop is to hang
            return [good, await asked]
        finally:
            beating.cancel()
            server.close()

    good, bad = asyncio.run(main())
    assert good == (200, "ok")
    assert bad[0] == 503
    assert bad[1].startswith("the event loop has been stuck for")


def test_a_loop_that_turns_is_well_for_ever() -> None:
    async def main() -> str:
        pulse = Pulse(VirtualClock())
        beating = asyncio.ensure_future(pulse.run())
        await asyncio.sleep(3600)
        beating.cancel()
        return pulse.fault()

    assert run(main()) == ""


@pytest.mark.parametrize("text", ["8080", "host", "host:", "host:x", "host:65536", "::1:80", "", "h:-1", "h:²"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(AddressError, match="is not HOST:PORT"):
        Address.parse(text)


@pytest.mark.parametrize(
    ("text", "address"),
    [(":8080", Address(None, 8080)), ("127.0.0.1:0", Address("127.0.0.1", 0)), ("[::1]:80", Address("::1", 80))],
)
def test_addresses_are_as_go_writes_them(text: str, address: Address) -> None:
    assert Address.parse(text) == address
