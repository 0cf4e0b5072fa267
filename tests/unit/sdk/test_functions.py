"""Functions as files: what goes to a pod, and what comes back."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import pytest

from vcbatch import ResultUnavailable, SharedFolder, TaskFailed, VcbatchError, task
from vcbatch.api import names
from vcbatch.sdk.functions import folder as folders
from vcbatch.sdk.functions.folder import CallFolder, NoResult
from vcbatch.sdk.functions.task import TaskFunction, as_task, job_of

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
    assert [type(outcome) for outcome in folder.results([0])] == [NoResult]
    assert [call(folder, index) for index in range(3)] == [0, 1, 1]
    half, zero, unloadable = folder.results(range(3))
    assert half == 0.5
    assert isinstance(zero, TaskFailed) and isinstance(zero.__cause__, ZeroDivisionError) and zero.index == 1
    assert "ZeroDivisionError" in str(zero)
    assert isinstance(unloadable, TaskFailed) and unloadable.__cause__ is None and "Unloadable" in str(unloadable)
    frames = re.findall(r"in (\w+)\n", unloadable.traceback)
    assert frames == ["divide"] and unloadable.traceback in "".join(traceback.format_exception(unloadable))
    assert not list(folder.here.glob(".result*"))
    folder.remove()
    with pytest.raises(ResultUnavailable):
        folder.calls()


def test_another_python_is_refused_in_words(folder: CallFolder):
    folder.write(divide.function, [((1, 2), {})])
    settings = folder.here / "call.json"
    settings.write_text(settings.read_text().replace('"python": "3.', '"python": "2.'))
    assert call(folder, 0) == 3
    (refused,) = folder.results([0])
    assert isinstance(refused, ResultUnavailable) and "sent from Python 2." in str(refused)


def test_what_cannot_come_back_says_what_it_is(folder: CallFolder):
    folder.write(threading.Lock, [((), {})], retries=3)
    assert call(folder, 0) == 3
    (refused,) = folder.results([0])
    assert isinstance(refused, ResultUnavailable) and "a _thread.lock, can't be pickled" in str(refused)


def third_time(marks: Path, crash: bool) -> str:
    """Works the third time. Before that it raises, or its process crashes."""
    tries = len(list(marks.iterdir())) + 1
    (marks / str(tries)).touch()
    if tries < 3:
        if crash:
            os.kill(os.getpid(), signal.SIGSEGV)
        raise RuntimeError
    return f"try {tries}"


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize(("retries", "tries"), [(0, 1), (1, 2), (2, 3), (9, 3)])
def test_a_call_that_fails_is_made_again(folder: CallFolder, tmp_path: Path, retries: int, tries: int, crash: bool):
    marks = tmp_path / "marks"
    marks.mkdir()
    folder.write(third_time, [((marks, crash), {})], retries=retries)
    code = call(folder, 0)
    assert len(list(marks.iterdir())) == tries
    (outcome,) = folder.results([0])
    if tries == 3:
        assert (code, outcome) == (0, "try 3")
    else:
        assert code != 0 and isinstance(outcome, NoResult if crash else TaskFailed)


def waits_to_be_ended(started: Path) -> None:
    started.touch()
    time.sleep(600)


def test_a_call_that_is_ended_is_not_made_again(folder: CallFolder, tmp_path: Path):
    started = tmp_path / "started"
    folder.write(waits_to_be_ended, [((started,), {})], retries=5)
    process = subprocess.Popen([sys.executable, f"{folder.there}/run.py"], stderr=subprocess.PIPE)
    while not started.exists():
        assert process.poll() is None
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM and b"try 1" not in said


def test_an_earlier_result_does_not_stand_for_a_later_try(folder: CallFolder):
    folder.write(os._exit, [((7,), {})])
    (folder.here / "result-0").write_bytes(b'{"failed": "earlier"}\n')
    assert call(folder, 0) == 7
    assert [type(outcome) for outcome in folder.results([0])] == [NoResult]


@pytest.mark.parametrize("spoiled", [b"", b"no json\n", b"{}\nno pickle", b'{"failed": "x"}\nno pickle'])
def test_a_spoiled_result_is_an_error_of_ours(folder: CallFolder, spoiled: bytes):
    folder.write(divide.function, [((1, 2), {})])
    (folder.here / "result-0").write_bytes(spoiled)
    (refused,) = folder.results([0])
    assert isinstance(refused, ResultUnavailable)


def test_the_job_on_a_cluster(tmp_path: Path):
    shared = SharedFolder(claim="data", here=tmp_path, mount_path="/mnt")
    function = divide.options(shared=shared, retries=2, python="python3.11")
    folder = CallFolder.at(TOKEN, state_dir=None, shared=shared)
    manifest: Any = job_of(function, count=5, token=TOKEN, folder=folder).to_manifest()
    spec, one = manifest["spec"], manifest["spec"]["tasks"][0]
    assert manifest["metadata"]["annotations"] == {names.CALL_FOLDER: TOKEN, names.MAX_PARALLEL_PODS: "3"}
    assert spec["volumes"] == [{"mountPath": "/mnt", "volumeClaimName": "data"}]
    assert (spec["queue"], spec["minAvailable"], spec["minSuccess"]) == ("research", 1, 5)
    assert spec["policies"] == [{"action": "RestartPod", "event": "PodEvicted"}]
    assert (one["replicas"], one["minAvailable"]) == (5, 1)
    container = one["template"]["spec"]["containers"][0]
    assert container["command"] == ["python3.11", f"/mnt/calls-{TOKEN}/run.py"]
    assert container["image"] == "img" and "workingDir" not in container
    assert container["resources"]["limits"] == {"memory": "1Gi"}
    assert "activeDeadlineSeconds" not in one["template"]["spec"]
    with pytest.raises(VcbatchError, match="image"):
        job_of(function.options(image=None), count=1, token=TOKEN, folder=folder)


def test_on_this_machine_a_function_keeps_off_nodes_that_only_pretend(tmp_path: Path):
    function = divide.options(image=None)
    folder = CallFolder.at(TOKEN, state_dir=tmp_path, shared=None)
    manifest: Any = job_of(function, count=2, token=TOKEN, folder=folder).to_manifest()
    affinity = manifest["spec"]["tasks"][0]["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": names.VIRTUAL_NODE, "operator": "NotIn", "values": ["true"]}]


@pytest.mark.parametrize(("limit", "seconds"), [(90, 90), (0.2, 1), ("2h30m", 9000), ("12:00:00", 43200)])
@pytest.mark.parametrize("here", [True, False])
def test_a_time_limit_is_each_calls_own(limit: Any, seconds: int, here: bool, tmp_path: Path):
    shared = None if here else SharedFolder(claim="data", here=tmp_path)
    function = divide.options(shared=shared, time_limit=limit)
    folder = CallFolder.at(TOKEN, state_dir=tmp_path, shared=shared)
    manifest: Any = job_of(function, count=2, token=TOKEN, folder=folder).to_manifest()
    spec = manifest["spec"]["tasks"][0]["template"]["spec"]
    assert spec["activeDeadlineSeconds"] == seconds
    assert ("affinity" in spec) == here


@pytest.mark.parametrize("limit", [0, -1, 10**10, float("nan"), float("inf"), "soon", "0s", "99999d"])
def test_a_time_limit_that_is_none_is_refused(limit: Any):
    with pytest.raises(ValueError, match="time_limit"):
        task(time_limit=limit)


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
        divide.options(gpu=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        task(gpu=1)  # type: ignore[call-overload]


async def asynchronous() -> None: ...


def generates():
    yield 1


@pytest.mark.parametrize(
    ("work", "reported"), [(asynchronous, "asyncio.run"), (generates, "returns a list"), (3, "want a function, got 3")]
)
def test_what_no_pod_could_run_is_refused_at_once(work: Any, reported: str):
    with pytest.raises(TypeError, match=reported):
        task(work)


@pytest.mark.parametrize("settings", [{"retries": -1}, {"at_most": 0}])
def test_numbers_that_make_no_sense_are_refused(settings: Any):
    with pytest.raises(ValueError, match=next(iter(settings))):
        task(**settings)


def test_arguments_are_checked_before_they_are_sent():
    as_task(divide.function).check([((1, 2), {}), ((1,), {"two": 3})])
    with pytest.raises(TypeError, match=r"divide\(\): too many positional"):
        divide.check([((1, 2), {}), ((1, 2, 3), {})])
    as_task(max).check([((), {})])  # which has no signature to go by
