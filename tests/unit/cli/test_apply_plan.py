"""The plan of `vcbatch apply`: what is wrong in a file is found before the server is asked to apply it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pytest

from tests.screens.play import call
from tests.support.kubeconfigs import kubeconfig
from tests.support.scripted_http import Answer, Asked, refused, scripted
from vcbatch.cli.apply.plan import plan
from vcbatch.cli.files.manifests import Manifest
from vcbatch.cli.files.positions import placed
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.client.rest import RestApi

JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: a}
spec:
  minAvailabel: 3
  tasks:
    - {name: w, replicas: three, template: {spec: {containers: [{name: main, image: a}]}}}
"""


class Broken:
    """A server that has no objects and fails on each change."""

    async def get(self, *_: Any, **__: Any) -> Any:
        raise ApiError(404, "NotFound", "not there")

    async def apply(self, *_: Any, **__: Any) -> Any:
        raise ApiError(500, "InternalError", "panic")


def test_a_typo_is_an_error_of_the_file_whatever_the_server_makes_of_it() -> None:
    (one,) = placed(JOB)
    manifest = Manifest(file="f.yaml", placed=one)
    steps, refusals = asyncio.run(plan(cast("RestApi", Broken()), [manifest], namespace="default", force=False))
    assert steps == []
    assert sorted((manifest.place(one.field), one.message) for one in refusals) == [
        ("f.yaml:5:3", "unknown field 'spec.minAvailabel'; did you mean 'minAvailable'?"),
        ("f.yaml:7:17", 'spec.tasks[0].replicas: must be an integer, got "three"'),
    ]


def test_a_correct_file_still_depends_on_the_server() -> None:
    (one,) = placed(JOB.replace("Availabel", "Available").replace("three", "3"))
    manifest = Manifest(file="f.yaml", placed=one)
    with pytest.raises(ApiError, match="panic"):
        asyncio.run(plan(cast("RestApi", Broken()), [manifest], namespace="default", force=False))


STORED = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "a", "namespace": "default", "uid": "1"},
    "spec": {"minAvailable": 1, "tasks": [{"name": "w", "replicas": 1, "template": {"spec": {"containers": []}}}]},
}


@pytest.mark.parametrize("answer", [True, False])
def test_a_job_with_changed_immutable_fields_is_recreated_after_a_question(tmp_path: Path, answer: bool) -> None:
    """The server has the job until it is deleted, and rejects changes of its tasks."""
    deleted: list[str] = []

    def served(asked: Asked) -> Answer:
        if asked.method == "DELETE":
            deleted.append(asked.path)
        if asked.method == "GET" and not deleted:
            return Answer(body=STORED)
        if asked.method == "GET":
            return refused(404, "NotFound", "gone")
        if asked.method == "PATCH" and asked.path.endswith("/a") and not deleted:
            return refused(422, "Invalid", "job updates may not change fields other than `minAvailable`")
        return Answer(body=STORED)

    file = tmp_path / "a.yaml"
    file.write_text(JOB.replace("minAvailabel: 3", "minAvailable: 1").replace("three", "1"))
    questions: list[str] = []

    def confirm(question: str, **_: Any) -> bool:
        questions.append(question)
        return answer

    with scripted(served) as server, mock.patch("sys.stdin") as stdin, mock.patch("click.confirm", confirm):
        stdin.isatty.return_value = True
        code, out, err = call(["apply", "-f", str(file)], kubeconfig(tmp_path, server.url))
    assert "spec.tasks[0].template.spec.containers" in err
    assert questions[0] == "Delete and recreate them? Their running pods are stopped."
    if answer:
        assert (code, len(deleted)) == (0, 1)
        assert "job.batch.volcano.sh/a recreated" in out
    else:
        assert (code, deleted, len(questions)) == (1, [], 1)
        assert "--recreate" in err
