"""What all tests share: the table of scenarios and backends, kept from run to run and told at the end of one; and a
second chance for those that start programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import is_hypothesis_test
from pytest_rerunfailures import suspended_finalizers

from tests.scenarios import report
from tests.support.determinism import import_all_modules
from tests.support.examples import EXPLORE, examples

# The same commit gives the same result each time: examples follow from the test alone, and none is kept between runs.
# Nothing depends on the time that an example takes, because a busy machine says nothing about the code.
_UNTIMED = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
_USUAL = hypothesis.settings().max_examples
hypothesis.settings.register_profile(
    "default", derandomize=True, database=None, max_examples=examples(_USUAL), **_UNTIMED
)
if hypothesis.settings.get_current_profile_name() == "ci":  # as Hypothesis chooses where CI is set
    hypothesis.settings.load_profile("default")
# `make explore` draws other examples from a seed that it prints. A failure prints its example, which is then added to
# the test with @example, or as a test of its own.
hypothesis.settings.register_profile(
    EXPLORE, derandomize=False, database=None, max_examples=_USUAL, print_blob=True, **_UNTIMED
)

HERE = Path(__file__).parent
REAL = (HERE / "cluster", HERE / "integration")
"""Where tests start real programs, which a busy machine may hold up for longer than any test should wait."""

_played: list[dict[str, Any]] = []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    properties = [item for item in items if is_hypothesis_test(getattr(item, "obj", None))]
    if config.getoption("--hypothesis-profile") == EXPLORE:
        items[:] = properties
    elif properties and hypothesis.settings.get_current_profile_name() == "default":
        import_all_modules()
    for item in items:
        if any(folder in item.path.parents for folder in REAL) and not item.get_closest_marker("flaky"):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A second try finds nothing that the first left behind: what the tests of a module share is made anew."""
    if getattr(item, "execution_count", 1) > 1:
        setup = item.session._setupstate  # pyright: ignore[reportPrivateUsage]
        # The plugin keeps what is above a single test for the second try.
        setup.stack.update(suspended_finalizers)
        suspended_finalizers.clear()
        setup.teardown_exact(None)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # Also the reports of xdist's workers come by here.
    if report.when == "call":
        _played.extend(_outcomes(report.user_properties))


_outcomes = report.collect


def _report_second_tries(terminalreporter: pytest.TerminalReporter) -> None:
    """Each with what the first try said."""
    for again in terminalreporter.stats.get("rerun", ()):
        why = next((line for line in again.longreprtext.splitlines() if line.startswith("E ")), "")
        terminalreporter.write_line(f"tried twice: {again.nodeid} {why.removeprefix('E ').strip()}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says the whole table after a run on the cluster, and after others where it is."""
    _report_second_tries(terminalreporter)
    if not _played or hasattr(config, "workerinput"):
        return
    report.save(_played)
    if any(entry["backend"] == report.CLUSTER for entry in _played):
        terminalreporter.section("scenarios")
        for line in report.table(report.load()):
            terminalreporter.line(line)
    else:
        terminalreporter.line(f"The table of scenarios: {report.FOLDER / 'scenarios.txt'}")
