"""Programs of Prometheus, from Debian's package. Tests that need them are marked `monitoring`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.debian import programs


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"promtool", "prometheus"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.monitoring)


@pytest.fixture(scope="session")
def promtool() -> Path:
    return programs("prometheus", "promtool")[0]


@pytest.fixture(scope="session")
def prometheus() -> Path:
    return programs("prometheus", "prometheus")[0]
