"""What all tests share: the table of scenarios and backends, kept from run to run and printed at the end of one; and
reruns of those that start programs, which the summary lists with their causes."""

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
    real = tuple(f"{folder}/" for folder in REAL)
    for item in items:
        if str(item.path).startswith(real) and not item.get_closest_marker("flaky"):
            # One that was timed out would wait without a limit: pytest-timeout counts both tries as one.
            item.add_marker(pytest.mark.flaky(reruns=1, rerun_except="from pytest-timeout"))


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


def _list_reruns(terminalreporter: pytest.TerminalReporter) -> None:
    """Each test that was run again, with the last line of its first error. Also xdist's workers report them."""
    again = terminalreporter.stats.get("rerun", ())
    if again:
        terminalreporter.section(f"run again after a failure: {len(again)}")
    for rerun in again:
        terminalreporter.write_line(f"{rerun.nodeid} ({rerun.when}): {_cause(rerun)}")


def _cause(failed: pytest.TestReport) -> str:
    """The error that ended the test, in one line and with its place."""
    crash = getattr(failed.longrepr, "reprcrash", None)
    if crash is not None:
        return f"{crash.message.strip().splitlines()[0]} ({crash.path}:{crash.lineno})"
    lines = [line.strip() for line in failed.longreprtext.splitlines() if line.strip()]
    return lines[-1] if lines else "no error was reported"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The reruns; then the whole table of scenarios after a run on the cluster, and after others where it is."""
    _list_reruns(terminalreporter)
    if not _played or hasattr(config, "workerinput"):
        return
    report.save(_played)
    if any(entry["backend"] == report.CLUSTER for entry in _played):
        terminalreporter.section("scenarios")
        for line in report.table(report.load()):
            terminalreporter.line(line)
    else:
        terminalreporter.line(f"The table of scenarios: {report.FOLDER / 'scenarios.txt'}")
