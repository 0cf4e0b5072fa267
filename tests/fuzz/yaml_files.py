"""`make fuzz-yaml`: `lint`, `apply`, `simulate` and `config` on mutated YAML files.

Good files (the examples, worlds, policies and single objects of each kind) are mutated at random from a seed: as
values, as text, and as YAML with its own traps. Each is given to a command in this process. What counts as a failure:
an exception that `main` would show as a traceback, an internal error, a hang (more CPU time than `SECONDS`), an exit
code other than the documented ones, and an error in a file that the user is told to try again. It is kept in a file.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any
from unittest import mock

import click
import yaml
from click.testing import CliRunner

from tests.fuzz.mutations import ODD
from vcbatch.api.yaml_reader import documents
from vcbatch.cli.base.output import CliError
from vcbatch.cli.local.admission import admission_services, ensure_webhooks
from vcbatch.cli.local.definitions import ensure_definitions
from vcbatch.cli.main import cli
from vcbatch.local.apiserver.server import EmbeddedServer
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

ROOT = Path(__file__).parents[2]
COMMANDS = ("lint", "apply", "simulate", "config")
SECONDS = 20.0
"""Of CPU time for one command."""
_CODES = {
    "lint": {0, 1, 2},
    "apply": {0, 1, 2},
    "delete": {0, 1, 2},
    "simulate": {0, 1, 2},
    "config": {0, 1, 2},
}  # fmt: skip
_TRANSIENT = ("try again", "in a minute", "internal error", "internal fault", "traceback")
_AT = "2026-06-01T00:00:00Z"

_KINDS = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: fuzz-queue}
spec: {weight: 2, reclaimable: true, capability: {cpu: 4, memory: 8Gi}, guarantee: {resource: {cpu: 1}}, parent: root}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: fuzz-group}
spec: {minMember: 2, queue: default, minResources: {cpu: 2}, priorityClassName: ''}
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: fuzz-template}
spec:
  minAvailable: 1
  tasks: [{name: t, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}]
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: fuzz-flow}
spec: {jobRetainPolicy: retain, flows: [{name: fuzz-template}, {name: b, dependsOn: {targets: [fuzz-template]}}]}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: fuzz-hyper}
spec: {tier: 1, members: [{type: Node, selector: {exactMatch: {name: node-1}}}]}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {name: fuzz-cron}
spec:
  schedule: '*/5 * * * *'
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      minAvailable: 1
      tasks: [{name: t, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fuzz-map, labels: {a: b}}
data: {key: value}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: fuzz-class}
value: 7
---
apiVersion: v1
kind: List
items: [{apiVersion: v1, kind: Namespace, metadata: {name: fuzz-space, annotations: {x: y}}}]
"""

_TRAPS = (
    "[" * 3000, "{a: " * 3000, "- " * 500, "? " * 500, "&a [*a]", "&x {y: *x}", "*nobody", "<<: 1", "<<: [1]",
    "!!binary '%'", "!!set {a, b}", "!!python/name:os.system", ".nan", "-.inf", "null: 1", "~: []", "1: []", "1.5: x",
    "? [a]\n: b", "on: off", "y: n", "2026-01-01: 2026-13-45", "1e400", "0x" + "F" * 99, "9" * 5000, "\t", "\x00",
    "\ufeff", "!!int x",
    "\u2028", "\x85", "%YAML 1.3\n---\n", "---\n---\n...\n", "'", '"', "|\n", ">-\n", "@", "`", "{", "]", ": ", "# x",
    "a: &a [1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c]\n",
)  # fmt: skip
_KEYS: tuple[Any, ...] = (
    None, 1, 1.5, True, "", "a.b/c", "spec", "metadata", "name", "kind", "apiVersion", "items", "status", "\u2603",
    "__class__", "[0]", "a]b[",
)  # fmt: skip
_IDENTITIES = (
    "Job", "job", "Jbo", "Queue", "Queues", "List", "JobList", "PodGroup", "Deployment", "v1", "apps/v1", "/", "v1/",
    "batch.volcano.sh/v1alpha1", "batch.volcano.sh/v1", "batch.volcno.sh/v1alpha1", "a/b/c", "batch/v1",
)  # fmt: skip


def manifests() -> list[str]:
    return [*(file.read_text() for file in sorted((ROOT / "examples").glob("*.yaml"))), _KINDS]


def worlds() -> list[str]:
    folder = ROOT / "examples" / "simulation"
    return [
        (folder / "cluster.yaml").read_text(),
        (folder / "another-node.yaml").read_text(),
        "---\n".join([(folder / "cluster.yaml").read_text(), *manifests()]),
    ]


def policies() -> list[str]:
    from vcbatch.scheduler import default_policy
    from vcbatch.scheduler.policy.text import effective

    return [(ROOT / "examples" / "simulation" / "policy.yaml").read_text(), effective(default_policy())]


# -- mutations -------------------------------------------------------------------------------------------------------


