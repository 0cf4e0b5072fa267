"""A kubelet that is gone from one moment to the next, and its successor: nothing is lost, nothing runs twice."""

import asyncio
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.kubelet.world import LONG, PATIENCE, World, no_process, processes_with, shell, terminated
from vcbatch.api.resources import PODS
from vcbatch.interfaces.processes import ProcessSpec, ProcessStartError
from vcbatch.local.kubelet import Mode, end_containers, open_processes

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="containers are Linux processes")
MODES = pytest.mark.parametrize("mode", [None, Mode.PLAIN])


@MODES
async def test_a_running_container_is_adopted_and_its_exit_code_kept(tmp_path: Path, mode: Mode | None) -> None:
    node = World(tmp_path, mode=mode)
    await node.start()
    await node.pod("a", "echo before; until [ -e go ]; do sleep 0.02; done; echo after; exit 7")
    await node.log_has("a", "before")
    before = await node.phase("a", "Running")
    await node.crash()

    await node.start_kubelet()
    (tmp_path / "go").touch()
    pod = await node.over("a")
    status = pod["status"]["containerStatuses"][0]
    assert (terminated(pod)["exitCode"], status["restartCount"]) == (7, 0)
    assert status["containerID"] == before["status"]["containerStatuses"][0]["containerID"]
    assert pod["status"]["podIP"] == before["status"]["podIP"]
    assert await node.logs("a") == "before\nafter\n"
    await node.stop()


@MODES
async def test_what_ended_meanwhile_is_told_with_its_exit_code(tmp_path: Path, mode: Mode | None) -> None:
    node = World(tmp_path, mode=mode)
    await node.start()
    await node.pod("a", f"echo up; until [ -e go ]; do sleep 0.02; done; exit 9 # {LONG}01")
    await node.log_has("a", "up")
    await node.phase("a", "Running")
    await node.crash()
    (tmp_path / "go").touch()
    await no_process(f"{LONG}01")

    await node.start_kubelet()
    assert terminated(await node.over("a"))["exitCode"] == 9
    await node.stop()


@MODES
async def test_a_pod_deleted_meanwhile_leaves_no_process(tmp_path: Path, mode: Mode | None) -> None:
    node = World(tmp_path, mode=mode)
    await node.start()
    await node.pod("a", f"echo up; (setsid sleep {LONG}02 &) ; exec sleep {LONG}02")
    await node.log_has("a", "up")
    await node.phase("a", "Running")
    await node.crash()
    await node.api.delete(PODS, "a", namespace="default", grace_seconds=0)

    await node.start_kubelet()
    assert processes_with(f"sleep {LONG}02") == []
    assert list((tmp_path / "kubelet" / "pods").iterdir()) == []
    await node.stop()


async def test_a_restart_in_progress_goes_on_with_its_count(tmp_path: Path) -> None:
    node = World(tmp_path)
    await node.start()
    await node.pod("a", "if [ -e one ]; then until [ -e go ]; do sleep 0.02; done; else touch one; exit 1; fi",
                   restartPolicy="OnFailure")  # fmt: skip
    await node.until("a", lambda o: o["status"].get("containerStatuses", [{"restartCount": 0}])[0]["restartCount"] == 1)
    await node.crash()

    await node.start_kubelet()
    (tmp_path / "go").touch()
    status = (await node.over("a"))["status"]["containerStatuses"][0]
    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 1
    await node.stop()


@MODES
async def test_everything_can_be_ended_without_a_kubelet(tmp_path: Path, mode: Mode | None) -> None:
    node = World(tmp_path, mode=mode)
    await node.start()
    await node.pod("a", f"echo up; (setsid sh -c 'trap \"\" TERM; sleep {LONG}03' &) ; sleep {LONG}03")
    await node.log_has("a", "up")
    await node.phase("a", "Running")
    await node.crash()
    assert await asyncio.wait_for(end_containers(tmp_path / "kubelet"), PATIENCE) == 1
    assert processes_with(f"sleep {LONG}03") == []

    await node.start_kubelet()
    pod = await node.over("a")
    assert (pod["status"]["phase"], terminated(pod)["exitCode"]) == ("Failed", 137)
    await node.stop()


async def test_lost_records_are_said_to_be_lost_and_never_run_twice(tmp_path: Path) -> None:
    node = World(tmp_path)
    await node.start()
    await node.pod("a", shell("echo ran >> runs; until [ -e go ]; do sleep 0.02; done"))
    await node.phase("a", "Running")
    await node.crash()
    await end_containers(tmp_path / "kubelet")
    (tmp_path / "kubelet").rename(tmp_path / "lost")

    await node.start_kubelet()
    end = terminated(await node.over("a"))
    assert (end["exitCode"], end["reason"]) == (137, "ContainerStatusUnknown")
    assert (tmp_path / "runs").read_text() == "ran\n"
    await node.stop()


async def test_a_start_that_was_given_up_does_not_happen_later(tmp_path: Path) -> None:
    processes, _ = await open_processes()
    record, again = tmp_path / "record", tmp_path / "again"
    record.mkdir()
    again.mkdir()
    spec = ProcessSpec(record=record, argv=["touch", str(tmp_path / "ran")], env={}, working_dir="/", hostname="h")
    await processes.start(replace(spec, argv=["true"]))  # the supervisor is up
    supervisor = processes._supervisor._process
    assert supervisor is not None
    supervisor.send_signal(signal.SIGSTOP)
    starting = asyncio.create_task(processes.start(replace(spec, record=again)))
    while not asked(again):  # noqa: ASYNC110 - the request is on its way
        await asyncio.sleep(0)
    assert await processes.adopt(again) is None
    supervisor.send_signal(signal.SIGCONT)
    with pytest.raises(ProcessStartError):
        await starting
    assert sorted(path.name for path in listed(tmp_path)) == ["again", "record"]
    await processes.close()


def listed(directory: Path) -> list[Path]:
    return list(directory.iterdir())


def asked(record: Path) -> bool:
    """Whether a start is asked for in this record."""
    return (record / "spec.json").exists()


async def test_a_supervisor_that_is_killed_costs_no_container(tmp_path: Path) -> None:
    node = World(tmp_path)
    await node.start()
    await node.pod("a", "until [ -e go ]; do sleep 0.02; done; exit 4")
    await node.phase("a", "Running")
    supervisor = node.kubelet._processes._supervisor._process  # type: ignore[attr-defined]
    supervisor.kill()
    supervisor.wait()
    await node.pod("b", "exit 6")
    (tmp_path / "go").touch()
    assert terminated(await node.over("a"))["exitCode"] == 4
    assert terminated(await node.over("b"))["exitCode"] == 6
    await node.stop()
