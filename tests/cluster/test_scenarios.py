"""Every scenario on a real control plane: vcbatch as separate processes, under the rights that it is shipped with.

The same expectations as in memory and on the embedded server; a difference is a fault of one of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.binaries.build import Binaries
from tests.cluster.components import CONTROLLERS, NAMESPACE, Component, Components
from tests.cluster.controlplane import ControlPlane
from tests.scenarios.backends import Stage, in_turn, missing
from tests.scenarios.player import Capability, Scenario, scenarios
from tests.scenarios.report import CLUSTER, Outcome, Record, report
from vcbatch.scheduler.policy.reader import DEFAULT_POLICY

LACKS: Mapping[Capability, str] = {
    Capability.CLOCK: "the clock of a real machine stays as it is",
    Capability.PATIENCE: "takes minutes of real time",
    Capability.SOCKETS: "pods only pretend to run",
}
pytestmark = pytest.mark.flaky(reruns=0)
"""What fails is played once more, by itself, before its test is asked."""

PLANES = 3
"""How many control planes share out the scenarios that want one for themselves."""
AT_ONCE = 16


class _Plane:
    """Implements `backends.Machinery`: a control plane and vcbatch on it."""

    def __init__(self, plane: ControlPlane, components: Components, *, policy: Path) -> None:
        self.kubeconfig = plane.kubeconfig
        self._components = components
        self._policy = policy

    def kill(self, part: str) -> None:
        self._component(part).program.kill()

    def start_again(self, part: str) -> None:
        component = self._component(part)
        component.program.start()
        component.wait_ready()

    def decide_by(self, policy: str) -> None:
        self._policy.write_text(policy)
        self.kill("scheduler")
        self.start_again("scheduler")

    def _component(self, part: str) -> Component:
        return next(each for each in self._components.running if each.program.name == f"vcbatch-{part}")


def _chosen(session: pytest.Session) -> list[Scenario]:
    """What was chosen on the command line, of what can be played here."""
    mine = [item for item in session.items if isinstance(item, pytest.Function) and item.originalname == "test_cluster"]
    chosen: list[Scenario] = [item.callspec.params["scenario"] for item in mine]
    return [scenario for scenario in chosen if not missing(scenario, LACKS)]


def _start(stack: ExitStack, folder: Path, binaries: Binaries) -> _Plane:
    plane = stack.enter_context(ControlPlane(folder, binaries))
    plane.install_crds()
    components = stack.enter_context(Components(plane))
    _allow_ssh(plane)
    # A killed program's Lease would have to run out before the next one works.
    alone = ("--leader-elect=false",)
    policy = folder / "policy.conf"
    policy.write_text(DEFAULT_POLICY)
    components.start_all(controllers=alone, scheduler=(*alone, "--scheduler-conf", str(policy)))
    return _Plane(plane, components, policy=policy)


def _allow_ssh(plane: ControlPlane) -> None:
    """In every namespace, since each scenario has one of its own."""
    account = f"--serviceaccount={NAMESPACE}:vcbatch-{CONTROLLERS}"
    plane.must_kubectl("create", "clusterrolebinding", "vcbatch-ssh", "--clusterrole=vcbatch-ssh", account)


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Outcome]]:
    chosen = _chosen(request.session)
    together = [scenario for scenario in chosen if not scenario.alone]
    alone = [scenario for scenario in chosen if scenario.alone]
    folders = [tmp_path_factory.mktemp("plane") for _ in range(max(1, min(PLANES, len(alone))))]

    async def play(planes: list[_Plane]) -> dict[str, Outcome]:
        queue = in_turn(alone)
        stages = [Stage(machinery=plane, at_once=AT_ONCE) for plane in planes]
        done = await asyncio.gather(
            *(stage.play(together if number == 0 else (), queue) for number, stage in enumerate(stages))
        )
        return {name: outcome for part in done for name, outcome in part.items()}

    stacks = [ExitStack() for _ in folders]
    with ThreadPoolExecutor(len(stacks)) as pool:
        try:
            planes = list(pool.map(lambda each: _start(*each, binaries), zip(stacks, folders, strict=True)))
            yield asyncio.run(play(planes))
        finally:
            list(pool.map(ExitStack.close, stacks))


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.title)
def test_cluster(scenario: Scenario, request: pytest.FixtureRequest, record_property: Record) -> None:
    lacks = missing(scenario, LACKS)
    outcome = Outcome(lacks=lacks) if lacks else request.getfixturevalue("outcomes")[scenario.name]
    report(record_property, CLUSTER, scenario, outcome)
    if lacks:
        pytest.skip(lacks)
    assert not outcome.failure, outcome.failure
