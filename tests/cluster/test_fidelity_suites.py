"""The golden files of kubectl, clients and kinds are what a real API server says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.binaries.build import Binaries
from tests.cluster.controlplane import ControlPlane
from tests.fidelity.record import OPTIONS
from tests.fidelity.suites import SUITES, differing, play_real


@pytest.fixture(scope="module")
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path_factory.mktemp("fidelity"), binaries, OPTIONS) as plane:
        plane.install_crds()
        yield plane


@pytest.mark.parametrize("suite", SUITES)
def test_the_recorded_answers_are_those_of_a_real_server(suite: str, plane: ControlPlane) -> None:
    played = play_real(plane, SUITES[suite], ())

    found = [
        f"{name}: {ask}\n  {how}"
        for name, answers in played.items()
        for ask, how in differing(SUITES[suite], name, answers).items()
    ]
    assert not found, "\n".join(found)
