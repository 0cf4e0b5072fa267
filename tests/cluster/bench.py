"""`make bench-cluster`: how fast gangs start on a real control plane, and what that costs each program.

Every profile runs on a control plane of its own with simulated nodes, and with the webhooks that are shipped. As many
pods are created and bound on another fresh one by a client that decides nothing, which is the least that this machine
needs for them: times are worth something as ratios to that, CPU seconds and requests as they are. A machine whose speed
wanders is measured in rounds, each with a floor of its own, of which the one in the middle counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import platform
import re
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from tests.cluster import loading, usage
from tests.cluster.binaries.build import build
from tests.cluster.binaries.programs import CONTROL_PLANE, KWOK_RESUMING
from tests.cluster.components import CONTROLLERS, SCHEDULER, WEBHOOKS, Components
from tests.cluster.controlplane import ControlPlane, Options
from tests.cluster.gangs import gang
from tests.cluster.processes import Program
from tests.cluster.requests import counted, writes
from vcbatch.api.pod import Pod, PodPhase
from vcbatch.api.resources import JOBS, PODS
from vcbatch.runtime.caches.cache import Cache, Change
from vcbatch.runtime.caches.watch import Reflector
from vcbatch.runtime.client.http import HttpApi
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

console = Console(highlight=False, width=160)
PROFILES = ("500x20", "20x500", "1x10000", "10000x1")
_COMMAND = "sleep 36000"
RELEASED, RESUMING = "released", "resuming"
AIMS = {"500x20": 1.4, "20x500": 1.4, "1x10000": 1.4, "10000x1": 4.5}
"""At most so many times the floor's time to the last Running pod, with admission and kwok as released."""
WEBHOOKS_SHARE = 0.1
"""At most so much CPU of the webhooks for each second of the controllers'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is measured on: how many `nodes`, with `admission` or without, and how kwok goes on with a watch that the
    server ended (`resuming`) or begins anew."""

    nodes: int = 1000
    timeout: float = 900.0
    admission: bool = True
    resuming: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """`jobs` gangs of `pods` each."""

    jobs: int
    pods: int

    @classmethod
    def parse(cls, text: str) -> Profile:
        match = re.fullmatch(r"(\d+)x(\d+)", text)
        if match is None:
            raise argparse.ArgumentTypeError(f"{text!r}: a profile is JOBSxPODS, e.g. 20x500")
        return cls(jobs=int(match[1]), pods=int(match[2]))

    def __str__(self) -> str:
        return f"{self.jobs}x{self.pods}"

    @property
    def total(self) -> int:
        return self.jobs * self.pods


@dataclass(slots=True, kw_only=True)
class Measured:
    """Seconds from the first submission; CPU seconds and peak MiB by program; writes by verb and resource, `refused`
    those that the server didn't accept."""

    submitted: float = 0.0
    bound: float = 0.0
    running: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict[str, float])
    peak: dict[str, float] = field(default_factory=dict[str, float])
    writes: dict[str, int] = field(default_factory=dict[str, int])
    refused: dict[str, int] = field(default_factory=dict[str, int])


