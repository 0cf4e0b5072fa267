"""One `vcbatch up` for all example jobs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.lacking import need_kubectl
from tests.support.up import RunningVcbatch


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVcbatch]:
    need_kubectl()
    with RunningVcbatch(tmp_path_factory.mktemp("training")) as program:
        yield program
