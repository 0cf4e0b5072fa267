"""Fixtures of the tests on real nodes: one cluster for all of them, skipped with one line where it can't be."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.cluster.binaries.build import Binaries, BuildError, build
from tests.cluster.processes import wait_until
from tests.nodes import builds, dns, images, leftovers
from tests.nodes.available import missing, unavailable
from tests.nodes.bed import Bed
from tests.nodes.builds import Build
from tests.nodes.connections import Watch
from tests.nodes.installed import NAMESPACE, Installed
from tests.nodes.lifecycle import LifeCycle, Row, table, write
from tests.nodes.namespace import Namespace
from tests.support.lacking import lacks

HERE = Path(__file__).parent
_PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet", "kube-proxy",
             "coredns", "helm")  # fmt: skip
_SHOWN_BYTES = 3000
_running: list[Bed] = []
_failed: set[str] = set()
Figures = dict[str, float]
_seconds: Figures = {}
_rows: list[Row] = []
ROWS_VARIABLE = "VCBATCH_LIFE_CYCLE_FILE"
"""Names a file for the table of the life cycle, as JSON."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.nodes)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The life cycle's table and how long the start took; or one line for all that was left out, whatever the
    verbosity."""
    if _rows:
        terminalreporter.section("life cycle")
        for line in table(_rows):
            terminalreporter.write_line(line)
        if path := os.environ.get(ROWS_VARIABLE):
            write(_rows, Path(path))
    for what, seconds in _seconds.items():
        terminalreporter.write_line(f"{what}: {seconds:.1f} s")
    if terminalreporter.stats.get("skipped") and (reason := unavailable()):
        terminalreporter.write_line(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failed test the pods of the cluster, what happened last, and what its programs said last."""
    report = yield
    _failed.update([item.nodeid] if report.failed else [])
    for bed in _running if report.failed else ():
        for arguments in (
            ("get", "pods", "--all-namespaces", "-o", "wide"),
            ("get", "jobs.batch.volcano.sh", "--all-namespaces"),
            ("get", "events", "--all-namespaces", "--sort-by=.metadata.creationTimestamp"),
        ):
            said = bed.plane.kubectl(*arguments)
            report.sections.append((f"kubectl {' '.join(arguments)}", (said.stdout + said.stderr)[-_SHOWN_BYTES:]))
        for log in (*bed.logs.glob("*.log"), *bed.plane.logs.glob("*.log")):
            text = log.read_text(encoding="utf-8", errors="replace")
            report.sections.append((f"end of {log}", text[-_SHOWN_BYTES:]))
    return report


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    """The programs of the test bed, built where they aren't there yet."""
    if reason := unavailable():
        pytest.skip(reason)
    if lacking := missing():
        pytest.fail(f"tests on real nodes can't run: {lacking}")
    try:
        return build(*_PROGRAMS)
    except BuildError as error:
        pytest.fail(str(error))


@pytest.fixture(scope="session")
def figures() -> Figures:
    """Seconds that the summary of the run shows."""
    return _seconds


@pytest.fixture(scope="session")
def all_builds(binaries: Binaries, figures: Figures) -> list[Build]:
    """The builds that can be installed, the newest last."""
    began = time.monotonic()
    found = [*([] if builds.missing() else [builds.earlier()]), builds.current()]
    figures["images built"] = time.monotonic() - began
    return found


@pytest.fixture(scope="session")
def earlier(all_builds: list[Build]) -> Build:
    """A build before this one."""
    if lacking := builds.missing():
        lacks(f"no build to upgrade from: {lacking}")
    return all_builds[0]


@pytest.fixture(scope="session")
def bed(
    binaries: Binaries, all_builds: list[Build], figures: Figures, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bed]:
    """Two nodes with CoreDNS. When it ends nothing may be left on this machine but, after a failed test, the logs."""
    folder = tmp_path_factory.mktemp("nodes")
    before = leftovers.observe()
    began = time.monotonic()
    archives = [*images.archives(binaries.path("coredns")), *(each.archive for each in all_builds)]
    figures["images written"] = time.monotonic() - began
    cluster = Bed(folder, binaries, archives)
    with cluster:
        _running.append(cluster)
        began = time.monotonic()
        dns.install(cluster.plane)
        dns.wait_ready(cluster.plane)
        figures.update(cluster.seconds)
        figures["CoreDNS ready"] = time.monotonic() - began
        yield cluster
        _running.remove(cluster)
    found = leftovers.observe(cluster.state, folder)
    assert found == before, f"left behind: {found - before}; missing: {before - found}"
    if not _failed:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def connections(bed: Bed) -> Iterator[Watch]:
    """All connections of the release's pods since it was installed."""
    with Watch(bed, NAMESPACE) as watch:
        yield watch


@pytest.fixture(scope="session")
def release(bed: Bed, connections: Watch, all_builds: list[Build]) -> Installed:
    """vcbatch in whatever state the tests before have left it; nothing of it at first."""
    return Installed(bed, all_builds[-1])


@pytest.fixture
def installed(release: Installed) -> Installed:
    """vcbatch of this checkout, installed by its chart."""
    release.ensure(release.newest)
    return release


@pytest.fixture(scope="session")
def life(bed: Bed) -> LifeCycle:
    """What goes on while things happen to the installation."""
    name = "life-cycle"
    bed.plane.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    bed.plane.wait_service_accounts(name)
    made = LifeCycle(bed, Namespace(bed.plane, name), _rows)
    made.open()
    return made


@pytest.fixture(scope="session")
def _numbers() -> Iterator[int]:
    return itertools.count(1)


@pytest.fixture
def namespace(bed: Bed, _numbers: Iterator[int]) -> Iterator[Namespace]:
    """A namespace of the test's own, whose pods are gone when the next test begins."""
    name = f"test-{next(_numbers)}"
    bed.plane.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    try:
        bed.plane.wait_service_accounts(name)
        yield Namespace(bed.plane, name)
    finally:
        bed.plane.call("DELETE", f"/api/v1/namespaces/{name}")
        pods = f"/api/v1/namespaces/{name}/pods"
        wait_until("the test's pods are gone", lambda: not bed.plane.call("GET", pods)["items"], pause=0.2)
