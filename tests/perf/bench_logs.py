"""What it costs to follow the log of a large gang: `vcbatch job logs -f` of a hundred pods that print ten thousand
lines a second together, as a process of its own against a small server in another.

Every line is counted, in its order; memory is looked at while the lines flow. A machine that can't print so fast (the
server is Python too) makes it last longer, and changes no other figure.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psutil
from aiohttp import web

from tests.support import kubeconfigs

Json = dict[str, Any]

_TICK: Final = 0.1
_TEXT: Final = "step {number:07d} loss 0.123456 lr 0.0003 tokens/s 123456 grad-norm 1.2345"
_JOB_UID: Final = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """`lost` lines that never came, or came twice or out of order; `rate` in lines a second, `cpu` of the command in
    seconds for each 1,000 lines; memory in bytes, at the end of the first third and how much more it was afterwards."""

    lines: int
    lost: int
    rate: float
    cpu: float
    memory: float
    growth: float


def follow(*, pods: int = 100, per_second: int = 10_000, seconds: int = 10) -> Following:
    """Follow so many pods for about so many seconds."""
    each = per_second * seconds // pods
    serving = subprocess.Popen(
        [sys.executable, "-m", "tests.perf.bench_logs", str(pods), str(per_second), str(each)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert serving.stdout is not None
        port = int(serving.stdout.readline())
        with tempfile.TemporaryDirectory() as folder:
            config = kubeconfigs.document(f"http://127.0.0.1:{port}", user={})
            kubeconfig = kubeconfigs.write(Path(folder, "kubeconfig"), config)
            return _followed(kubeconfig, pods=pods, each=each)
    finally:
        serving.communicate()  # its input ends, and so does it


def _followed(kubeconfig: Path, *, pods: int, each: int) -> Following:
    command = subprocess.Popen(
        [sys.executable, "-m", "vcbatch", "job", "logs", "-f", "train", "--kubeconfig", str(kubeconfig)],
        stdout=subprocess.PIPE,
        env={**os.environ, "NO_COLOR": "1"},
    )
    process = psutil.Process(command.pid)
    counted = _Count(pods * each)
    reading = threading.Thread(target=counted.read, args=(command.stdout,))
    began = time.perf_counter()
    reading.start()
    early = later = cpu = 0.0
    while reading.is_alive():
        reading.join(0.1)
        try:
            memory, times = process.memory_info().rss, process.cpu_times()
        except psutil.Error:
            break
        cpu = max(cpu, times.user + times.system)
        if counted.lines < counted.expected // 3:
            early = max(early, memory)
        else:
            later = max(later, memory)
    reading.join()
    if command.wait() != 0:
        raise AssertionError(f"vcbatch job logs ended with {command.returncode}")
    seconds = time.perf_counter() - began
    wrong = counted.wrong + sum(each - counted.next[f"worker/{index}"] for index in range(pods))
    return Following(
        lines=counted.lines,
        lost=wrong,
        rate=counted.lines / seconds,
        cpu=cpu / max(counted.lines, 1) * 1000,
        memory=early,
        growth=max(later - early, 0.0),
    )


class _Count:
    """Reads the output to its end, and holds each pod's lines against their numbers."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.lines = 0
        self.wrong = 0
        self.next: Counter[str] = Counter()

    def read(self, stream: Any) -> None:
        for line in stream:
            place, _, text = line.decode().partition("│ step ")
            place = place.strip()
            self.lines += 1
            if text[:7] == f"{self.next[place]:07d}":
                self.next[place] += 1
            else:
                self.wrong += 1


# -- the server -----------------------------------------------------------------------------------------------------


