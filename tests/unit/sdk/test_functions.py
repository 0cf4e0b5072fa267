"""Functions as files: what goes to a pod, and what comes back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vcbatch import ResultUnavailable, SharedFolder, TaskFailed, VcbatchError, task
from vcbatch.api import names
from vcbatch.sdk.functions import folder as folders
from vcbatch.sdk.functions.folder import CallFolder
from vcbatch.sdk.functions.task import TaskFunction, job_of

TOKEN = "abcdefgh12345678"


class Unloadable(Exception):
    """Its pickle has one argument, and it wants two."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one)
        self.two = two


@task(image="img", memory="1Gi", at_most=3, queue="research")
def divide(one: int, two: int) -> float:
    """Divides."""
    if one == 99:
        raise Unloadable("a", "b")
    return one / two


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CallFolder:
    monkeypatch.setattr(folders, "_SETTLE_SECONDS", 0.0)
    shared = SharedFolder(claim="data", here=tmp_path, mount_path=str(tmp_path))
    return CallFolder.at(TOKEN, state_dir=None, shared=shared)


def call(folder: CallFolder, index: int) -> int:
    """Make a call as a pod does."""
    command = [sys.executable, f"{folder.there}/run.py"]
    return subprocess.run(command, env={names.ENV_TASK_INDEX: str(index)}, check=False, capture_output=True).returncode


def test_calls_go_and_results_come_back(folder: CallFolder):
    folder.write(divide.function, [((1, 2), {}), ((1,), {"two": 0}), ((99, 1), {})])
    assert folder.calls() == 3
    with pytest.raises(ResultUnavailable, match="exit code 9"):
        folder.result(0, exit_code=9)
    assert [call(folder, index) for index in range(3)] == [0, 1, 1]
    assert folder.result(0) == 0.5
    with pytest.raises(TaskFailed, match="ZeroDivisionError") as caught:
        folder.result(1)
    assert isinstance(caught.value.__cause__, ZeroDivisionError) and caught.value.index == 1
    with pytest.raises(TaskFailed, match="Unloadable") as caught:
        folder.result(2)
    assert caught.value.__cause__ is None and "in divide" in caught.value.traceback
    assert not list(folder.here.glob(".result*"))
    folder.remove()
    with pytest.raises(ResultUnavailable):
        folder.calls()


def test_another_python_is_refused_in_words(folder: CallFolder):
    folder.write(divide.function, [((1, 2), {})])
    settings = folder.here / "call.json"
    settings.write_text(settings.read_text().replace('"python": "3.', '"python": "2.'))
    assert call(folder, 0) == 3
    with pytest.raises(ResultUnavailable, match=r"sent from Python 2\."):
        folder.result(0)


@pytest.mark.parametrize("spoiled", [b"", b"no json\n", b"{}\nno pickle", b'{"failed": "x"}\nno pickle'])
def test_a_spoiled_result_is_an_error_of_ours(folder: CallFolder, spoiled: bytes):
    folder.write(divide.function, [((1, 2), {})])
    (folder.here / "result-0").write_bytes(spoiled)
    with pytest.raises(ResultUnavailable):
        folder.result(0)


def test_the_job_on_a_cluster(tmp_path: Path):
    shared = SharedFolder(claim="data", here=tmp_path, mount_path="/mnt")
    function = divide.options(shared=shared, retries=2, python="python3.11")
    folder = CallFolder.at(TOKEN, state_dir=None, shared=shared)
    manifest: Any = job_of(function, count=5, token=TOKEN, folder=folder).to_manifest()
    spec, one = manifest["spec"], manifest["spec"]["tasks"][0]
    assert manifest["metadata"]["annotations"] == {names.CALL_FOLDER: TOKEN, names.MAX_PARALLEL_PODS: "3"}
    assert spec["volumes"] == [{"mountPath": "/mnt", "volumeClaimName": "data"}]
    assert (spec["queue"], spec["minAvailable"], spec["maxRetry"]) == ("research", 1, 2)
    assert (one["replicas"], one["minAvailable"]) == (5, 1)
    container = one["template"]["spec"]["containers"][0]
    assert container["command"] == ["python3.11", f"/mnt/calls-{TOKEN}/run.py"]
    assert container["image"] == "img" and "workingDir" not in container
    assert container["resources"]["limits"] == {"memory": "1Gi"}
    with pytest.raises(VcbatchError, match="image"):
        job_of(function.options(image=None), count=1, token=TOKEN, folder=folder)


def test_without_a_folder_that_both_sides_see_a_cluster_is_refused():
    with pytest.raises(VcbatchError, match="both see") as caught:
        CallFolder.at(TOKEN, state_dir=None, shared=None)
    assert "SharedFolder" in caught.value.hint


@pytest.mark.parametrize("token", ["../../etc", "", "a/b", "abcdefgh/../../x", "ABCDEFGH"])
def test_a_server_cannot_choose_the_folder_that_is_read(token: str, tmp_path: Path):
    with pytest.raises(VcbatchError):
        CallFolder.at(token, state_dir=tmp_path, shared=None)


def test_a_task_is_still_its_function():
    assert divide(1, 2) == 0.5
    assert isinstance(divide, TaskFunction) and divide.__doc__ == "Divides." and divide.__name__ == "divide"
    assert divide.options(gpus=1).settings.gpus == 1 and divide.settings.gpus is None
    with pytest.raises(TypeError):
        divide.options(gpu=1)
    with pytest.raises(TypeError):
        task(gpu=1)  # type: ignore[call-overload]
