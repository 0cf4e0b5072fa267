"""The golden answers of the fidelity suite are still those of a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.binaries.build import Binaries
from tests.cluster.controlplane import ControlPlane
from tests.fidelity import exchanges, golden, servers
from tests.fidelity.play import Player
from tests.fidelity.record import OPTIONS
from tests.fidelity.servers import Server


@pytest.fixture(scope="module")
def server(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("cluster")
    with ControlPlane(folder, binaries, OPTIONS) as plane:
        plane.install_crds()
        yield servers.real(plane)


@pytest.mark.xdist_group("cluster-fidelity")
@pytest.mark.parametrize("name", exchanges.names())
def test_the_real_server_still_answers_as_recorded(name: str, server: Server) -> None:
    group = exchanges.group(name)

    answers = Player(server, group).play()

    recorded = golden.read(golden.FOLDER / f"{name}.json")
    errors = [
        f"{ask} {step.body or ''}\n  {difference}"
        for step, (ask, got), (_, want) in zip(group.compared, answers, recorded, strict=True)
        for difference in golden.differences(want, got)
    ]
    assert not errors, "\n".join(errors)
