"""`make fuzz-watch`: watchers with any options, which read, read slowly, stall or go, while objects change.

A server of its own is watched over TLS. No answer may be a 5xx that Kubernetes doesn't give, no watch may last longer
than it was asked to, each watcher that reads sees each change once and in order, clients that read nothing are let go
of, and in the end the server has its memory and its files back. What breaks one of these is printed, and the end is 1.
"""

from __future__ import annotations

import asyncio
import json
import random as random_
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click
import psutil

from tests.fuzz.watched import Ledger, Seen, Selection
from tests.support.raw_http import Stalled, head, token_of, trusting
from vcbatch.api.resources import CONFIGMAPS, NAMESPACES
from vcbatch.runtime.client.http import HttpApi
from vcbatch.runtime.client.kubeconfig import load
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

_ACCEPTED = (
    *("application/json",) * 4,
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "*/*",
    "text/x",
    "",
)
NAMES = ("fuzz-a", "fuzz-b")
LARGE = "fuzz-large"
COLOURS = ("red", "green", "blue")
MEGABYTES = 64.0
"""By how much the server's memory may have grown in the end."""
_AT_ONCE = 24
_PATIENCE = 120.0
_STALL_SECONDS = 2
_LARGE_OBJECTS, _LARGE_SIZE = 60, 100_000
_OF_KUBERNETES = (b"resourceVersion: Invalid value", b"Too large resource version")
"""What Kubernetes itself answers with a 5xx."""
_GLANCE_SECONDS = 1.0
"""How long a watch without a known end is read."""
_DISTANCE = 500
"""So many changes back a watch begins at most. The server drops the older half of its history at 16 MiB, the first time
with the large objects in it: then it keeps some 900 changes, and more are made before the watch is served."""

