"""torchx as it is released on a real control plane: what it submits, reads and cancels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.components import Components
from tests.cluster.controlplane import ControlPlane
from tests.cluster.processes import wait_until
from tests.support.torchx import Torchx, environment

ALONE = "--leader-elect=false"


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    control_plane.add_nodes(1)
    with Components(control_plane) as programs:
        programs.start_all(scheduler=[ALONE], controllers=[ALONE])
        yield control_plane


@pytest.fixture
def torchx(plane: ControlPlane, tmp_path: Path) -> Torchx:
    return Torchx(environment(), plane.kubeconfig, "default", tmp_path)


def test_an_app_runs_to_its_end(torchx: Torchx) -> None:
    app = torchx.run("sleep", "2", replicas=2)
    wait_until("the app has ended", lambda: torchx.state(app) == "SUCCEEDED")
    assert torchx.replicas(app) == {"sh/0": "SUCCEEDED", "sh/1": "SUCCEEDED"}
    assert torchx.apps()[app] == "SUCCEEDED"
    assert "'num_replicas': 2" in torchx("describe", app)


def test_one_that_fails_is_failed(torchx: Torchx) -> None:
    app = torchx.run("exit", "3", replicas=1)
    wait_until("the app has failed", lambda: torchx.state(app) == "FAILED")


def test_one_that_is_cancelled_is_gone(torchx: Torchx) -> None:
    app = torchx.run("sleep", "inf", replicas=2)
    wait_until("its replicas run", lambda: set(torchx.replicas(app).values()) == {"RUNNING"})
    wait_until("it is cancelled", lambda: torchx.cancel(app))
    wait_until("it is gone", lambda: app not in torchx.apps())