class Progress:
    """When the last of so many pods was bound and ran, as a watch told."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._bound: set[str] = set()
        self._running: set[str] = set()
        self.bound_at = self.running_at = 0.0
        self.done = asyncio.Event()

    def __str__(self) -> str:
        return f"of {self._total:,} pods {len(self._bound):,} were bound, and {len(self._running):,} ran"

    def reconcile(self, change: Change[Pod]) -> None:
        pod = change.current
        if pod.spec.node_name:
            self._bound.add(pod.metadata.uid)
        if pod.status.phase == PodPhase.RUNNING:
            self._running.add(pod.metadata.uid)
        if len(self._bound) == self._total and not self.bound_at:
            self.bound_at = time.monotonic()
        if len(self._running) == self._total and not self.running_at:
            self.running_at = time.monotonic()
            self.done.set()


async def timed(api: HttpApi, total: int, submit: Callable[[], Awaitable[None]], *, timeout: float) -> Measured:
    """Submit, and wait until that many pods run."""
    progress, pods = Progress(total), Cache(model=Pod)
    pods.listen(progress.reconcile)
    reflector = Reflector(api, PODS, pods, clock=SystemClock(), random=SystemRandom())
    following = asyncio.ensure_future(reflector.run())
    try:
        await reflector.synced.wait()
        began = time.monotonic()
        await submit()
        submitted = time.monotonic()
        await asyncio.wait_for(progress.done.wait(), timeout)
    except TimeoutError:
        raise SystemExit(f"after {timeout:.0f} s, {progress}") from None
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    return Measured(
        submitted=submitted - began, bound=progress.bound_at - began, running=progress.running_at - began
    )  # fmt: skip


class Costs:
    """What a control plane and its programs have cost since this was made."""

    def __init__(self, plane: ControlPlane, programs: Mapping[str, Program]) -> None:
        self._plane, self._programs = plane, programs
        self._requests, self._before = counted(plane), usage.of_all(programs)

    def charge(self, to: Measured) -> Measured:
        after = usage.of_all(self._programs)
        to.cpu = {name: after[name].cpu - self._before[name].cpu for name in after}
        to.peak = {name: after[name].peak for name in after}
        requests = counted(self._plane) - self._requests
        refused = Counter({request: n for request, n in requests.items() if request.code >= "400"})
        to.writes = dict(sorted(writes(requests - refused).items()))
        to.refused = dict(sorted(writes(refused).items()))
        return to


@contextmanager
def cluster(nodes: int, *, resuming: bool = True) -> Iterator[tuple[ControlPlane, list[str]]]:
    """A fresh control plane with nodes."""
    options = Options(scheduler=False, unlimited=True, starts_only=True, resuming=resuming)
    binaries = build(*CONTROL_PLANE, KWOK_RESUMING)
    with (
        tempfile.TemporaryDirectory(prefix="vcbatch-bench-") as folder,
        ControlPlane(Path(folder), binaries, options) as plane,
    ):
        plane.install_crds()

        async def fill() -> list[str]:
            async with loading.administrator(plane) as api:
                return await loading.add_nodes(api, nodes)

        yield plane, asyncio.run(fill())


def vcbatch(profile: Profile, setting: Setting) -> Measured:
    async def run(plane: ControlPlane) -> Measured:
        async with loading.administrator(plane) as api:

            async def submit() -> None:
                jobs = (gang(f"gang-{number}", profile.pods, command=_COMMAND) for number in range(profile.jobs))
                await loading.side_by_side(lambda job: api.create(JOBS, job, namespace="default"), jobs)

            return await timed(api, profile.total, submit, timeout=setting.timeout)

    with cluster(setting.nodes, resuming=setting.resuming) as (plane, _), Components(plane) as components:
        for part in (CONTROLLERS, SCHEDULER):
            components.start(part).wait_ready()
        if setting.admission:
            components.install_admission(components.start(WEBHOOKS).wait_ready())
        programs = plane.programs | {c.program.name: c.program for c in components.running}
        costs = Costs(plane, programs)
        measured = asyncio.run(run(plane))
        time.sleep(6)  # counts that are written a while after the last change belong to it
        return costs.charge(measured)


def floor(total: int, setting: Setting) -> Measured:
    """So many of the same pods, created and bound by a client that knows beforehand where each goes."""
    template = gang("gang", total, command=_COMMAND)["spec"]["tasks"][0]["template"]["spec"]

    async def run(plane: ControlPlane, names: list[str]) -> Measured:
        async with loading.administrator(plane) as api:

            async def one(number: int) -> None:
                body = {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": f"pod-{number}", "namespace": "default"},
                    "spec": {**template, "schedulerName": "nobody"},
                }
                made = await api.create(PODS, body, namespace="default")
                await api.bind(
                    namespace="default",
                    name=f"pod-{number}",
                    uid=made["metadata"]["uid"],
                    node=names[number % len(names)],
                )

            async def submit() -> None:
                await loading.side_by_side(one, range(total))

            return await timed(api, total, submit, timeout=setting.timeout)

    with cluster(setting.nodes, resuming=setting.resuming) as (plane, names):
        costs = Costs(plane, plane.programs)
        return costs.charge(asyncio.run(run(plane, names)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One run of a profile, and the floor of as many pods that was measured in the same round."""

    ours: Measured
    least: Measured | None

    @property
    def ratio(self) -> float:
        """Of the times until the last pod ran."""
        return self.ours.running / self.least.running if self.least is not None else math.nan

    @property
    def share(self) -> float:
        """CPU seconds of the webhooks for each of the controllers'."""
        cpu = self.ours.cpu
        return cpu.get(f"vcbatch-{WEBHOOKS}", math.nan) / (cpu.get(f"vcbatch-{CONTROLLERS}") or math.nan)


