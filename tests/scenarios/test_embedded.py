"""Every scenario on `vcbatch up` as users have it: HTTPS, kopf, real processes and real time.

What passes under virtual time and not here is an error of the simulation, or of what it leaves out.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.cluster.processes import wait_until
from tests.scenarios.backends import Stage, in_turn, missing
from tests.scenarios.player import Capability, Scenario, scenarios
from tests.scenarios.report import EMBEDDED, Outcome, Record, report
from tests.support.up import RunningVcbatch, vcbatch
from vcbatch.cli.base.state import StateDir
from vcbatch.scheduler.policy.reader import DEFAULT_POLICY

pytestmark = pytest.mark.xdist_group("scenarios on the embedded server")

LACKS = {
    Capability.CLOCK: "the clock of a real machine stays as it is",
    Capability.PATIENCE: "takes minutes of real time",
    Capability.KUBERNETES: "nothing acts on Kubernetes' own workloads here",
}
PROGRAMS = 6
"""How many programs share out the scenarios that want one for themselves."""
AT_ONCE = 10


class _Program:
    """Implements `backends.Machinery`: one process that is everything."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        folder.mkdir(exist_ok=True)
        self._policy = folder / "policy.conf"
        self._policy.write_text(DEFAULT_POLICY)
        self._running = RunningVcbatch(folder, ("--scheduler-conf", str(self._policy), *arguments))
        self.kubeconfig = self._running.kubeconfig

    def start(self) -> None:
        self._running.up()

    def stop(self) -> None:
        self._running.down()

    def kill(self, part: str) -> None:
        server = StateDir(self._running.state).running()
        assert server is not None, "vcbatch up doesn't run"
        os.kill(server.pid, signal.SIGKILL)
        _wait_gone(server.pid)  # until then it holds its lock, and the next would say that one runs already

    def start_again(self, part: str) -> None:
        # At the address it had, as a user's next `vcbatch up` is.
        vcbatch("up", "--detach", "--state-dir", str(self._running.state), *self._running.arguments)

    def decide_by(self, policy: str) -> None:
        self._policy.write_text(policy)
        self.kill("scheduler")
        self.start_again("scheduler")


def _wait_gone(pid: int) -> None:
    """Return once that process, which is nobody's child here, has ended."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        wait_until(f"{pid} has ended", lambda: process.status() == psutil.STATUS_ZOMBIE)


def _selected(session: pytest.Session) -> list[Scenario]:
    """What was chosen on the command line, of what can be played here."""
    mine = [
        item for item in session.items if isinstance(item, pytest.Function) and item.originalname == "test_embedded"
    ]
    chosen: list[Scenario] = [item.callspec.params["scenario"] for item in mine]
    return [scenario for scenario in chosen if not missing(scenario, LACKS)]


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Outcome]]:
    folder = tmp_path_factory.mktemp("embedded")
    chosen = _selected(request.session)
    alone = [scenario for scenario in chosen if scenario.alone]
    pretended = [each for each in chosen if not each.alone and Capability.PRETENDED in each.needs]
    processes = [each for each in chosen if not each.alone and Capability.PRETENDED not in each.needs]
    programs = []
    stages: list[tuple[Stage, Sequence[Scenario], bool]] = []
    if processes:
        programs.append(_Program(folder / "processes"))
        stages.append((Stage(machinery=programs[-1], at_once=AT_ONCE, makes_node=False), processes, False))
    for number in range(min(PROGRAMS, len(alone) or bool(pretended))):
        programs.append(_Program(folder / f"virtual-{number}", "--kubelet-mode", "none"))
        stages.append((Stage(machinery=programs[-1], at_once=AT_ONCE), pretended if number == 0 else (), True))

    async def play() -> dict[str, Outcome]:
        await asyncio.gather(*(asyncio.to_thread(program.start) for program in programs))
        queue, none = in_turn(alone), iter(())
        done = await asyncio.gather(*(stage.play(some, queue if shares else none) for stage, some, shares in stages))
        return {name: outcome for part in done for name, outcome in part.items()}

    try:
        yield asyncio.run(play())
    finally:
        for program in programs:
            program.stop()


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.title)
def test_embedded(scenario: Scenario, request: pytest.FixtureRequest, record_property: Record) -> None:
    lacks = missing(scenario, LACKS)
    outcome = Outcome(lacks=lacks) if lacks else request.getfixturevalue("outcomes")[scenario.name]
    report(record_property, EMBEDDED, scenario, outcome)
    if lacks:
        pytest.skip(lacks)
    assert not outcome.failure, outcome.failure