PROGRAM = f"""
import asyncio, sys
from pathlib import Path
from vcbatch.hosting.guards import HttpLimits
from vcbatch.local.apiserver.server import EmbeddedServer
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

async def main():
    server = EmbeddedServer(
        state_dir=Path(sys.argv[1]), clock=SystemClock(), random=SystemRandom(),
        limits=HttpLimits(stall_seconds={_STALL_SECONDS}),
    )
    await server.start()
    print(server.port, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@dataclass(kw_only=True)
class Report:
    """What came of all watchers."""

    counts: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    before: float = 0.0
    most: float = 0.0
    after: float = 0.0
    """Megabytes of the server: before the first watcher, at most, and after the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A watch to be opened: its path with query, what it selects, and what may come of it."""

    path: str
    accept: str
    selection: Selection
    initial: bool
    version: int | None
    """Where it begins; None for an unknown place, or where the server has to refuse it."""
    seconds: float | None
    valid: bool
    behaviour: str


def asked(random: random_.Random, ledger: Ledger) -> Asked:
    """A watch with options of any kind, of which most can be served."""
    namespace = random.choice(("", *NAMES))
    query: dict[str, str] = {"watch": random.choice(("true", "1"))}
    colour = random.choice(("", "", *COLOURS))
    selector = {"": "colour"}.get(colour, f"colour={colour}")
    query["labelSelector"] = selector
    name = random.choice(("", "", "", "map-1"))
    if name:
        query["fieldSelector"] = f"metadata.name={name}"
    if random.random() < 0.5:
        query["allowWatchBookmarks"] = random.choice(("true", "false"))
    valid, seconds, version, initial = True, None, None, False
    match random.randrange(10):
        case 0 | 1 | 2:
            query["resourceVersion"] = random.choice(("", "0"))
            initial = True
        case 3 | 4 | 5 | 6:
            back = random.randrange(min(len(ledger.changes), _DISTANCE))
            version = ledger.changes[-1 - back].version
            query["resourceVersion"] = str(version)
        case 7 | 8:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
            query["allowWatchBookmarks"] = "true"
            query["resourceVersion"] = random.choice(("", "0"))
            initial = True
        case _:
            valid = False
            odd = (
                {"resourceVersion": str(ledger.version + 10**9)},
                {"resourceVersion": random.choice(("x", "-1", "1.5", "9" * 40, "\x00"))},
                {"sendInitialEvents": "true"},
                {"sendInitialEvents": "maybe", "resourceVersionMatch": "NotOlderThan"},
                {"resourceVersionMatch": "Exact", "resourceVersion": "1"},
                {"labelSelector": random.choice(("=", "a in (", "!!", "a=b=c", "x" * 5000))},
                {"fieldSelector": random.choice(("spec.a=b", "=", "metadata.name", "a" * 5000))},
                {"timeoutSeconds": random.choice(("-1", "x", "1e3", "9" * 30, ""))},
                {"allowWatchBookmarks": "perhaps"},
                {"limit": random.choice(("-1", "1", "x")), "continue": "abc"},
            )
            query |= random.choice(odd)
    if "timeoutSeconds" not in query:
        seconds = random.choice((1, 1, 2, 3))
        query["timeoutSeconds"] = str(seconds)
    accept = random.choice(_ACCEPTED)
    behaviour = random.choice(("read", "read", "read", "slow", "cut", "stall"))
    if behaviour == "stall":
        namespace, query, valid = LARGE, {"watch": "true", "resourceVersion": "0"}, True
    place = f"/namespaces/{namespace}" if namespace else ""
    return Asked(
        path=f"/api/v1{place}/configmaps?{urlencode(query)}",
        accept=accept,
        selection=Selection(namespace=namespace, colour=colour, name=name),
        initial=initial,
        version=version,
        seconds=seconds,
        valid=valid,
        behaviour=behaviour,
    )


class Fuzz:
    """Opens watches on one server, and judges what they see."""

    def __init__(self, folder: Path, port: int, process: psutil.Process, seed: int) -> None:
        self.report = Report()
        self.ledger = Ledger()
        self.random = random_.Random(seed)
        self._context = trusting(folder)
        self._token = token_of(folder)
        self._port = port
        self._process = process
        self._api = HttpApi(load(folder / "kubeconfig"), clock=SystemClock(), random=SystemRandom())
        self._done = False
        self._noted = asyncio.Event()

    async def run(self, inputs: int) -> None:
        """That many watchers beside one that sees everything."""
        async with self._api:
            await self._prepare()
            files = self._process.num_fds()
            self.report.before = self._resident()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._write())
                group.create_task(self._follow())
                room = asyncio.Semaphore(_AT_ONCE)
                await self._open_all(inputs, room)
                self._done = True
            await self._settled(files)

    async def _open_all(self, inputs: int, room: asyncio.Semaphore) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(inputs):
                await room.acquire()
                group.create_task(self._one(number, asked(self.random, self.ledger), room))

    def _resident(self) -> float:
        size = self._process.memory_info().rss / 1e6
        self.report.most = max(self.report.most, size)
        return size

    # What changes ----------------------------------------------------------------------------------------------------

    async def _prepare(self) -> None:
        for name in (*NAMES, LARGE):
            await self._api.create(NAMESPACES, {"metadata": {"name": name}})
        for number in range(_LARGE_OBJECTS):
            body = {"metadata": {"name": f"large-{number}"}, "data": {"filling": "x" * _LARGE_SIZE}}
            await self._api.create(CONFIGMAPS, body, namespace=LARGE)
        for number in range(10):
            await self._put((self.random.choice(NAMES), f"map-{number}"))

    async def _write(self) -> None:
        """Change objects for as long as there are watchers, and a last one that the follower waits for."""
        while not self._done:
            await self._put((self.random.choice(NAMES), f"map-{self.random.randrange(10)}"))
            await asyncio.sleep(self.random.choice((0, 0, 0.01)))
        await self._put((NAMES[0], "last"))

    async def _put(self, key: tuple[str, str]) -> None:
        """Create, change or delete one object."""
        namespace, name = key
        present = next((each.after for each in reversed(self.ledger.changes) if each.key == key), None)
        colour = self.random.choice(COLOURS)
        filling = "x" * self.random.choice((10, 10, 1000, 20_000))
        body: dict[str, Any] = {"metadata": {"name": name, "labels": {"colour": colour}}, "data": {"k": filling}}
        if present is None:
            made = await self._api.create(CONFIGMAPS, body, namespace=namespace)
        elif self.random.random() < 0.2:
            await self._api.delete(CONFIGMAPS, name, namespace=namespace)
            # The version of a deletion isn't told: the watchers' events are compared with the follower's.
            self._note(key, await self._version(), None)
            return
        else:
            body["data"]["n"] = str(self.ledger.version)
            made = await self._api.patch(CONFIGMAPS, name, body, namespace=namespace)
        self._note(key, int(made["metadata"]["resourceVersion"]), colour)

    def _note(self, key: tuple[str, str], version: int, colour: str | None) -> None:
        self.ledger.note(key, version, colour)
        self._noted.set()

    async def _until(self, holds: Callable[[], bool]) -> None:
        """Return once something holds of the ledger."""
        while not holds():
            self._noted.clear()
            await self._noted.wait()

    async def _version(self) -> int:
        """The version of the server, which is that of the last change: nobody else writes."""
        return int((await self._api.list(CONFIGMAPS, namespace=NAMES[0])).resource_version)

    # Who watches -----------------------------------------------------------------------------------------------------

    async def _one(self, number: int, watch: Asked, room: asyncio.Semaphore) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                error = await self._judged(watch)
        except TimeoutError:
            error = f"it hangs ({_PATIENCE:g} s)"
        except (OSError, asyncio.IncompleteReadError) as raised:
            error = f"{type(raised).__name__}: {raised}"
        finally:
            room.release()
        self._resident()
        self.report.counts[watch.behaviour] += 1
        if error:
            self.report.errors.append(f"watcher {number} ({watch.behaviour}) {watch.path} {watch.accept}: {error}")

    async def _judged(self, watch: Asked) -> str:
        if watch.behaviour == "stall":
            stalled = await Stalled.open(self._port, self._context, watch.path, self._token)
            try:
                await stalled.cut_off()
            finally:
                stalled.abort()
            return ""
        first = len(self.ledger.changes)
        began = time.monotonic()
        async with self._opened(watch.path, watch.accept) as (code, reader):
            last = len(self.ledger.changes) + 1  # a change may be seen before it is acknowledged
            self.report.counts[str(code)] += 1
            if code != 200:
                return await _refused(watch, code, reader)
            lines = await self._lines(reader, watch.behaviour, _GLANCE_SECONDS if watch.seconds is None else None)
        if watch.behaviour == "read" and watch.seconds and time.monotonic() - began > watch.seconds + _PATIENCE / 2:
            return f"lasted {time.monotonic() - began:.0f} s"
        return await self._compared(watch, lines, first, last)

    async def _compared(self, watch: Asked, lines: Sequence[bytes], first: int, last: int) -> str:
        events: list[Seen] = []
        for line in lines:
            event = json.loads(line)
            if event["type"] == "ERROR":
                return "" if not watch.valid else f"an error: {event['object'].get('message')}"
            if event["type"] == "BOOKMARK" or event["object"].get("kind") == "Table":
                continue
            metadata = event["object"]["metadata"]
            if metadata["namespace"] in NAMES and metadata["name"] != "kube-root-ca.crt":
                key = (metadata["namespace"], metadata["name"])
                events.append(Seen(event["type"], key, int(metadata["resourceVersion"])))
        if not watch.valid or "Table" in watch.accept:
            return ""
        # What was under way is acknowledged, too; other changes follow for as long as there are watchers.
        newest = max((event.version for event in events), default=0)
        await self._until(lambda: len(self.ledger.changes) >= last and self.ledger.version >= newest)
        if watch.version is not None:
            first = last = self.ledger.position(watch.version)
        return self.ledger.error(events, watch.selection, first=first, last=last, initial=watch.initial)

    async def _lines(
        self, reader: asyncio.StreamReader, behaviour: str, seconds: float | None = None
    ) -> Sequence[bytes]:
        """The whole lines of a chunked answer, as far as it is read: for so many seconds at most."""
        data = bytearray()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._read(reader, behaviour, data)
        return bytes(data).split(b"\n")[:-1]

    async def _read(self, reader: asyncio.StreamReader, behaviour: str, data: bytearray) -> None:
        enough = self.random.randrange(1, 50_000) if behaviour == "cut" else None
        while size := int(await reader.readline(), 16):
            data += await reader.readexactly(size)
            await reader.readexactly(2)
            if behaviour == "slow":
                await asyncio.sleep(0.02)
            if enough is not None and len(data) > enough:
                break

    @asynccontextmanager
    async def _opened(self, path: str, accept: str) -> AsyncIterator[tuple[int, asyncio.StreamReader]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._context)
        try:
            more = [f"Accept: {accept}"] if accept else []
            writer.write(head("GET", path, self._token, *more))
            start = await reader.readuntil(b"\r\n\r\n")
            yield int(start.split(b" ")[1]), reader
        finally:
            writer.transport.abort()

    async def _follow(self) -> None:
        """One watcher that goes on from where its watch ended: it must have seen everything, once and in order."""
        seen: list[Seen] = []
        first = len(self.ledger.changes)
        version = self.ledger.version
        selection = Selection(colour="")
        while not seen or seen[-1].key != (NAMES[0], "last"):
            query = urlencode({"watch": "1", "resourceVersion": str(version), "timeoutSeconds": "2"})
            async with self._opened(f"/api/v1/configmaps?{query}&labelSelector=colour", "") as (code, reader):
                if code != 200:
                    self.report.errors.append(f"the follower was answered {code}")
                    return
                for line in await self._lines(reader, "read"):
                    event = json.loads(line)
                    metadata = event["object"]["metadata"]
                    key = (metadata["namespace"], metadata["name"])
                    version = int(metadata["resourceVersion"])
                    seen.append(Seen(event["type"], key, version))
        await self._until(lambda: self.ledger.changes[-1].key == (NAMES[0], "last"))
        self.report.counts["events of the follower"] = len(seen)
        wanted = list(self.ledger.after(first, selection))
        if seen != wanted:
            at = next((at for at, pair in enumerate(zip(seen, wanted, strict=False)) if pair[0] != pair[1]), "the end")
            self.report.errors.append(f"the follower saw {len(seen)} events of {len(wanted)}; they differ at {at}")

    async def _settled(self, files: int) -> None:
        """The server has let go of everything."""
        end = time.monotonic() + _PATIENCE
        while self._process.num_fds() > files + 4:
            if time.monotonic() > end:
                self.report.errors.append(f"{self._process.num_fds()} open files of {files} at the start")
                break
            await asyncio.sleep(0.1)
        self.report.after = self._resident()
        if self.report.after > self.report.before + MEGABYTES:
            self.report.errors.append(f"memory went from {self.report.before:.0f} to {self.report.after:.0f} MB")


async def _refused(watch: Asked, code: int, reader: asyncio.StreamReader) -> str:
    """What is wrong with a refusal; "" where the watch has earned it."""
    message = await reader.read(10_000)
    if code >= 500 and not any(known in message for known in _OF_KUBERNETES):
        return f"answered {code}: {message!r}"
    return f"answered {code}: {message!r}" if watch.valid and code != 406 else ""


def run(inputs: int, seed: int) -> Report:
    """That many watchers on a server of its own."""
    with tempfile.TemporaryDirectory() as name, (Path(name) / "log").open("w+") as log:
        folder = Path(name) / "state"
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(folder)], stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            assert child.stdout is not None
            port = int(child.stdout.readline())
            report = asyncio.run(_run(folder, port, psutil.Process(child.pid), inputs, seed))
        finally:
            child.kill()
            child.wait()
        log.seek(0)
        if "Traceback" in (said := log.read()):
            report.errors.append(f"the server's log: {said[-3000:]}")
        return report


async def _run(folder: Path, port: int, process: psutil.Process, inputs: int, seed: int) -> Report:
    fuzz = Fuzz(folder, port, process, seed)
    await fuzz.run(inputs)
    return fuzz.report


@click.command()
@click.option("--inputs", default=5_000, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(inputs: int, seed: int) -> None:
    """Open INPUTS watches."""
    began = time.perf_counter()
    report = run(inputs, seed)
    click.echo(f"{inputs:,} watchers in {time.perf_counter() - began:.0f} s: {dict(report.counts)}")
    click.echo(f"memory {report.before:.0f} MB before, at most {report.most:.0f}, {report.after:.0f} after")
    for error in report.errors[:50]:
        click.echo(error, err=True)
    sys.exit(bool(report.errors))


if __name__ == "__main__":
    main()