def middle(rounds: Sequence[Round]) -> Round:
    """The round in the middle by its ratio, or by its time where no floor was measured."""
    by_ratio = sorted(rounds, key=lambda one: one.ours.running if one.least is None else one.ratio)
    return by_ratio[(len(by_ratio) - 1) // 2]


def report(results: Mapping[str, Sequence[Round]]) -> None:
    found = {name: middle(rounds) for name, rounds in results.items()}
    console.print(_times(found, results))
    console.print(_costs(found))
    console.print(_requests(found))


def _table(title: str, first: str, *columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    table.add_column(first, justify="right")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _times(found: Mapping[str, Round], results: Mapping[str, Sequence[Round]]) -> Table:
    columns = ["submitted", "last bound", "last Running", "floor: bound", "Running", "bound / floor"]
    columns += ["Running / floor", "aim", "webhooks / controllers", "aim"]
    several = any(len(rounds) > 1 for rounds in results.values())
    table = _table("submit to ...", "jobs x pods", *columns, *(["of all rounds"] if several else []))
    for name, one in found.items():
        ours, least = one.ours, one.least or Measured(bound=math.nan, running=math.nan)
        all_of_them = sorted(one.ratio for one in results[name])
        table.add_row(
            name, f"{ours.submitted:.1f} s", f"{ours.bound:.1f} s", f"{ours.running:.1f} s", f"{least.bound:.1f} s",
            f"{least.running:.1f} s", f"{ours.bound / least.bound:.2f}", f"{one.ratio:.2f}",
            f"{AIMS[name]:.1f}" if name in AIMS else "", "" if math.isnan(one.share) else f"{one.share:.3f}",
            f"{WEBHOOKS_SHARE:.1f}",
            *([" ".join(f"{ratio:.2f}" for ratio in all_of_them)] if several else []),
        )  # fmt: skip
    return table


def _costs(found: Mapping[str, Round]) -> Table:
    programs = list(dict.fromkeys(name for one in found.values() for name in one.ours.cpu))
    named = (program.removeprefix("kube-").removeprefix("vcbatch-") for program in programs)
    table = _table("CPU s (peak MiB; floor's CPU s)", "jobs x pods", *named)
    for name, one in found.items():
        cells = []
        for program in programs:
            compared = f"; {one.least.cpu[program]:.1f}" if one.least is not None and program in one.least.cpu else ""
            cells.append(f"{one.ours.cpu.get(program, 0):.1f} ({one.ours.peak.get(program, 0):.0f}{compared})")
        table.add_row(name, *cells)
    return table


def _requests(found: Mapping[str, Round]) -> Table:
    table = _table("writes", "", *found)
    table.columns[0].justify = "left"
    rows: dict[str, dict[str, int]] = {}
    for name, one in found.items():
        for kind, number in one.ours.writes.items():
            rows.setdefault(kind, {})[name] = number
        for kind, number in one.ours.refused.items():
            rows.setdefault(f"{kind}, refused", {})[name] = number
    for kind, numbers in sorted(rows.items(), key=lambda row: -sum(row[1].values())):
        table.add_row(kind, *(f"{numbers.get(name, 0):,}" for name in found))
    each = (sum(one.ours.writes.values()) / Profile.parse(name).total for name, one in found.items())
    table.add_row("each pod, without refused ones", *(f"{number:.2f}" for number in each))
    return table


def whole_number(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: at least 1")
    return number


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--profile", type=Profile.parse, action="append", metavar="JOBSxPODS",
        help=f"may be repeated [default: {' '.join(PROFILES)}]",
    )  # fmt: skip
    options.add_argument("--nodes", type=int, default=1000, help="nodes of 32 CPUs")
    options.add_argument("--timeout", type=float, default=900.0, help="seconds that a profile may take")
    options.add_argument(
        "--rounds", type=whole_number, default=1, metavar="N",
        help="measure everything N times, the floor with it, and report of each profile the round in the middle",
    )  # fmt: skip
    options.add_argument("--without-admission", action="store_true", help="install no webhooks")
    options.add_argument(
        "--kwok", choices=(RELEASED, RESUMING), default=RELEASED,
        help=f"what it does when the server ends a watch: as {RELEASED}, begin anew, or go on where it was",
    )  # fmt: skip
    options.add_argument("--without-floor", action="store_true", help="don't measure the bare client")
    options.add_argument("--json", type=Path, metavar="FILE", help="write everything measured there as well")
    given = options.parse_args()
    cores = len(os.sched_getaffinity(0))
    memory = psutil.virtual_memory().total / 2**30
    setting = Setting(
        nodes=given.nodes,
        timeout=given.timeout,
        admission=not given.without_admission,
        resuming=given.kwok == RESUMING,
    )
    console.print(
        f"{platform.system()} {platform.machine()}, {cores} cores, {memory:.0f} GiB, Python {platform.python_version()}"
        f"; {given.nodes:,} nodes of 32 CPUs; {'webhooks as shipped' if setting.admission else 'no admission'}; kwok "
        f"{given.kwok}; load average before: {os.getloadavg()[0]:.1f}"
    )
    profiles = given.profile or [Profile.parse(text) for text in PROFILES]
    results: dict[str, list[Round]] = {str(profile): [] for profile in profiles}
    for number in range(given.rounds):
        floors: dict[int, Measured] = {}
        for profile in profiles:
            ours = vcbatch(profile, setting)
            if not given.without_floor and profile.total not in floors:
                floors[profile.total] = floor(profile.total, setting)
            one = Round(ours=ours, least=floors.get(profile.total))
            results[str(profile)].append(one)
            which = f"round {number + 1}, " if given.rounds > 1 else ""
            beside = f", {one.ratio:.2f} times the floor" if one.least is not None else ""
            console.print(f"{which}{profile}: all of {profile.total:,} pods ran after {ours.running:.1f} s{beside}")
    report(results)
    if given.json is not None:
        kept = {
            name: [
                {"vcbatch": asdict(one.ours), "floor": None if one.least is None else asdict(one.least)}
                for one in rounds
            ]
            for name, rounds in results.items()
        }
        given.json.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
