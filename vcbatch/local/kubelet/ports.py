"""Rendezvous ports: all pods share this machine's loopback, and most frameworks listen on every address of it.

Two jobs that both name port 23456, or two TensorFlow workers that both name 2222, would fight over it. So the ports
that a job's plugins write into `MASTER_PORT` and `TF_CONFIG` are translated: the same (gang, host, port) is always the
same port of this machine, in every pod of the gang, and no two of them share one. The port that was asked for is kept
where it is free. What was given out is written down before it is used.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
    """`host:asked` of a gang is `given` on this machine."""

    host: str
    asked: int
    given: int


class PortTable:
    """The ports that gangs have been given, kept in `path`."""

    def __init__(self, path: Path, *, is_free: Callable[[int], bool] | None = None) -> None:
        self._path = path
        self._is_free = is_free or port_is_free
        self._given: dict[str, dict[str, int]] = _load(path)

    def rewrite(self, group: str, variables: Mapping[str, str]) -> tuple[dict[str, str], list[Translation]]:
        """`variables` with the gang's ports in place of those asked for, and the translations that differ."""
        rewritten = dict(variables)
        used: list[Translation] = []
        port = variables.get(ENV_MASTER_PORT, "")
        if port.isdigit() and 0 < int(port) < 65536:
            used.append(self._translate(group, variables.get(ENV_MASTER_ADDR, ""), int(port)))
            rewritten[ENV_MASTER_PORT] = str(used[-1].given)
        if ENV_TF_CONFIG in variables:
            rewritten[ENV_TF_CONFIG] = self._rewrite_tf_config(group, variables[ENV_TF_CONFIG], used)
        return rewritten, [translation for translation in used if translation.asked != translation.given]

    def release(self, group: str) -> None:
        """The gang has no pods here any more."""
        if self._given.pop(group, None) is not None:
            self._save_if_possible()

    def retain(self, groups: set[str]) -> None:
        """Forget every gang but these."""
        if stale := self._given.keys() - groups:
            for group in stale:
                del self._given[group]
            self._save_if_possible()

    def _rewrite_tf_config(self, group: str, text: str, used: list[Translation]) -> str:
        try:
            config = json.loads(text)
            roles = config["cluster"].items()
        except (ValueError, KeyError, TypeError, AttributeError):
            return text  # the program's own business, and its own error message
        for role, addresses in roles:
            if not isinstance(addresses, list):
                continue
            config["cluster"][role] = [self._rewrite_address(group, address, used) for address in addresses]
        return json.dumps(config, separators=(",", ":"))

    def _rewrite_address(self, group: str, address: Any, used: list[Translation]) -> Any:
        host, _, port = str(address).rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            return address
        used.append(self._translate(group, host, int(port)))
        return f"{host}:{used[-1].given}"

    def _translate(self, group: str, host: str, asked: int) -> Translation:
        mine = self._given.setdefault(group, {})
        key = f"{host}:{asked}"
        if key not in mine:
            mine[key] = self._choose(asked)
            try:
                self._save()
            except OSError:
                del mine[key]  # not on record, so not given
                raise
        return Translation(host=host, asked=asked, given=mine[key])

    def _choose(self, asked: int) -> int:
        taken = {port for ports in self._given.values() for port in ports.values()}
        for port in (asked, *range(FIRST_PORT, LAST_PORT + 1)):
            if port not in taken and self._is_free(port):
                return port
        raise PortsExhaustedError(f"no port between {FIRST_PORT} and {LAST_PORT} is free")

    def _save(self) -> None:
        replace_file(self._path, json.dumps(self._given).encode(), durable=False)

    def _save_if_possible(self) -> None:
        """Ports that are on record although they are free do no harm: `retain` forgets them."""
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
