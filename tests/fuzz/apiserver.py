"""`make fuzz-apiserver`: the API server and whatever may be asked of it.

Requests are drawn from a seed in sessions, each on a new server in this process and in virtual time. A fault is: an
answer of 500 or more but 503 and 504; a request that takes more than `SECONDS` of CPU time; one that makes the process
grow by more than `BYTES`; a stored object or a store beyond its bounds. A fault prints the seed, the session and the
request, which `--seed S --session N` repeats.
"""

from __future__ import annotations

import faulthandler
import logging
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from types import FrameType
from typing import Any

import click

from tests.fuzz.admission import most_memory
from tests.fuzz.api_requests import CUSTOM, Asked, Requests
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.interfaces.api import Json
from vcbatch.local.apiserver.app import App
from vcbatch.local.apiserver.assembly import build
from vcbatch.local.apiserver.authn import Authenticator
from vcbatch.local.apiserver.kernel import Kernel

SECONDS, BYTES = 3.0, 200 * 10**6
OBJECT_BYTES = 3 * 512 * 1024
STORE_BYTES = 64 * 10**6
PER_SESSION = 500
_PROGRESS = 10_000
_BY_DESIGN = frozenset({503, 504})
_AS_KUBERNETES = re.compile(
    r"message\"?: ?['\"]?("
    r"failed to create typed patch object|failed to convert |"
    r"(resourceVersion: Invalid value: .*)?strconv.ParseUint: parsing |"
    r"map: .* does not contain declared merge key|"
    r"resourceVersion should not be set on objects to be created|"
    r"\[?target.(name|kind): |"
    r"no preferred addresses found|resource name may not be empty|"
    r"converting [(].*: unknown conversion|"
    r"Internal error occurred: the spec replicas field "
    r")"
)
"""What a real API server answers with 500, too (tests/fidelity has it on record): refusals, and no failure of ours."""


class Hang(BaseException):
    """A request took too long. No `Exception`, which the server would answer with a 500."""


@dataclass(kw_only=True)
class Report:
    """What came of all requests."""

    requests: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    as_kubernetes: int = 0
    """Answers of 500 that Kubernetes gives, too."""
    errors: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")


class _Session:
    """One server and the requests to it."""

    def __init__(self, seed: int, number: int, report: Report) -> None:
        self._where = f"--seed {seed} --session {number}"
        self._seed = seed * 1_000_003 + number
        self._report = report
        self.asked: Asked | None = None

    async def play(self, count: int) -> None:
        kernel = build(clock=VirtualClock(), random=SeededRandom(self._seed))
        await kernel.start()
        try:
            app = App(kernel.handler, Authenticator("token"))
            drawn = Requests(Random(self._seed), kernel)
            await self._answered(app, Asked("POST", _CRDS, "", dict(_HEADERS), _json(CUSTOM)))
            for at in range(count):
                self.asked = asked = drawn.next()
                self._report.requests += 1
                error = await self._judged(app, asked)
                if error:
                    self._report.errors.append(f"{self._where}, request {at}: {error}: {asked}")
            self._check_store(kernel)
        finally:
            await kernel.stop()

    async def _judged(self, app: App, asked: Asked) -> str:
        """What is wrong with the answer, or ""."""
        memory, began = most_memory(), time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            code, message = await self._answered(app, asked)
        except Hang:
            return "takes too long"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        self._report.codes[code] += 1
        seconds = time.process_time() - began
        if seconds > self._report.slowest[0]:
            self._report.slowest = (seconds, f"{self._where}: {asked}"[:500])
        if code == 500 and _AS_KUBERNETES.search(" ".join(message.split())):
            self._report.as_kubernetes += 1
        elif code >= 500 and code not in _BY_DESIGN:
            return f"answered {code} {message}"
        grown = most_memory() - memory
        return f"takes {grown / 1e6:.0f} MB" if grown > BYTES else ""

    async def _answered(self, app: App, asked: Asked) -> tuple[int, str]:
        code, message, events = 0, b"", 0
        waiting: list[Json] = [{"type": "http.request", "body": asked.body, "more_body": False}]

        async def receive() -> Json:
            if waiting:
                return waiting.pop()
            await VirtualClock().sleep(120)  # then the client goes
            return {"type": "http.disconnect"}

        async def send(sent: Json) -> None:
            nonlocal code, message, events
            if sent["type"] == "http.response.start":
                code = sent["status"]
                assert all(len(value) < 8192 for _, value in sent["headers"]), "a header is too long"
                assert len(sent["headers"]) < 120, "too many headers"
            else:
                message = message or sent.get("body", b"")[:20_000]
                events += 1

        scope: Json = {
            "type": "http", "method": asked.method, "path": asked.path, "query_string": asked.query.encode(),
            "headers": [(name.encode(), value.encode(errors="replace")) for name, value in asked.headers.items()],
        }  # fmt: skip
        await app(scope, receive, send)
        return code, message.decode(errors="replace")

    def _check_store(self, kernel: Kernel) -> None:
        total = 0
        for entry in kernel.engine.served.all:
            for record in kernel.store.collection(entry.stored_as).sorted(None):
                total += len(record.body)
                if len(record.body) > OBJECT_BYTES:
                    what = f"{entry.resource.plural} {record.name} has {len(record.body):,} bytes"
                    self._report.errors.append(f"{self._where}: {what}")
        if total > STORE_BYTES:
            self._report.errors.append(f"{self._where}: {total:,} bytes are stored")


_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_HEADERS = {"host": "127.0.0.1", "authorization": "Bearer token", "content-type": "application/json"}


def _json(value: Any) -> bytes:
    import json

    return json.dumps(value).encode()


def fuzz(
    requests: int,
    seed: int,
    *,
    session: int = 0,
    stop_after: int = 50,
    progress: Callable[[Report], None] = lambda _report: None,
) -> Report:
    """Send that many requests, from that session of the seed on. `progress` is called after each session."""
    report = Report()
    before = signal.signal(signal.SIGPROF, _too_long)
    try:
        while report.requests < requests and len(report.errors) < stop_after:
            run(_Session(seed, session, report).play(min(PER_SESSION, requests - report.requests)))
            session += 1
            progress(report)
    finally:
        signal.signal(signal.SIGPROF, before)
    return report


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    raise Hang


@click.command()
@click.option("--requests", default=100_000, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--session", default=0, show_default=True, help="The first session, to repeat a fault.")
def main(requests: int, seed: int, session: int) -> None:
    """Send REQUESTS requests."""
    faulthandler.enable()
    logging.basicConfig(level=logging.ERROR)
    began = time.perf_counter()

    def progress(report: Report) -> None:
        if report.requests % _PROGRESS == 0:
            click.echo(f"{report.requests:,} requests, {len(report.errors)} faults")

    report = fuzz(requests, seed, session=session, progress=progress)
    seconds = time.perf_counter() - began
    click.echo(f"{report.requests:,} requests in {seconds:.0f} s: {dict(sorted(report.codes.items()))}")
    click.echo(f"of these {report.as_kubernetes:,} are refusals to which Kubernetes gives the code 500, too")
    click.echo(f"most memory {most_memory() / 1e6:.0f} MB; slowest {report.slowest[0]:.2f} s {report.slowest[1]}")
    for error in report.errors:
        click.echo(error, err=True)
    sys.exit(bool(report.errors))


if __name__ == "__main__":
    main()
