"""Where the pods of `vcbatch run` may go on the server of this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.screens.play import call
from tests.support.kubeconfigs import kubeconfig
from tests.support.scripted_http import Answer, scripted
from tests.support.served_cluster import served_cluster
from vcbatch.api.names import VIRTUAL_NODE
from vcbatch.cli.base.access import Access
from vcbatch.cli.base.output import CliError
from vcbatch.cli.run.place import must_have_torch, on_this_machine

Json = dict[str, Any]


def node(name: str, *, virtual: bool) -> Json:
    labels = {VIRTUAL_NODE: "true"} if virtual else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


@pytest.mark.parametrize("virtual", [False, True])
def test_no_program_goes_where_it_would_only_pretend_to_run(virtual: bool) -> None:
    job: Json = {"spec": {"tasks": [{"template": {"spec": {"containers": []}}} for _ in range(2)]}}
    with served_cluster([node("local", virtual=False), node("other", virtual=virtual)]) as cluster:
        placed = on_this_machine(job, Access(server=cluster.url))
    for task in placed["spec"]["tasks"]:
        affinity = task["template"]["spec"].get("affinity")
        assert (affinity is not None) == virtual
        if affinity is not None:
            required = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            (expression,) = required["nodeSelectorTerms"][0]["matchExpressions"]
            assert expression == {"key": VIRTUAL_NODE, "operator": "NotIn", "values": ["true"]}


@pytest.mark.parametrize(
    ("nodes", "why"), [([], "the server has no nodes"), ([node("v", virtual=True)], "all nodes are simulated")]
)
def test_where_no_node_runs_programs_that_is_said_at_once(nodes: list[Json], why: str) -> None:
    with served_cluster(nodes) as cluster, pytest.raises(CliError) as refused:
        on_this_machine({"spec": {"tasks": []}}, Access(server=cluster.url))
    assert str(refused.value) == f"{why}; nothing can run"
    assert "--kubelet-mode none" in refused.value.hint


def test_on_a_cluster_a_program_needs_an_image_and_is_told_so(tmp_path: Path) -> None:
    with scripted(lambda _: Answer(body={"gitVersion": "v1.36.0"})) as served:
        code, out, err = call(["run", "train.py"], kubeconfig(tmp_path, served.url))
    assert (code, out) == (2, "")
    assert f"error: a container image is required on a cluster ({served.url})\n" in err
    assert "--image" in err and "vcbatch up" in err
    assert {asked.path for asked in served.asked} == {"/version"}


@pytest.mark.parametrize(("processes", "alternative"), [(1, True), (2, False)])
def test_a_missing_torch_is_named_with_what_works_without_it(tmp_path: Path, processes: int, alternative: bool) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # without the site-packages
    python.chmod(0o755)
    with pytest.raises(CliError, match=r"PyTorch is not installed for .*/python") as refused:
        must_have_torch(str(python), processes=processes, directory=str(tmp_path))
    assert ("--framework none" in refused.value.hint) == alternative


def test_torch_is_found_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("")
    must_have_torch(sys.executable, processes=2, directory=str(tmp_path))
