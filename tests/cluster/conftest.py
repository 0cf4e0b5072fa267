"""Fixtures of the cluster tier: skipped, saying so, where the test bed can't be built; never skipped in CI."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.binaries.available import unavailable
from tests.cluster.binaries.build import Binaries, BuildError, build
from tests.cluster.controlplane import ControlPlane, Options

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.cluster)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for all that was left out, whatever the verbosity."""
    if terminalreporter.stats.get("skipped") and (reason := unavailable()):
        terminalreporter.write_line(reason)


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    """The programs of the test bed, built where they aren't there yet."""
    if reason := unavailable():
        pytest.skip(reason)
    try:
        return build()
    except BuildError as error:
        pytest.fail(str(error))


MakeControlPlane = Callable[..., ControlPlane]


@pytest.fixture(scope="module")
def control_plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A fresh control plane with the project's CRDs, shared by the tests of a module."""
    with ControlPlane(tmp_path_factory.mktemp("cluster"), binaries) as plane:
        plane.install_crds()
        yield plane


@pytest.fixture
def make_control_plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeControlPlane]:
    """Makes control planes of the test's own, for what would harm others; all are stopped afterwards."""
    started: list[ControlPlane] = []

    def make(options: Options | None = None) -> ControlPlane:
        plane = ControlPlane(tmp_path_factory.mktemp("cluster"), binaries, options)
        started.append(plane)
        plane.start()
        plane.install_crds()
        return plane

    yield make
    for plane in started:
        plane.stop()
