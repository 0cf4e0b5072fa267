"""Fixtures of the cluster tier: skipped, saying so, where the test bed can't be built; never skipped in CI."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests.cluster.binaries.available import unavailable
from tests.cluster.binaries.build import Binaries, build
from tests.cluster.binaries.programs import BuildError
from tests.cluster.controlplane import STARTED, ControlPlane, Options

HERE = Path(__file__).parent


_LONGEST = (
    "test_chart", "test_bad_luck_client", "test_readiness", "test_bad_luck_server", "test_leadership", "test_scenarios",
    "test_admission_rotation", "test_writes", "test_migration", "test_controlplane", "test_documents",
    "test_batch_jobs",
)  # fmt: skip
"""The files that take minutes. They come first, so that the last worker doesn't run one of them while others idle."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.cluster)
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    ours = item.path.parent == HERE and item.path.stem in _LONGEST
    return _LONGEST.index(item.path.stem) if ours else len(_LONGEST)


_SHOWN_BYTES = 4000


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failed test what each program of its control planes said last, and keep their folders."""
    report = yield
    for plane in [*STARTED]:
        if report.failed:
            plane.keep = True
            for log in sorted(plane.logs.glob("*.log")):
                report.sections.append((f"end of {log}", _tail(log)))
        if not plane.running:
            STARTED.remove(plane)
    return report


def _tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _SHOWN_BYTES))
        return file.read().decode(errors="replace") or "(empty)"


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
    plane = ControlPlane(tmp_path_factory.mktemp("cluster"), binaries)
    try:
        plane.start()
        plane.install_crds()
        yield plane
    finally:
        _stop(plane)


@pytest.fixture
def make_control_plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeControlPlane]:
    """Makes control planes of the test's own, for what would harm others; all are stopped afterwards."""
    made: list[ControlPlane] = []

    def make(options: Options | None = None) -> ControlPlane:
        plane = ControlPlane(tmp_path_factory.mktemp("cluster"), binaries, options)
        made.append(plane)
        plane.start()
        plane.install_crds()
        return plane

    try:
        yield make
    finally:
        for plane in made:
            _stop(plane)


def _stop(plane: ControlPlane) -> None:
    """The folder stays, with certificates and logs, where a test failed or the set-up does right now."""
    plane.stop()
    if not plane.keep and sys.exc_info()[0] is None:
        shutil.rmtree(plane.folder, ignore_errors=True)
