"""Rendezvous ports: all pods share this machine's loopback network, and most frameworks listen on every address of it.

Two jobs that both use port 23456, or two TensorFlow workers that both use 2222, would conflict. So the ports that a
job's plugins write into `MASTER_PORT` and `TF_CONFIG` are translated: the same (gang, host, port) is always the same
port of this machine, in every pod of the gang, and no two of them share one. The requested port is kept where it is
free. Assigned ports are recorded before they are used.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from vcbatch.api.names import ENV_MASTER_ADDR, ENV_MASTER_PORT, ENV_TF_CONFIG
from vcbatch.local.files import replace_file

FIRST_PORT = 20000
LAST_PORT = 32767
"""Below the range from which Linux takes the ports of outgoing connections."""


class PortsExhaustedError(Exception):
    """No free port is left on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """`host:asked` of a gang is port `given` of this machine."""

    host: str
    asked: int
    given: int


class _Choice:
    """Free ports for one pod. However many it requests, the range is searched once."""

    def __init__(self, given: Mapping[str, Mapping[str, int]], is_free: Callable[[int], bool]) -> None:
        self._taken = {port for ports in given.values() for port in ports.values()}
        self._is_free = is_free
        self._rest = iter(range(FIRST_PORT, LAST_PORT + 1))

    def take(self, asked: int) -> int:
        """The requested port if it is free, else another one. Raises `PortsExhaustedError`."""
        for port in chain((asked,), self._rest):
            if port not in self._taken and self._is_free(port):
                self._taken.add(port)
                return port
        raise PortsExhaustedError(f"no port between {FIRST_PORT} and {LAST_PORT} is free")


def _port(text: str) -> int | None:
    """The number of a port, None for any other text."""
    if not (text.isascii() and text.isdigit() and len(text) <= 5):
        return None
    return int(text) if 0 < int(text) < 65536 else None


class PortTable:
    """The ports assigned to gangs, stored in `path`."""

    def __init__(self, path: Path, *, is_free: Callable[[int], bool] | None = None) -> None:
        self._path = path
        self._is_free = is_free or port_is_free
        self._given: dict[str, dict[str, int]] = _load(path)

    def rewrite(self, group: str, variables: Mapping[str, str]) -> tuple[dict[str, str], list[Translation]]:
        """`variables` with the gang's ports in place of the requested ones, and the translations that differ."""
        rewritten = dict(variables)
        used: list[Translation] = []
        choice = _Choice(self._given, self._is_free)
        before = dict(self._given.get(group, {}))
        try:
            port = _port(variables.get(ENV_MASTER_PORT, ""))
            if port is not None:
                used.append(self._translate(group, variables.get(ENV_MASTER_ADDR, ""), port, choice))
                rewritten[ENV_MASTER_PORT] = str(used[-1].given)
            if ENV_TF_CONFIG in variables:
                rewritten[ENV_TF_CONFIG] = self._rewrite_tf_config(group, variables[ENV_TF_CONFIG], used, choice)
            if self._given.get(group, {}) != before:
                self._save()
        except (OSError, PortsExhaustedError):
            self._given[group] = before  # not recorded, so not assigned
            raise
        return rewritten, [translation for translation in used if translation.asked != translation.given]

    def release(self, group: str) -> None:
        """Release the ports of a gang without pods on this node."""
        if self._given.pop(group, None) is not None:
            self._save_if_possible()

    def retain(self, groups: set[str]) -> None:
        """Release the ports of all other gangs."""
        if stale := self._given.keys() - groups:
            for group in stale:
                del self._given[group]
            self._save_if_possible()

    def _rewrite_tf_config(self, group: str, text: str, used: list[Translation], choice: _Choice) -> str:
        try:
            config = json.loads(text)
            roles = config["cluster"].items()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return text  # left to the program and its own error message
        for role, addresses in roles:
            if not isinstance(addresses, list):
                continue
            config["cluster"][role] = [self._rewrite_address(group, address, used, choice) for address in addresses]
        return json.dumps(config, separators=(",", ":"))

    def _rewrite_address(self, group: str, address: Any, used: list[Translation], choice: _Choice) -> Any:
        host, _, text = str(address).rpartition(":")
        port = _port(text)
        if not host or port is None:
            return address
        used.append(self._translate(group, host, port, choice))
        return f"{host}:{used[-1].given}"

    def _translate(self, group: str, host: str, asked: int, choice: _Choice) -> Translation:
        mine = self._given.setdefault(group, {})
        key = f"{host}:{asked}"
        if key not in mine:
            mine[key] = choice.take(asked)
        return Translation(host=host, asked=asked, given=mine[key])

    def _save(self) -> None:
        replace_file(self._path, json.dumps(self._given).encode(), durable=False)

    def _save_if_possible(self) -> None:
        """Save if possible. Recorded ports that are free do no harm: `retain` releases them."""
        with contextlib.suppress(OSError):
            self._save()


def port_is_free(port: int) -> bool:
    """Whether a server could listen on the port on every address of this machine."""
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):  # noqa: S104
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind((address, port))
        except OSError as error:
            if family == socket.AF_INET6 and error.errno in _NO_IPV6:
                continue
            return False
    return True


_NO_IPV6 = (97, 99, 47, 49)  # EAFNOSUPPORT and EADDRNOTAVAIL, on Linux and on macOS


def _load(path: Path) -> dict[str, dict[str, int]]:
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text())
    return {}
