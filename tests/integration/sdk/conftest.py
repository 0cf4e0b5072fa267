"""One `vcbatch up` for the tests of the SDK in a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.up import RunningVcbatch
from vcbatch import Client


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVcbatch]:
    with RunningVcbatch(tmp_path_factory.mktemp("sdk")) as program:
        yield program


@pytest.fixture(scope="module")
def state_dir(running: RunningVcbatch) -> Path:
    return running.state


@pytest.fixture
def client(state_dir: Path) -> Iterator[Client]:
    with Client.local(state_dir=state_dir, start=False) as client:
        yield client
