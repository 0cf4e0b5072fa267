"""torchx as it is released against the local server: every command of its Kubernetes scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.clients.waiting import until
from tests.support.torchx import Torchx, environment


@pytest.fixture(scope="module")
def programs() -> Path:
    return environment()


@pytest.fixture
def torchx(programs: Path, kubeconfig: Path, namespace: str, tmp_path: Path) -> Torchx:
    return Torchx(programs, kubeconfig, namespace, tmp_path)


def test_an_app_is_run_watched_read_and_described(torchx: Torchx):
    app = torchx.run("sh", "-c", "echo replica of $VC_SH_0_HOSTS", replicas=2)
    assert app.startswith(f"kubernetes://torchx/{torchx.namespace}:")
    name = app.rpartition(":")[2]
    until(lambda: torchx.state(app) == "SUCCEEDED", seconds=120)
    assert torchx.replicas(app) == {"sh/0": "SUCCEEDED", "sh/1": "SUCCEEDED"}
    assert torchx.apps() == {app: "SUCCEEDED"}
    lines = torchx.log(app)
    assert [line.split()[0] for line in lines] == ["sh/0", "sh/1"]
    assert all(line.endswith(f"replica of {name}-sh-0-0.{name}") for line in lines)
    assert "'num_replicas': 2" in torchx("describe", app)


def test_one_that_fails_is_failed(torchx: Torchx):
    app = torchx.run("exit", "3", replicas=1)
    until(lambda: torchx.state(app) == "FAILED", seconds=120)
    assert torchx.apps() == {app: "FAILED"}


def test_one_that_is_cancelled_is_gone(torchx: Torchx):
    app = torchx.run("sleep", "600", replicas=2)
    until(lambda: set(torchx.replicas(app).values()) == {"RUNNING"}, seconds=120)
    until(lambda: torchx.cancel(app))
    until(lambda: torchx.apps() == {}, seconds=120)
