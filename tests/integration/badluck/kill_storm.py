"""`kill -9` of `vcbatch up` again and again under a load of gang jobs, and what must hold at the end.

The whole server process is killed at a moment drawn from a seed: while it starts, or while it works. Each kill is
followed by a start on the same state directory. Meanwhile a client creates jobs, and creates, updates and deletes
ConfigMaps, and keeps what the server acknowledged. At the end:

* everything acknowledged is there, and what was deleted is not;
* every job is Completed, in its first attempt;
* every pod of every job ran exactly once: each appends its name and UID to a file outside the state directory;
* after `vcbatch down` no process is left.

As a program: `python -m tests.integration.badluck.kill_storm --kills 200 --jobs 500 --seed 1`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.integration.kubelet.world import processes_with
from tests.integration.up.conftest import left_over
from tests.support.up import vcbatch
from vcbatch.api.resources import CONFIGMAPS, JOBS, PODS
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.client.http import ClientLimits, HttpApi
from vcbatch.runtime.client.kubeconfig import KubeconfigError, load
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

Json = dict[str, Any]

_NAMESPACE = "default"
_IN_FLIGHT = 25
"""How many jobs are unfinished at a time, at most: the machine has few processors."""
_EARLY_KILLS = 0.3
"""The share of kills that hit the server while it starts."""
_STARTING_SECONDS = 2.5
_WORKING_SECONDS = 1.5
_READY_SECONDS = 120.0
_SETTLE_SECONDS = 900.0


@dataclass
class Report:
    """What was done, and what was found to be wrong."""

    kills: int = 0
    early: int = 0
    jobs: int = 0
    pods: int = 0
    writes: int = 0
    unanswered: int = 0
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        said = (
            f"{self.kills} kills ({self.early} while starting), {self.jobs} jobs, {self.pods} pods, "
            f"{self.writes} acknowledged writes, {self.unanswered} without an answer, {self.seconds:.0f} s"
        )
        return "\n".join([said, *(f"FAULT: {error}" for error in self.errors)] if self.errors else [said, "no fault"])


class Server:
    """`vcbatch up` in the foreground, as a process of ours."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self._output = folder / "output"
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    def start(self) -> None:
        command = [sys.executable, "-m", "vcbatch", "up", "--port", str(self._port), "--state-dir", str(self.state)]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    async def ready(self) -> None:
        """Raises `AssertionError` where it ends instead."""
        async with asyncio.timeout(_READY_SECONDS):
            while b"vcbatch is ready" not in self._output.read_bytes():
                assert self.process.poll() is None, f"the server ended:\n{self._output.read_text()}"
                await asyncio.sleep(0.02)
        self._port = int(load(self.state / "kubeconfig").server.rpartition(":")[2])

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Storm:
    """One run. `folder` is empty, and everything of the run is in it."""

    def __init__(self, folder: Path, *, kills: int, jobs: int, seed: int, minutes: float = float("inf")) -> None:
        """No more than `kills`, and none after so many minutes."""
        self._kills = kills
        self._minutes = minutes
        self._random = random.Random(seed)
        self._client_random = random.Random(seed + 1)
        self._server = Server(folder)
        self._runs = folder / "runs"
        self._marker = f"0.1{os.getpid()}{seed}"
        self._wanted = {f"gang-{number:04}": self._client_random.randint(2, 4) for number in range(jobs)}
        self._created: set[str] = set()
        self._maps: dict[str, int | None] = {}
        """The acknowledged value of each ConfigMap; None where its deletion was acknowledged."""
        self._unsure: dict[str, set[int | None]] = {}
        """What else it may be: writes without an answer since."""
        self._up = asyncio.Event()
        self._api: HttpApi | None = None
        self.report = Report()

    async def run(self) -> Report:
        began = time.monotonic()
        self._runs.mkdir()
        clients = [asyncio.create_task(self._submit()), asyncio.create_task(self._edit())]
        try:
            await self._kill_again_and_again(clients)
            await self._settle(clients[0])
            _raise_what_failed(clients)
            clients[1].cancel()
            await asyncio.gather(*clients, return_exceptions=True)
            await self._check_objects()
            self._check_runs()
        finally:
            for client in clients:
                client.cancel()
            await asyncio.gather(*clients, return_exceptions=True)
            await self._close()
            await self._down()
            self.report.seconds = time.monotonic() - began
        self._check_processes()
        return self.report

    # The server ------------------------------------------------------------------------------------------------------

    async def _kill_again_and_again(self, clients: list[asyncio.Task[None]]) -> None:
        self._server.start()
        await self._server.ready()
        self._open()
        until = time.monotonic() + self._minutes * 60
        while self.report.kills < self._kills and time.monotonic() < until:
            _raise_what_failed(clients)
            await asyncio.sleep(self._random.uniform(0, _WORKING_SECONDS))
            await self._kill()
            self._server.start()
            while self._random.random() < _EARLY_KILLS and self.report.kills < self._kills:
                await asyncio.sleep(self._random.uniform(0, _STARTING_SECONDS))
                await self._kill()
                self.report.early += 1
                self._server.start()
            await self._server.ready()
            await self._check_maps()
            self._open()

    async def _kill(self) -> None:
        self._server.kill()
        self.report.kills += 1
        await self._close()
        if self.report.kills % 10 == 0:
            print(f"{self.report.kills} kills, {len(self._created)} jobs created", flush=True)  # noqa: T201

    def _open(self) -> None:
        self._api = self._connect()
        self._up.set()

    async def _close(self) -> None:
        self._up.clear()
        api, self._api = self._api, None
        if api is not None:
            await api.close()

    def _connect(self) -> HttpApi:
        limits = ClientLimits(retries=0)
        connection = load(self._server.state / "kubeconfig")
        return HttpApi(connection, clock=SystemClock(), random=SystemRandom(), limits=limits)

    async def _down(self) -> None:
        await asyncio.to_thread(vcbatch, "down", "--state-dir", str(self._server.state))
        self._server.process.wait()

    # The load --------------------------------------------------------------------------------------------------------

    async def _ask(self, work: Callable[[HttpApi], Awaitable[Any]]) -> Any:
        """The answer, or the refusal as `ApiError`; None where there was no answer."""
        await self._up.wait()
        api = self._api
        if api is None:
            return None
        try:
            return await work(api)
        except ApiError as error:
            if error.code:
                raise
        except (OSError, RuntimeError, KubeconfigError):
            pass  # closed under it
        self.report.unanswered += 1
        await asyncio.sleep(0.05)
        return None

    async def _submit(self) -> None:
        """Create all jobs, each as soon as few enough are unfinished."""
        for name, size in self._wanted.items():
            while await self._unfinished() >= _IN_FLIGHT:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
            while name not in self._created:
                try:
                    answer = await self._ask(lambda api: api.create(JOBS, self._job(name, size), namespace=_NAMESPACE))  # noqa: B023
                except ApiError as error:
                    if not error.already_exists:
                        raise
                    answer = True  # the one before was done, and its answer lost
                if answer is not None:
                    self._created.add(name)
                    self.report.writes += 1

    async def _unfinished(self) -> int:
        while (listed := await self._ask(lambda api: api.list(JOBS, namespace=_NAMESPACE))) is None:
            pass
        return sum(_phase(job) != "Completed" for job in listed.items)

    def _job(self, name: str, size: int) -> Json:
        script = f'echo "$POD $UID_OF_POD" >> {self._runs}/{name}; exec sleep {self._marker}'
        fields = {"POD": "metadata.name", "UID_OF_POD": "metadata.uid"}
        container = {
            "name": "main",
            "image": "any",
            "command": ["sh", "-c", script],
            "env": [{"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}} for key, path in fields.items()],
            "resources": {"requests": {"cpu": "10m"}},
        }
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        return {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.kind,
            "metadata": {"name": name},
            "spec": {"minAvailable": size, "tasks": [{"name": "w", "replicas": size, "template": template}]},
        }

    async def _edit(self) -> None:
        """Create, update and delete ConfigMaps, as fast as the server answers."""
        for number in range(1 << 30):
            name = f"map-{self._client_random.randrange(40)}"
            await self._edit_one(name, number)
            await asyncio.sleep(0.01)

    async def _edit_one(self, name: str, number: int) -> None:
        await self._up.wait()  # what is known of it may change until then
        known = self._maps.get(name)
        wanted: int | None = None if known is not None and self._client_random.random() < 0.3 else number
        self._unsure.setdefault(name, set()).add(wanted)

        async def work(api: HttpApi) -> bool:
            body = {"data": {"value": str(wanted)}}
            if wanted is None:
                await api.delete(CONFIGMAPS, name, namespace=_NAMESPACE)
            elif known is None:
                await api.create(CONFIGMAPS, {"metadata": {"name": name}, **body}, namespace=_NAMESPACE)
            else:
                await api.patch(CONFIGMAPS, name, body, namespace=_NAMESPACE)
            return True

        try:
            answer = await self._ask(work)
        except ApiError as error:
            if not (error.already_exists or error.not_found):
                raise
            await self._learn(name)
            return
        if answer is not None:
            self._maps[name] = wanted
            self._unsure[name] = set()
            self.report.writes += 1

    def _possible(self, name: str, value: int | None) -> bool:
        return value == self._maps.get(name) or value in self._unsure.get(name, ())

    async def _learn(self, name: str) -> None:
        """A write before had no answer: see what became of it."""
        try:
            found = await self._ask(lambda api: api.get(CONFIGMAPS, name, namespace=_NAMESPACE))
        except ApiError as error:
            if not error.not_found:
                raise
            self._settle_map(name, None)
        else:
            if found is not None:
                self._settle_map(name, int(found["data"]["value"]))

    def _settle_map(self, name: str, value: int | None) -> None:
        if not self._possible(name, value):
            self._error(f"ConfigMap {name} is {value}, acknowledged was {self._maps.get(name)}")
        self._maps[name] = value
        self._unsure[name] = set()

    # What must hold --------------------------------------------------------------------------------------------------

    def _error(self, text: str) -> None:
        self.report.errors.append(f"after {self.report.kills} kills: {text}")

    async def _check_maps(self) -> None:
        async with self._connect() as api:
            listed = await api.list(CONFIGMAPS, namespace=_NAMESPACE)
        found = {
            item["metadata"]["name"]: int(item["data"]["value"]) for item in listed.items if "value" in item["data"]
        }
        for name in self._maps.keys() | self._unsure.keys():
            self._settle_map(name, found.get(name))

    async def _settle(self, submitting: asyncio.Task[None]) -> None:
        try:
            async with asyncio.timeout(_SETTLE_SECONDS):
                await submitting
                while await self._unfinished():  # noqa: ASYNC110
                    await asyncio.sleep(0.5)
        except TimeoutError:
            self._error(f"jobs are still unfinished {_SETTLE_SECONDS:.0f} s after the last kill")

    async def _check_objects(self) -> None:
        async with self._connect() as api:
            jobs = {job["metadata"]["name"]: job for job in (await api.list(JOBS, namespace=_NAMESPACE)).items}
            pods = Counter(
                pod["metadata"]["labels"]["volcano.sh/job-name"]
                for pod in (await api.list(PODS, namespace=_NAMESPACE)).items
                if pod["status"]["phase"] == "Succeeded"
            )
        await self._check_maps()
        self.report.jobs = len(jobs)
        for name in self._created - jobs.keys():
            self._error(f"job {name} was acknowledged, and is gone")
        for name, job in jobs.items():
            status = job["status"]
            if _phase(job) != "Completed":
                self._error(f"job {name} is {status.get('state')}")
            if status.get("retryCount"):
                self._error(f"job {name} needed {status['retryCount']} restarts: {status.get('state')}")
            if pods[name] != self._wanted[name]:
                self._error(f"job {name} has {pods[name]} succeeded pods of {self._wanted[name]}")

    def _check_runs(self) -> None:
        for name, size in self._wanted.items():
            path = self._runs / name
            lines = path.read_text().splitlines() if path.exists() else []
            self.report.pods += len(lines)
            by_pod = Counter(line.split()[0] for line in lines)
            again = {pod: count for pod, count in by_pod.items() if count > 1}
            if again:
                self._error(f"pods of job {name} ran more than once: {again}, {lines}")
            if len(by_pod) != size:
                self._error(f"{len(by_pod)} of {size} pods of job {name} ran")

    def _check_processes(self) -> None:
        for found in left_over(self._server.state):
            self._error(f"left over: {found}")
        if pids := processes_with(f"sleep {self._marker}"):
            self._error(f"left over: containers {pids}")


def _raise_what_failed(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done():
            task.result()


def _phase(job: Json) -> str:
    return ((job.get("status") or {}).get("state") or {}).get("phase", "")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="end the killing after so long")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vcbatch-kills-") as folder:
        storm = Storm(
            Path(folder),
            kills=arguments.kills,
            jobs=arguments.jobs,
            seed=arguments.seed,
            minutes=arguments.minutes,
        )
        report = asyncio.run(storm.run())
    print(f"seed {arguments.seed}: {report}")  # noqa: T201
    return 1 if report.errors else 0


if __name__ == "__main__":
    sys.exit(main())
