"""The database lacks what was committed to it: `up` says so, and ends nothing that it can't account for."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.badluck.conftest import Unlucky
from tests.integration.kubelet.world import LONG, no_process, processes_with
from tests.support.up import vcbatch
from vcbatch.api.resources import NODES, PODS
from vcbatch.interfaces.api import ApiError

Json = dict[str, Any]


def pod(name: str, seconds: str) -> Json:
    container = {"name": "main", "image": "any", "command": ["sleep", seconds]}
    return {"metadata": {"name": name}, "spec": {"nodeName": "local", "containers": [container]}}


async def running(program: Unlucky, name: str, seconds: str) -> None:
    """Run a pod that sleeps for so long."""
    async with program.api() as api:
        assert (await api.get(NODES, "local"))["status"]["conditions"]
        await api.create(PODS, pod(name, seconds), namespace="default")
        async with asyncio.timeout(60):
            while (await api.get(PODS, name, namespace="default"))["status"]["phase"] != "Running":  # noqa: ASYNC110
                await asyncio.sleep(0.05)


class Copy:
    """The database as it was at some moment, and what may be left of it later."""

    def __init__(self, program: Unlucky, folder: Path) -> None:
        self._state = program.state
        self._folder = folder
        folder.mkdir()
        for path in self._state.glob("state.db*"):
            shutil.copy(path, folder)

    def put_back(self) -> None:
        for path in self._state.glob("state.db*"):
            path.unlink()
        for path in self._folder.iterdir():
            shutil.copy(path, self._state)

    def cut_the_log_off(self) -> None:
        os.truncate(self._state / "state.db-wal", (self._folder / "state.db-wal").stat().st_size)

    def empty(self) -> None:
        for path in self._state.glob("state.db*"):
            path.unlink()
        (self._state / "state.db").touch()


def start_again(program: Unlucky) -> str:
    """Returns what it says."""
    done = vcbatch("up", "--detach", "--state-dir", str(program.state))
    return done.stdout + done.stderr


def says(program: Unlucky) -> tuple[str, str]:
    """What `status` and `doctor` say, in one line each."""
    status = vcbatch("status", "--state-dir", str(program.state)).stdout
    doctor = vcbatch("doctor", "--kubeconfig", str(program.kubeconfig)).stdout
    return " ".join(status.split()), " ".join(doctor.split())


@pytest.mark.parametrize(
    ("happens", "all_lost"),
    [(Copy.cut_the_log_off, False), (Copy.empty, True)],
)
async def test_pods_of_lost_writes_run_on_until_their_end_is_asked_for(
    program: Unlucky, tmp_path: Path, happens: Callable[[Copy], None], all_lost: bool
):
    await asyncio.to_thread(program.up)
    await running(program, "kept", f"{LONG}11")
    copy = Copy(program, tmp_path / "copy")
    await running(program, "lost", f"{LONG}12")
    await asyncio.to_thread(program.end, signal.SIGKILL)
    happens(copy)

    said = await asyncio.to_thread(start_again, program)
    assert "warning: the database " in said
    pods = (
        "2 pods that are missing in the database are still running"
        if all_lost
        else "1 pod that is missing in the database is still running"
    )
    assert pods in said and "default/lost" in said
    command = f"vcbatch down --unaccounted --state-dir {program.state}"
    assert command in said
    for text in await asyncio.to_thread(says, program):
        assert pods in text and "the database " in text, text
    assert processes_with(f"sleep {LONG}11") and processes_with(f"sleep {LONG}12")

    # Another start knows as much, and a stop without `down` ends them no more than a start does.
    await asyncio.to_thread(program.end, signal.SIGTERM)
    assert processes_with(f"sleep {LONG}12")
    assert pods in await asyncio.to_thread(start_again, program)

    await asyncio.to_thread(vcbatch, *command.split()[1:])
    await no_process(f"sleep {LONG}12")
    for text in await asyncio.to_thread(says, program):
        assert "in the database" not in text and "the database" not in text
    async with program.api() as api:
        with pytest.raises(ApiError) as gone:
            await api.get(PODS, "lost", namespace="default")
        assert gone.value.not_found
        if not all_lost:
            # It ended with the regular stop before, as all pods do that are known.
            assert (await api.get(PODS, "kept", namespace="default"))["status"]["phase"] == "Failed"


async def test_down_ends_them_too(program: Unlucky, tmp_path: Path):
    await asyncio.to_thread(program.up)
    copy = Copy(program, tmp_path / "copy")
    await running(program, "lost", f"{LONG}13")
    await asyncio.to_thread(program.end, signal.SIGKILL)
    copy.put_back()
    assert "default/lost" in await asyncio.to_thread(start_again, program)
    await asyncio.to_thread(program.down)
    await no_process(f"sleep {LONG}13")
    assert "warning" not in await asyncio.to_thread(start_again, program)
