"""Probes of pods for JobFlows: whether a port answers, tried repeatedly while a flow waits for it.

The targets come from users, so the reachable addresses are restricted. The address is that of a pod of the probed job
(`vcbatch.core.jobflow.probing`), in numeric form; addresses that pods can't have are refused: loopback, link-local and
the metadata services of clouds. Redirects aren't followed, no proxy is used, no body is read. The number of concurrent
probes is limited, in total and for each flow, and so is the time of a response.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final, Protocol
from urllib.parse import quote

import aiohttp

from vcbatch.core.jobflow import Probe, ProbeKind
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.pacing.pause import pause

log = logging.getLogger(__name__)

TIMEOUT_SECONDS: Final = 2.0
AT_ONCE: Final = 32
AT_ONCE_PER_FLOW: Final = 4
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 10.0
_LONGEST_LINE: Final = 8190
_USER_AGENT: Final = "vcbatch-probe"

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
_VALUE: Final = re.compile(r"[\t\x20-\x7e]{0,4096}")
_OF_A_PATH: Final = "/?%:@!$&'()*+,;=~"
_FRAMING: Final = frozenset({"connection", "content-length", "expect", "te", "trailer", "transfer-encoding", "upgrade"})

_METADATA: Final = frozenset(
    ipaddress.ip_address(address)
    for address in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
)
"""Addresses of the clouds' metadata services that aren't link-local."""


class Ask(Protocol):
    """The function that probes a pod."""

    async def ask(self, probe: Probe) -> bool:
        """Whether the probe passes. Never raises, and returns within a few seconds."""
        ...

    async def close(self) -> None: ...


def refused(address: str, *, local: bool) -> str:
    """Why the address may not be probed; empty where it may. `local`: pods are processes of this machine, and have
    addresses of its loopback network."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "it isn't an IP address"
    inner = getattr(found, "ipv4_mapped", None) or getattr(found, "sixtofour", None) or found
    if inner.is_loopback:
        return "" if local else "it is a loopback address"
    if inner in _METADATA or inner.is_link_local:
        return "it is link-local, or a metadata service"
    if inner.is_multicast or inner.is_unspecified or inner.is_reserved:
        return "no pod has such an address"
    return ""


class Sockets:
    """Probes over the network."""

    def __init__(self, *, local: bool = False) -> None:
        self._local = local
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, probe: Probe) -> bool:
        if why := refused(probe.address, local=self._local):
            log.warning("a probe wasn't created: %s", why, extra={"pod": probe.pod_uid, "address": probe.address[:64]})
            return False
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await (self._get(probe) if probe.kind is ProbeKind.HTTP else _connects(probe))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return False

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _get(self, probe: Probe) -> bool:
        host = f"[{probe.address}]" if ":" in probe.address else probe.address
        url = f"http://{host}:{probe.port}/{quote(probe.path.removeprefix('/'), safe=_OF_A_PATH)}"
        headers = {"User-Agent": _USER_AGENT}
        if probe.header is not None:
            name, value = probe.header
            if not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value) or name.lower() in _FRAMING:
                return False
            headers[name] = value
        async with self._opened().get(url, headers=headers, allow_redirects=False) as response:
            return 200 <= response.status < 400

    def _opened(self) -> aiohttp.ClientSession:
        """The client session. Connections aren't reused: idle ones would be another limited resource to manage."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(force_close=True, limit=AT_ONCE),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                max_line_size=_LONGEST_LINE,
                max_field_size=_LONGEST_LINE,
            )
        return self._session


async def _connects(probe: Probe) -> bool:
    _, writer = await asyncio.open_connection(probe.address, probe.port, limit=1)
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


class Prober:
    """Repeats the probes that flows need, and calls `changed` with the UID of a flow whose results change."""

    def __init__(self, asks: Ask, *, clock: Clock) -> None:
        self._asks = asks
        self._clock = clock
        self._flows: dict[str, _Flow] = {}
        self._to_start: set[str] = set()
        self._wake = asyncio.Event()
        self._room = asyncio.Semaphore(AT_ONCE)
        self.changed: Callable[[str], None] = lambda _: None

    def part(self) -> Part:
        return Part(name="probing pods", run=self.run)

    def want(self, flow: str, probes: Iterable[Probe]) -> None:
        """Replace the set of probes for the flow with that UID."""
        wanted = dict.fromkeys(probes)
        known = self._flows.get(flow)
        if known is None:
            if not wanted:
                return
            known = self._flows[flow] = _Flow()
            self._to_start.add(flow)
            self._wake.set()
        known.take(wanted)
        if not wanted:
            del self._flows[flow]

    def answers(self, flow: str) -> Mapping[Probe, bool]:
        """The results of the latest probes."""
        known = self._flows.get(flow)
        return known.answers() if known is not None else {}

    async def run(self) -> None:
        self._to_start.update(self._flows)
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    for flow in sorted(self._to_start):
                        if flow in self._flows:
                            group.create_task(self._serve(flow, self._flows[flow]))
                    self._to_start.clear()
                    self._wake.clear()
                    await self._wake.wait()
        finally:
            await self._asks.close()

    async def _serve(self, uid: str, flow: _Flow) -> None:
        """Run the probes of a flow until it needs none any more."""
        while self._flows.get(uid) is flow:
            due = flow.due(self._clock.monotonic())
            for start in range(0, len(due), AT_ONCE_PER_FLOW):
                some = due[start : start + AT_ONCE_PER_FLOW]
                found = await asyncio.gather(*map(self._ask, some))
                news = [
                    flow.note(probe, passed, self._clock.monotonic()) for probe, passed in zip(some, found, strict=True)
                ]
                if any(news) and self._flows.get(uid) is flow:
                    self.changed(uid)
            await flow.rest(self._clock)

    async def _ask(self, probe: Probe) -> bool:
        async with self._room:
            return await self._asks.ask(probe)


class _Flow:
    """The probes of one flow: when each is due, the current interval, and the latest result."""

    def __init__(self) -> None:
        self._due: dict[Probe, float] = {}
        self._pause: dict[Probe, float] = {}
        self._found: dict[Probe, bool] = {}
        self._changed = asyncio.Event()

    def take(self, wanted: Mapping[Probe, None]) -> None:
        if wanted.keys() == self._due.keys():
            return
        self._due = {probe: self._due.get(probe, 0.0) for probe in wanted}
        self._pause = {probe: pause for probe, pause in self._pause.items() if probe in wanted}
        self._found = {probe: passed for probe, passed in self._found.items() if probe in wanted}
        self._changed.set()

    def answers(self) -> Mapping[Probe, bool]:
        return dict(self._found)

    def due(self, now: float) -> list[Probe]:
        return [probe for probe, due in self._due.items() if due <= now]

    def note(self, probe: Probe, passed: bool, now: float) -> bool:
        """Record a result. Returns whether it differs from the one before."""
        if probe not in self._due:
            return False
        news = self._found.get(probe) is not passed
        before = self._pause.get(probe)
        pause = _FIRST_PAUSE if news or before is None else min(2 * before, _LONGEST_PAUSE)
        self._found[probe], self._pause[probe], self._due[probe] = passed, pause, now + pause
        return news

    async def rest(self, clock: Clock) -> None:
        """Sleep until the next probe is due, or the set of probes changes."""
        self._changed.clear()
        if not self._due:
            return
        await pause(clock, max(min(self._due.values()) - clock.monotonic(), 0.01), woken=self._changed)
