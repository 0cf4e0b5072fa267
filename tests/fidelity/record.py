"""Records golden files, or shows what differs: `python -m tests.fidelity.record record|compare [GROUP …]`.

`record` plays the groups on two fresh control planes, one after the other, and keeps what both agree on. `compare`
plays them on the embedded server and prints each difference from the golden files; `--counts` prints only the numbers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from tests.cluster.binaries.build import build
from tests.cluster.controlplane import ControlPlane, Options
from tests.fidelity import exchanges, golden, listed, servers
from tests.fidelity.play import Unplayable, play_all

OPTIONS = Options(
    kwok=False,
    scheduler=False,
    controllers=[name for name in Options().controllers if name != "pod-garbage-collector-controller"],
)
"""The control plane that golden files are of: nothing places or runs pods, or removes those of nodes that aren't there,
which it would sooner or later."""


@click.group()
def main() -> None:
    """The fidelity suite's golden files."""


@main.command()
@click.argument("groups", nargs=-1)
def record(groups: Sequence[str]) -> None:
    """Record these groups, or all."""
    binaries = build()
    played: list[dict[str, golden.Answers | Unplayable]] = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder), binaries, OPTIONS) as plane:
            plane.install_crds()
            played.append(play_all(servers.real(plane), groups))
    for name, first in played[0].items():
        second = played[1][name]
        if isinstance(first, Unplayable) or isinstance(second, Unplayable):
            click.echo(f"{name:24} broken off: {first if isinstance(first, Unplayable) else second}")
            continue
        answers = golden.joined(first, second)
        golden.write(golden.FOLDER / f"{name}.json", answers)
        loose = [ask for ask, answer in answers if golden.ANY in _texts(answer)]
        click.echo(f"{name:24} {len(answers):4}" + "".join(f"\n    not alike twice: {ask}" for ask in loose))


def _texts(value: object) -> list[object]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value]


@main.command()
@click.argument("groups", nargs=-1)
@click.option("--counts", is_flag=True, help="Print only how many answers are alike.")
def compare(groups: Sequence[str], *, counts: bool) -> None:
    """Compare the embedded server's answers of these groups, or of all."""
    with tempfile.TemporaryDirectory() as folder, servers.embedded(Path(folder)) as server:
        played = play_all(server, groups)
    alike = total = known = 0
    for name, answers in played.items():
        if isinstance(answers, Unplayable):
            click.echo(f"{name:24} broken off: {answers}")
            continue
        steps, recorded = exchanges.group(name).compared, golden.read(golden.FOLDER / f"{name}.json")
        if [ask for ask, _ in recorded] != [step.ask for step in steps]:
            click.echo(f"{name:24} was recorded with other requests")
            continue
        good = 0
        for number, (step, (ask, got), (_, want)) in enumerate(zip(steps, answers, recorded, strict=True)):
            found = golden.differences(want, got)
            good += not found
            meant = listed.differs(name, number)
            known += bool(meant)
            errors = golden.unexplained(found, meant)
            if errors and not counts:
                click.echo(f"--- {name} {number}: {ask} {str(step.body or '')[:300]}\n  " + "\n  ".join(errors))
        alike, total = alike + good, total + len(answers)
        click.echo(f"{name:24} {good:4} of {len(answers):4}")
    click.echo(f"{'all':24} {alike:4} of {total:4}; listed as different: {known}")


if __name__ == "__main__":
    main()
