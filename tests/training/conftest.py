"""One `vcbatch up` for all example jobs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.support.up import RunningVcbatch


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVcbatch]:
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl on the PATH")
    with RunningVcbatch(tmp_path_factory.mktemp("training")) as program:
        yield program
