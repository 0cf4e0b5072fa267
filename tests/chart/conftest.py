"""Tests that render the chart are marked `chart`: they need a Helm client, and are skipped with a reason elsewhere."""

from __future__ import annotations

import pytest

from tests.chart import helm as client
from tests.cluster.binaries.build import BuildError


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "helm" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.chart)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for all that was left out, whatever the verbosity."""
    if terminalreporter.stats.get("skipped") and (reason := client.unavailable()):
        terminalreporter.write_line(reason)


@pytest.fixture(scope="session")
def helm() -> None:
    """A Helm client can be had: built where it isn't there yet."""
    if reason := client.unavailable():
        pytest.skip(reason)
    try:
        client.client()
    except BuildError as error:
        pytest.fail(str(error))
