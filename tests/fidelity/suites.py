"""The suites whose requests are made by programs, and their golden files: `python -m tests.fidelity.suites record|compare
[SUITE[:NAME] …]`.

`record` plays them on two fresh control planes, one after the other, and keeps what both agree on. `compare` prints where the
embedded server differs from that.
"""

from __future__ import annotations

import fnmatch
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import click
import yaml

from tests.cluster.binaries.build import build
from tests.cluster.controlplane import CONTROLLERS, ControlPlane, Options
from tests.fidelity import clients, golden, kinds, kubectl, servers
from tests.fidelity.golden import Answers
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
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Why answers differ on purpose: for which asks of which parts (patterns), and where in the answer."""

    reason: str
    part: str
    ask: str
    at: Sequence[str]

    def covers(self, name: str, ask: str) -> bool:
        return fnmatch.fnmatchcase(name, self.part) and fnmatch.fnmatchcase(ask, self.ask)


def known(suite: Suite) -> list[Known]:
    """The differences that a suite's `differences.yaml` lists."""
    path = suite.folder / "differences.yaml"
    entries = (yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else None) or []
    return [
        Known(reason=entry["reason"], part=place["part"], ask=place.get("ask", "*"), at=place.get("at", [""]))
        for entry in entries
        for place in entry["places"]
    ]


def faults(suite: Suite, name: str, answers: Answers, used: set[Known] | None = None) -> list[str]:
    """Where these answers differ from the golden ones, but for what is listed. Adds to `used` what was needed."""
    found: list[str] = []
    wanted = suite.golden(name)
    if [ask for ask, _ in wanted] != [ask for ask, _ in answers]:
        return [f"{name}: other requests than recorded: run `make fidelity-record`"]
    listed = known(suite)
    for (ask, want), (_, got) in zip(wanted, answers, strict=True):
        for difference in golden.differences(want, got):
            reasons = [
                one
                for one in listed
                if one.covers(name, ask) and any(not at or difference.path.startswith(at) for at in one.at)
            ]
            if not reasons:
                found.append(f"{name}: {ask}\n  {difference}")
            elif used is not None:
                used.add(reasons[0])
    return found


def play_real(plane: ControlPlane, suite: Suite, chosen: Sequence[str]) -> dict[str, Answers]:
    """The real server's answers. Its controllers rest meanwhile: the server itself is what is compared."""
    controllers = plane.programs[CONTROLLERS]
    try:
        return suite.play(servers.real(plane), chosen, controllers.stop)
    finally:
        controllers.start()


OPTIONS = Options(kwok=False, scheduler=False)


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
            found = faults(suite, name, answers)
            total += len(answers)
            if found and not counts:
                click.echo("\n".join(found))
            click.echo(f"{name:30} {len(found)} differences in {len(answers)}")
        click.echo(f"together {total}")


if __name__ == "__main__":
    main()
