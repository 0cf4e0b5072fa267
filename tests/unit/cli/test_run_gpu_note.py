"""`vcbatch run` says that GPUs are free where a job requests none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.served_cluster import served_cluster
from vcbatch.api.names import GPU_RESOURCE, VIRTUAL_NODE
from vcbatch.cli.base.access import Access
from vcbatch.cli.run.gpu_note import note_free_gpus

Json = dict[str, Any]


def node(name: str, gpus: int, *, virtual: bool = False) -> Json:
    labels = {VIRTUAL_NODE: "true"} if virtual else {}
    allocatable = {"cpu": "8", **({GPU_RESOURCE: str(gpus)} if gpus else {})}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": allocatable},
    }  # fmt: skip


def pod(name: str, gpus: int, *, phase: str = "Running", on: str = "local", inits: int = 0) -> Json:
    def container(count: int) -> Json:
        return {"name": "main", "resources": {"limits": {GPU_RESOURCE: str(count)}} if count else {}}

    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": on, "containers": [container(gpus)], "initContainers": [container(inits)]},
        "status": {"phase": phase},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ([node("local", 4)], "note: 4 GPUs are free on this machine and the job requests none; add --gpus N\n"),
        ([node("local", 1)], "note: 1 GPU is free on this machine and the job requests none; add --gpus N\n"),
        ([node("local", 4), pod("a", 2), pod("b", 1, phase="Succeeded"), pod("c", 0, inits=1)], "note: 1 GPU is free"),
        ([node("local", 4), node("v", 8, virtual=True), pod("a", 8, on="v")], "note: 4 GPUs are free"),
        ([node("local", 2), pod("a", 1), pod("b", 1, phase="Pending")], ""),
        ([node("local", 0)], ""),
        ([node("v", 8, virtual=True)], ""),
    ],
)
def test_only_free_gpus_of_this_machine_count(
    objects: list[Json], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with served_cluster(objects) as cluster:
        note_free_gpus(Access(server=cluster.url))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(said) and shown.err.count("\n") == (1 if said else 0)
    assert all(len(line) <= 80 for line in shown.err.splitlines())
