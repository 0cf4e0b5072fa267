"""Reads from a fabric manager (NVIDIA UFM) which node is connected to which leaf switch.

It is polled, with a password from a Secret. While it doesn't answer, its last answer remains in use.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import aiohttp
import msgspec

from vcbatch.api.loose import part
from vcbatch.api.resources import SECRETS
from vcbatch.core.hypernode import Fabric, Link
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.tls import client_context
from vcbatch.runtime.pacing.pause import pause

log = logging.getLogger(__name__)

PORTS: Final = "/ufmRest/resources/ports"
REQUEST_SECONDS: Final = 30.0
LARGEST_ANSWER: Final = 100 << 20
_RETRY_SECONDS: Final = 60.0
_OF_A_NODE: Final = "Computer"
"""The value in a port's description for a port of a node and not of a switch."""


class FabricError(Exception):
    """The links couldn't be read; the message names the fabric manager and the reason, and never contains the
    password."""


class _Port(msgspec.Struct, frozen=True):
    description: str | None = None
    system_name: str | None = None
    peer_node_name: str | None = None


class FabricManager:
    """Polls the fabric manager as long as one is configured."""

    def __init__(
        self, api: Api, *, clock: Clock, fabric: Fabric | None, learned: Callable[[Fabric, Sequence[Link]], None]
    ) -> None:
        """`reported` is called with all links after each answer."""
        self._api = api
        self._clock = clock
        self._fabric = fabric
        self._learned = learned
        self._changed = asyncio.Event()
        self._error = ""

    def use(self, fabric: Fabric | None) -> None:
        """Poll this fabric manager from now on; None: don't poll."""
        if fabric != self._fabric:
            self._fabric = fabric
            self._changed.set()

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            self._changed.clear()
            fabric = self._fabric
            if fabric is None:
                await self._changed.wait()
                continue
            seconds = fabric.interval.total_seconds()
            answered = await self._round(fabric)
            await pause(self._clock, seconds if answered else min(seconds, _RETRY_SECONDS), woken=self._changed)

    async def _round(self, fabric: Fabric) -> bool:
        try:
            links = await self.links(fabric)
        except FabricError as error:
            if str(error) != self._error:
                log.warning("keeping the last state of the fabric: %s", error)
            self._error = str(error)
            return False
        if self._error:
            log.info("the fabric manager responds again")
        self._error = ""
        if fabric == self._fabric:
            self._learned(fabric, links)
        return True

    async def links(self, fabric: Fabric) -> list[Link]:
        """Which node is connected to which leaf switch. Raises `FabricError`."""
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                answer = await _ports(fabric, await self._login(fabric))
            return await asyncio.to_thread(_links, answer)
        except TimeoutError as error:
            raise FabricError(f"{fabric.endpoint}: no answer within {REQUEST_SECONDS:g} s") from error
        except (aiohttp.ClientError, OSError, ApiError, msgspec.DecodeError, ValueError, RecursionError) as error:
            raise FabricError(f"{fabric.endpoint}: {str(error) or type(error).__name__}") from error

    async def _login(self, fabric: Fabric) -> Mapping[str, str]:
        """The headers that authenticate a request."""
        if fabric.secret is None:
            return {}
        namespace, name = fabric.secret
        data = part(await self._api.get(SECRETS, name, namespace=namespace), "data")
        login = (_decoded(data, key, of=f"{namespace}/{name}") for key in ("username", "password"))
        return {"Authorization": f"Basic {base64.b64encode(':'.join(login).encode()).decode()}"}


def _decoded(data: dict[str, object], key: str, *, of: str) -> str:
    value = data.get(key)
    try:
        return base64.b64decode(value, validate=True).decode() if isinstance(value, str) else ""
    except (binascii.Error, UnicodeDecodeError):
        raise ValueError(f"{key} of the Secret {of} is no text") from None


async def _ports(fabric: Fabric, headers: Mapping[str, str]) -> bytes:
    connector = aiohttp.TCPConnector(ssl=client_context(verify=not fabric.insecure))
    async with (
        aiohttp.ClientSession(connector=connector, headers=headers) as session,
        # A redirect might send the password to another server.
        session.get(fabric.endpoint + PORTS, allow_redirects=False) as answer,
    ):
        if answer.status != 200:
            raise ValueError(f"HTTP {answer.status}")
        content = bytearray()
        async for chunk in answer.content.iter_chunked(1 << 16):
            content += chunk
            if len(content) > LARGEST_ANSWER:
                raise ValueError(f"its answer is larger than {LARGEST_ANSWER} bytes")
        return bytes(content)


def _links(answer: bytes) -> list[Link]:
    ports = msgspec.json.decode(answer, type=list[_Port])
    return [
        Link(leaf=port.peer_node_name, node=port.system_name)
        for port in ports
        if port.peer_node_name and port.system_name and _OF_A_NODE in (port.description or "")
    ]
