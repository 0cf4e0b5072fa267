"""Where the admission service listens."""

from __future__ import annotations

import socket

import pytest

from webhooks.server import listen

_HAS_IPV6 = socket.has_dualstack_ipv6()


def _reached(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=5):
            return True
    except OSError:
        return False


@pytest.mark.parametrize(
    "host", ["127.0.0.1", pytest.param("::1", marks=pytest.mark.skipif(not _HAS_IPV6, reason="no IPv6 here"))]
)
def test_without_a_host_every_address_is_served(host: str) -> None:
    with listen("", 0) as listener:
        assert _reached(host, listener.getsockname()[1])


def test_without_ipv6_the_addresses_of_ipv4_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with listen("", 0) as listener:
        assert listener.family == socket.AF_INET
        assert _reached("127.0.0.1", listener.getsockname()[1])


def test_with_a_host_that_address_alone_is_served() -> None:
    with listen("127.0.0.1", 0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"
        assert not _reached("127.0.0.2", listener.getsockname()[1])
