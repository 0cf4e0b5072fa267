"""The suites whose requests are made by programs, and their golden files.

`python -m tests.fidelity.suites record [SUITE[:NAME] …]` plays them on two fresh control planes, one after the other,
and keeps what both agree on; `compare` prints where the embedded server differs from that.
"""

from __future__ import annotations

import fnmatch
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import click
import yaml

from tests.cluster.binaries.build import build
from tests.cluster.controlplane import CONTROLLERS, ControlPlane
from tests.cluster.processes import Program
from tests.fidelity import clients, golden, kinds, kubectl, servers, webhooks
from tests.fidelity.golden import Answers
from tests.fidelity.record import OPTIONS
from tests.fidelity.servers import Server


class Play(Protocol):
    """Plays the chosen parts of a suite, or all; `settled` is called once the server has what they need."""

    def __call__(self, server: Server, chosen: Sequence[str], settled: Callable[[], None]) -> dict[str, Answers]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A suite made of named parts, with a golden file for each."""

    folder: Path
    names: Callable[[], Sequence[str]]
    play: Play

    def golden(self, name: str) -> Answers:
        return golden.read(self.folder / "golden" / f"{name}.json")


def _suite(module: Any) -> Suite:
    return Suite(folder=Path(module.__file__).parent, names=module.names, play=module.play)


SUITES: Mapping[str, Suite] = {
    "kinds": _suite(kinds),
    "kubectl": _suite(kubectl),
    "clients": _suite(clients),
    "webhooks": _suite(webhooks),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Why answers differ on purpose: those to asks like `ask` (a pattern) in a part, or so many answers of a part."""

    reason: str
    part: str
    ask: str = ""
    count: int = 0

    def covers(self, name: str, ask: str) -> bool:
        return bool(self.ask) and self.part == name and fnmatch.fnmatchcase(ask, self.ask)


@cache
def known(suite: Suite) -> Sequence[Known]:
    """The differences that a suite's `differences.yaml` lists."""
    found: list[Known] = []
    for entry in yaml.safe_load((suite.folder / "differences.yaml").read_text(encoding="utf-8")):
        reason = entry["reason"]
        for part, what in entry["parts"].items():
            if isinstance(what, int):
                found.append(Known(reason=reason, part=part, count=what))
            else:
                found += [Known(reason=reason, part=part, ask=ask) for ask in what]
    return found


def differing(suite: Suite, name: str, answers: Answers) -> dict[str, str]:
    """Which asks were answered otherwise than recorded, and how. Raises ValueError for other asks than recorded."""
    wanted = suite.golden(name)
    if [ask for ask, _ in wanted] != [ask for ask, _ in answers]:
        raise ValueError(f"{name}: other requests than recorded: run `make fidelity-record`")
    found: dict[str, str] = {}
    for (ask, want), (_, got) in zip(wanted, answers, strict=True):
        differences = golden.differences(want, got)
        if differences:
            found[ask] = "\n  ".join(str(difference) for difference in differences)
    return found


def errors(suite: Suite, name: str, answers: Answers) -> list[str]:
    """What fails a test: answers that differ and aren't listed, and what is listed and doesn't differ any more."""
    found = differing(suite, name, answers)
    listed = [one for one in known(suite) if one.part == name]
    counted = sum(one.count for one in listed)
    others = {ask: how for ask, how in found.items() if not any(one.covers(name, ask) for one in listed)}
    reported = [
        f"listed as different, but alike: {one.ask}"
        for one in listed
        if one.ask and not any(one.covers(name, ask) for ask in found)
    ]
    if len(others) != counted:
        reported.append(f"{len(others)} answers differ, {counted} are listed:")
        reported += [f"{ask}\n  {how}" for ask, how in others.items()]
    return reported


def play_real(plane: ControlPlane, suite: Suite, chosen: Sequence[str]) -> dict[str, Answers]:
    """The real server's answers. Its controllers rest as soon as the suite says that all is settled: the server itself
    is what is compared."""
    controllers = plane.programs[CONTROLLERS]
    try:
        return suite.play(servers.real(plane), chosen, lambda: _stop(controllers))
    finally:
        if not controllers.running:
            controllers.start()


def _stop(program: Program) -> None:
    program.stop()


def _chosen(words: Sequence[str]) -> list[tuple[Suite, list[str]]]:
    asked: dict[str, list[str]] = {}
    for word in words or SUITES:
        suite, _, name = word.partition(":")
        asked.setdefault(suite, []).extend([name] if name else [])
    return [(SUITES[suite], parts) for suite, parts in asked.items()]


@click.group()
def main() -> None:
    """The golden files of the suites made by programs."""


@main.command()
@click.argument("words", nargs=-1)
def record(words: Sequence[str]) -> None:
    """Record these suites, or all."""
    binaries = build()
    played: list[list[dict[str, Answers]]] = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder), binaries, OPTIONS) as plane:
            plane.install_crds()
            played.append([play_real(plane, suite, parts) for suite, parts in _chosen(words)])
    for (suite, _), first, second in zip(_chosen(words), *played, strict=True):
        for name, answers in first.items():
            golden.write(suite.folder / "golden" / f"{name}.json", golden.joined(answers, second[name]))
            click.echo(f"{name:30} {len(answers)}")


@main.command()
@click.argument("words", nargs=-1)
@click.option("--counts", is_flag=True, help="Print only how many differ.")
def compare(words: Sequence[str], *, counts: bool) -> None:
    """Show where the embedded server's answers differ."""
    for suite, parts in _chosen(words):
        with tempfile.TemporaryDirectory() as folder, servers.embedded(Path(folder)) as server:
            played = suite.play(server, parts, lambda: None)
        total = 0
        for name, answers in played.items():
            found = differing(suite, name, answers)
            total += len(answers)
            if found and not counts:
                click.echo("\n".join(f"{name}: {ask}\n  {how}" for ask, how in found.items()))
            click.echo(f"{name:30} {len(found)} of {len(answers)} differ")
        click.echo(f"together {total}")


if __name__ == "__main__":
    main()
