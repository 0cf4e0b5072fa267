"""One `vcbatch up` for the clients that others wrote; every test has a namespace of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kubernetes import client, config

from tests.support.up import RunningVcbatch

_numbers = itertools.count()


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVcbatch]:
    with RunningVcbatch(tmp_path_factory.mktemp("clients")) as program:
        yield program


@pytest.fixture(scope="session")
def kubeconfig(running: RunningVcbatch) -> Path:
    return running.kubeconfig


@pytest.fixture(scope="session")
def connection(kubeconfig: Path) -> Iterator[client.ApiClient]:
    """The official client, as its users set it up. Some of its own helpers know only the default configuration."""
    config.load_kube_config(str(kubeconfig))
    with client.ApiClient() as connection:
        yield connection


@pytest.fixture
def new_namespace(connection: client.ApiClient) -> Iterator[Callable[[], str]]:
    core = client.CoreV1Api(connection)
    made: list[str] = []

    def make() -> str:
        name = f"clients-{next(_numbers)}"
        core.create_namespace({"metadata": {"name": name}})
        made.append(name)
        return name

    yield make
    for name in made:
        core.delete_namespace(name)


@pytest.fixture
def namespace(new_namespace: Callable[[], str]) -> str:
    return new_namespace()
