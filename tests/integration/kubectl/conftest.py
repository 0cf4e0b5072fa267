"""One `vcbatch up` for all kubectl tests of a worker; every test has a namespace of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.support.lacking import need_kubectl
from tests.support.up import Kubectl, RunningVcbatch

_numbers = itertools.count()


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVcbatch]:
    need_kubectl()
    with RunningVcbatch(tmp_path_factory.mktemp("kubectl")) as program:
        yield program


@pytest.fixture
def kubectl(running: RunningVcbatch) -> Iterator[Callable[..., Kubectl]]:
    """kubectl in a new namespace, which is deleted afterwards."""
    namespace = f"t{next(_numbers)}"
    running.kubectl("create", "namespace", namespace).ok()

    def call(*arguments: str, stdin: str | None = None, env: dict[str, str] | None = None) -> Kubectl:
        return running.kubectl("-n", namespace, *arguments, stdin=stdin, env=env)

    yield call
    running.kubectl("delete", "namespace", namespace, "--wait=false").ok()