class _Gang:
    """A job whose pods print `each` lines at so many a second, and then succeed."""

    def __init__(self, pods: int, per_second: int, each: int) -> None:
        self._pods = pods
        self._batch = max(int(per_second * _TICK / pods), 1)
        self._each = each
        self._logs: list[list[bytes]] = [[] for _ in range(pods)]
        self._grown = asyncio.Event()
        self._over = asyncio.Event()
        self._printing: asyncio.Task[None] | None = None

    def routes(self) -> list[web.RouteDef]:
        jobs, pods = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs", "/api/v1/namespaces/default/pods"
        return [
            web.get(jobs, lambda request: self._collection(request, lambda: [self._job()])),
            web.get(f"{jobs}/train", lambda _: _answer(self._job())),
            web.get(pods, lambda request: self._collection(request, self._all_pods)),
            web.get(f"{pods}/{{name}}", lambda request: _answer(self._pod(_index(request)))),
            web.get(f"{pods}/{{name}}/log", self._log),
        ]

    async def _print(self) -> None:
        number = 0
        while number < self._each:
            began = time.monotonic()
            stamp = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "000Z")
            last = min(number + self._batch, self._each)
            lines = [f"{stamp} {_TEXT.format(number=one)}\n".encode() for one in range(number, last)]
            for log in self._logs:
                log.extend(lines)
            number = last
            self._report()
            await asyncio.sleep(max(_TICK - (time.monotonic() - began), 0.0))
        self._over.set()
        self._report()

    def _report(self) -> None:
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()

    async def _log(self, request: web.Request) -> web.StreamResponse:
        if self._printing is None:
            self._printing = asyncio.create_task(self._print())
        log, since = self._logs[_index(request)], request.query.get("sinceTime", "")[:19].encode()
        at = next((place for place, line in enumerate(log) if line[:19] >= since), len(log)) if since else 0
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            grown, over = self._grown, self._over.is_set()
            if at < len(log):
                pieces, at = log[at:], len(log)
                await response.write(b"".join(pieces))
            elif over or "follow" not in request.query:
                break
            else:
                await grown.wait()
        await response.write_eof()
        return response

    async def _collection(self, request: web.Request, items: Any) -> web.StreamResponse:
        if "watch" not in request.query:
            return await _answer({"metadata": {"resourceVersion": "1"}, "items": items()})
        response = web.StreamResponse()
        await response.prepare(request)
        await self._over.wait()
        for item in items():
            await response.write(json.dumps({"type": "MODIFIED", "object": item}).encode() + b"\n")
        await asyncio.sleep(60)
        return response

    def _all_pods(self) -> list[Json]:
        return [self._pod(index) for index in range(self._pods)]

    def _pod(self, index: int) -> Json:
        over = self._over.is_set()
        state: Json = {"terminated": {"exitCode": 0}} if over else {"running": {}}
        owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": _JOB_UID}
        return {
            "metadata": {
                "name": f"train-worker-{index}",
                "namespace": "default",
                "uid": f"00000000-0000-4000-8001-{index:012d}",
                "resourceVersion": "2" if over else "1",
                "labels": {
                    "volcano.sh/job-name": "train",
                    "volcano.sh/task-spec": "worker",
                    "volcano.sh/task-index": str(index),
                },
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": {"containers": [{"name": "main"}]},
            "status": {
                "phase": "Succeeded" if over else "Running",
                "containerStatuses": [{"name": "main", "restartCount": 0, "state": state}],
            },
        }

    def _job(self) -> Json:
        over = self._over.is_set()
        template = {"spec": {"containers": [{"name": "main"}]}}
        return {
            "metadata": {
                "name": "train", "namespace": "default", "uid": _JOB_UID, "resourceVersion": "2" if over else "1",
            },
            "spec": {"tasks": [{"name": "worker", "replicas": self._pods, "template": template}]},
            "status": {"state": {"phase": "Completed" if over else "Running"}},
        }  # fmt: skip


def _index(request: web.Request) -> int:
    return int(request.match_info["name"].rpartition("-")[2])


async def _answer(value: Json) -> web.Response:
    return web.json_response(value)


async def _serve(gang: _Gang) -> None:
    app = web.Application()
    app.add_routes(gang.routes())
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sys.stdout.write(f"{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(_serve(_Gang(*map(int, sys.argv[1:4]))))