def mutated(random: Random, text: str, others: Sequence[str]) -> str:
    """The text of a file that was good."""
    if random.random() < 0.75:
        values = [copy.deepcopy(one.value) for one in documents(text)]
        for _ in range(random.choice((1, 1, 1, 2, 2, 3, 6))):
            _change(random, values, others)
        try:
            text = _dumped(values)
        except (yaml.YAMLError, RecursionError, ValueError):
            return text
    if random.random() < 0.3:
        text = _spoiled(random, text)
    return text


def _dumped(values: list[Any]) -> str:
    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return False

    return "---\n".join(yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True) for value in values)


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting, seen = [value], set[int]()
    while waiting and len(found) < 3000:
        at = waiting.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        keys: Any = list(at) if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else ()
        for key in keys:
            found.append((at, key))
            waiting.append(at[key])
    return found


def _change(random: Random, values: list[Any], others: Sequence[str]) -> None:
    places = _places(values)
    if not places:
        return
    at, key = random.choice(places)
    match random.randrange(10):
        case 0 | 1 | 2:
            at[key] = copy.deepcopy(random.choice(ODD))
        case 3:
            del at[key]
        case 4 if isinstance(at, dict):
            at[random.choice(_KEYS)] = at.pop(key) if random.random() < 0.5 else copy.deepcopy(random.choice(ODD))
        case 5:
            mappings = [one for one in values if isinstance(one, dict)]
            if mappings:
                random.choice(mappings)[random.choice(("kind", "apiVersion"))] = random.choice((*_IDENTITIES, *ODD))
        case 6:
            source = _places([one.value for one in documents(random.choice(others))])
            one, name = random.choice(source)
            at[key] = copy.deepcopy(one[name])
        case 7:
            one, name = random.choice(places)
            at[key] = one[name] if random.random() < 0.5 else copy.deepcopy(one[name])  # an alias, perhaps of itself
        case 8 if isinstance(at, list):
            at.extend(copy.deepcopy(at[key]) for _ in range(random.choice((1, 3, 40))))
        case _:
            for _ in range(random.choice((1, 3, 30, 250))):
                at[key] = [at[key]] if random.random() < 0.5 else {"a": at[key]}


def _spoiled(random: Random, text: str) -> str:
    for _ in range(random.choice((1, 1, 2, 5))):
        lines = text.split("\n")
        index = random.randrange(len(lines))
        match random.randrange(7):
            case 0:
                lines.insert(index, " " * random.randrange(9) + random.choice(_TRAPS))
            case 1:
                name, colon, _ = lines[index].partition(":")
                lines[index] = f"{name}{colon} {random.choice(_TRAPS)}"
            case 2:
                del lines[index]
            case 3:
                lines.insert(index, lines[index])
            case 4:
                lines[index] = " " * random.randrange(6) + lines[index].lstrip()
            case 5:
                at = random.randrange(len(lines[index]) + 1)
                lines[index] = lines[index][:at] + random.choice("{}[]:,-&*!|>'\"%@`#?~\t") + lines[index][at:]
            case _:
                return text[: random.randrange(len(text) + 1)]
        text = "\n".join(lines)
    return text


# -- commands --------------------------------------------------------------------------------------------------------


class _Hang(BaseException):
    """The command used too much CPU time."""


@dataclass(kw_only=True)
class Report:
    """What came of all inputs: how often each command ended with which code, and the failures."""

    codes: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    slowest: list[tuple[float, str]] = field(default_factory=list)


class Fuzz:
    """Runs commands on files and judges how they end."""

    def __init__(self, folder: Path, keep: Path, *, kubeconfig: Path | None) -> None:
        self.report = Report()
        self._folder, self._keep, self._kubeconfig = folder, keep, kubeconfig
        self._runner = CliRunner(env={"KUBECONFIG": str(kubeconfig or folder / "none"), "NO_COLOR": "1"})

    def run(self, arguments: Sequence[str], text: str, what: str) -> None:
        file = self._folder / "given.yaml"
        file.write_bytes(text.encode(errors="surrogatepass"))
        began = time.process_time()
        error, code = self._ended([one.replace("FILE", str(file)) for one in arguments])
        spent = time.process_time() - began
        name = " ".join(arguments[:2]) if arguments[0] == "config" else arguments[0]
        self.report.codes[f"{name} {code}"] += 1
        self.report.slowest = sorted([*self.report.slowest, (spent, f"{name} {what}")], reverse=True)[:8]
        if error:
            kept = self._keep / f"fuzz-yaml-{len(self.report.errors)}.yaml"
            kept.write_bytes(file.read_bytes())
            self.report.errors.append(f"{' '.join(arguments)} {what}: {error[:600]} ({kept})")

    def _ended(self, arguments: Sequence[str]) -> tuple[str, int | str]:
        try:
            with _limited():
                done = self._runner.invoke(cli, arguments, standalone_mode=False)
        except _Hang:
            return f"used more than {SECONDS} s of CPU time", "hang"
        except click.exceptions.Exit as ended:
            return "", ended.exit_code
        error = done.exception
        said = f"{done.output}\n{error if isinstance(error, CliError) else ''}"
        if isinstance(error, click.ClickException | CliError):
            code: int = error.exit_code
        elif isinstance(error, click.Abort):
            code = 130
        elif error is not None:
            where = _last(error)
            return f"{type(error).__name__}: {error} at {where}", "traceback"
        else:
            code = done.return_value or 0
        if code not in _CODES[arguments[0]]:
            return f"ended with {code}", code
        for word in _TRANSIENT:
            if word in said.lower():
                at = said.lower().index(word)
                return f"said {said[max(0, at - 200) : at + 200]!r}", code
        return "", code


