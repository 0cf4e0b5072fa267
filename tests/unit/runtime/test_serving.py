"""Health is told even by a program that hangs."""

from __future__ import annotations

import asyncio
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.ports import free_port
from tests.support.virtual_time import VirtualClock, run
from vcbatch.hosting.checks import Checks
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
    return Address("127.0.0.1", free_port())


class Program:
    def __init__(self) -> None:
        self.wrong = ""
        self.unready = ""
        self.server = HealthServer(
            alive=Checks("healthz", {"loop": lambda: self.wrong}),
            ready=Checks("readyz", {"loop": lambda: self.wrong, "caches": lambda: self.unready}),
            metrics=lambda: ("text/plain", b"count 1\n"),
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
    listed = "[+]loop ok\n[-]caches failed: the caches aren't filled yet\nreadyz check failed\n"
    assert get(f"{at_health}/readyz") == (503, listed)
    assert get(f"{at_health}/readyz/caches") == (503, "the caches aren't filled yet")
    assert get(f"{at_health}/readyz/loop") == (200, "ok")
    assert get(f"{at_health}/readyz/nothing")[0] == 404
    assert get(f"{at_health}/readyz?exclude=caches") == (200, "ok")
    program.wrong = "stuck"
    for path in ("healthz", "livez"):
        assert get(f"{at_health}/{path}") == (503, "[-]loop failed: stuck\nhealthz check failed\n")
        assert get(f"{at_health}/{path}/loop") == (503, "stuck")
    assert get(f"{at_health}/readyz?exclude=caches")[0] == 503


def test_one_address_may_serve_both(program: Program) -> None:
    both = free()
    program.server.start(health=both, metrics=both)
    assert get(f"http://127.0.0.1:{both.port}/healthz")[0] == 200
    assert get(f"http://127.0.0.1:{both.port}/metrics")[0] == 200


def test_an_address_that_is_taken_is_an_error(program: Program) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(OSError, match="Address already in use"):
            program.server.start(health=Address(*other.getsockname()), metrics=None)


class HandClock(SystemClock):
    """Passes when it is told to."""

    passed = 0.0

    def monotonic(self) -> float:
        return self.passed


def test_a_loop_that_hangs_is_told_by_its_own_server() -> None:
    async def main() -> list[tuple[int, str]]:
        clock = HandClock()
        pulse = Pulse(clock)
        server = HealthServer(
            alive=Checks("healthz", {"event-loop": pulse.error}),
            ready=Checks("readyz"),
            metrics=lambda: ("text/plain", b""),
        )
        address = free()
        server.start(health=address, metrics=None)
        beating = asyncio.ensure_future(pulse.run())
        await asyncio.sleep(0)
        url = f"http://127.0.0.1:{address.port}/healthz/event-loop"
        try:
            good = await asyncio.to_thread(get, url)
            clock.passed = 60
            with ThreadPoolExecutor(1) as others:
                return [good, others.submit(get, url).result()]  # the loop hangs until there is an answer
        finally:
            beating.cancel()
            server.close()

    good, bad = asyncio.run(main())
    assert good == (200, "ok")
    assert bad[0] == 503
    assert bad[1] == "the event loop has been stuck for 60s"


def test_a_loop_that_turns_is_well_for_ever() -> None:
    async def main() -> str:
        pulse = Pulse(VirtualClock())
        beating = asyncio.ensure_future(pulse.run())
        await asyncio.sleep(3600)
        beating.cancel()
        return pulse.error()

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