def _last(error: BaseException) -> str:
    found = ""
    step = error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if "/vcbatch/" in file and "site-packages" not in file:
            found = f"{file.rpartition('/vcbatch/')[2]}:{step.tb_lineno}"
        step = step.tb_next
    return found


@contextmanager
def _limited() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise _Hang

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def server(folder: Path) -> Iterator[Path]:
    """The kubeconfig of an embedded server with our definitions and our admission, in a thread of its own."""
    ready, stop, made = threading.Event(), asyncio.Event(), list[EmbeddedServer]()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        clock = SystemClock()
        one = EmbeddedServer(
            state_dir=folder, clock=clock, random=SystemRandom(), port=0, services=admission_services(clock)
        )
        await one.start()
        try:
            await ensure_definitions(one.api)
            await ensure_webhooks(one.api)
            made.append(one)
            ready.set()
            await stop.wait()
        finally:
            await one.stop()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    if not ready.wait(60):
        raise RuntimeError("the server didn't start")
    try:
        yield made[0].kubeconfig
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()


_LINTS = (
    ["lint", "-f", "FILE"], ["lint", "-f", "FILE", "-o", "json"], ["lint", "-f", "FILE", "-o", "github"],
    ["lint", "-f", "FILE", "--strict", "--closed-world"],
)  # fmt: skip
_APPLIES = (
    ["apply", "-f", "FILE", "--dry-run"], ["apply", "-f", "FILE", "--yes"],
    ["apply", "-f", "FILE", "--dry-run", "--verbose"], ["delete", "-f", "FILE", "--dry-run"],
)  # fmt: skip
_SIMULATES = (["simulate", "FILE", "--at", _AT], ["simulate", "FILE", "--at", _AT, "-o", "json", "--rounds", "3"])
_CONFIGS = (["config", "check", "FILE"], ["config", "show", "FILE"])


def run(
    inputs: int, seed: int, keep: Path, commands: Sequence[str] = ("lint", "apply", "simulate", "config")
) -> Report:
    """That many mutated inputs, shared by the commands."""
    random = Random(seed)
    sources = {"lint": manifests(), "apply": manifests(), "simulate": worlds(), "config": policies()}
    choices = {"lint": _LINTS, "apply": _APPLIES, "simulate": _SIMULATES, "config": _CONFIGS}
    pool = [*manifests(), *worlds(), *policies()]
    logging.disable(logging.CRITICAL)
    try:
        with tempfile.TemporaryDirectory() as name, _maybe_server(Path(name), "apply" in commands) as kubeconfig:
            fuzz = Fuzz(Path(name), keep, kubeconfig=kubeconfig)
            # Deleting waits for queues that empty slowly.
            with mock.patch.dict(os.environ, {"HOME": name}):
                for number in range(inputs):
                    command = random.choice(commands)
                    text = mutated(random, random.choice(sources[command]), pool)
                    fuzz.run(random.choice(choices[command]), text, f"input {number} of seed {seed}")
            return fuzz.report
    finally:
        logging.disable(logging.NOTSET)


@contextmanager
def _maybe_server(folder: Path, needed: bool) -> Iterator[Path | None]:
    if not needed:
        yield None
        return
    with server(folder / "state") as kubeconfig:
        yield kubeconfig


@click.command()
@click.option("--inputs", default=20_000, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--keep", default=".", type=click.Path(file_okay=False, path_type=Path), help="Where to put what fails.")
@click.option("--command", "commands", multiple=True, help="Only these of: lint, apply, simulate, config.")
def main(inputs: int, seed: int, keep: Path, commands: tuple[str, ...]) -> None:
    """Give INPUTS mutated files to the commands."""
    began = time.perf_counter()
    report = run(inputs, seed, keep, commands or COMMANDS)
    total = sum(report.codes.values())
    click.echo(f"{total:,} inputs in {time.perf_counter() - began:.0f} s: {dict(sorted(report.codes.items()))}")
    for seconds, what in report.slowest:
        click.echo(f"  {seconds:.2f} s of CPU time: {what}")
    for error in report.errors[:100]:
        click.echo(error, err=True)
    sys.exit(bool(report.errors))


if __name__ == "__main__":
    main()
