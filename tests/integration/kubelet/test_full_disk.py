"""A disk that is full while containers run: how they ended is known, and what their logs lack is told."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.integration.kubelet.world import LONG, PATIENCE, World, no_process, shell, terminated
from tests.support.small_disk import fill, small_disk
from vcbatch.api.pod import Pod
from vcbatch.api.reasons import LossCause
from vcbatch.core.job.causes import failure_of
from vcbatch.local.kubelet import Mode

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="containers are Linux processes")
MODES = pytest.mark.parametrize("mode", [None, Mode.PLAIN])

Json = dict[str, Any]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", megabytes=8) as folder:
        yield folder


@dataclass
class OnSmallDisk:
    """A node whose records are on the small disk; files for its pods to meet at are not."""

    node: World
    tmp_path: Path

    def waiting(self, script: str, then: str) -> str:
        return f"{script}; until [ -e {self.tmp_path}/go ]; do sleep 0.02; done; {then}"

    def go(self) -> None:
        (self.tmp_path / "go").touch()


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def runs_of(root: Path) -> list[Path]:
    """The records of the runs of the only container."""
    return sorted(root.glob("kubelet/pods/*/containers/main/*"))


def the_run(root: Path) -> Path:
    """The record of the only run of the only container."""
    (record,) = root.glob("kubelet/pods/*/containers/main/0")
    return record


@MODES
@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (7, "Failed")])
async def test_how_a_container_ended_is_known(
    tmp_path: Path, disk: Path, mode: Mode | None, code: int, phase: str
) -> None:
    here = OnSmallDisk(World(disk, mode=mode), tmp_path)
    node = here.node
    await node.start()
    await node.pod("a", here.waiting("echo up", f"exit {code}"))
    await node.log_has("a", "up")
    fill(disk)
    here.go()
    pod = await node.over("a")
    assert (pod["status"]["phase"], terminated(pod)["exitCode"]) == (phase, code)
    assert "signal" not in terminated(pod)
    await node.stop()


@MODES
async def test_how_it_ended_is_known_to_the_next_kubelet(tmp_path: Path, disk: Path, mode: Mode | None) -> None:
    here = OnSmallDisk(World(disk, mode=mode), tmp_path)
    node = here.node
    await node.start()
    await node.pod("a", here.waiting("echo up", "exit 5"))
    await node.log_has("a", "up")
    await node.phase("a", "Running")
    filler = fill(disk)
    await node.crash()
    here.go()
    async with asyncio.timeout(PATIENCE):
        while (the_run(disk) / "exit.json").read_bytes().isspace():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    filler.unlink()
    await node.start_kubelet()
    assert terminated(await node.over("a"))["exitCode"] == 5
    await node.stop()


async def test_the_log_says_what_is_missing_and_goes_on_when_there_is_room(tmp_path: Path, disk: Path) -> None:
    here = OnSmallDisk(World(disk), tmp_path)
    node = here.node
    await node.start()
    noise = "i=0; while [ $i -lt 3000 ]; do echo line-$i-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; i=$((i+1)); done"
    said = f"{noise}; touch {tmp_path}/said"
    await node.pod("a", here.waiting("echo up", f"{said}; until [ -e {tmp_path}/end ]; do sleep 0.02; done; echo last"))
    await node.log_has("a", "up")
    filler = fill(disk)
    here.go()
    while not (tmp_path / "said").exists():
        await node.phase("a", "Running")
    filler.unlink()
    (tmp_path / "end").touch()
    assert (await node.over("a"))["status"]["phase"] == "Succeeded"
    text = await node.logs("a")
    kept = [line for line in text.splitlines() if line.startswith("line-")]
    (mark,) = [line for line in text.splitlines() if line.startswith("[vcbatch: ")]
    found = re.fullmatch(r"\[vcbatch: (\d+) bytes of output in (\d+) lines are missing here: (.*)\]", mark)
    assert found is not None and found[3] == os.strerror(28)
    assert len(kept) + int(found[2]) == 3000  # the pipe holds fewer
    assert text.splitlines()[-1] == "last"
    await node.stop()


async def test_a_log_that_ends_without_room_says_so_too(tmp_path: Path, disk: Path) -> None:
    here = OnSmallDisk(World(disk), tmp_path)
    node = here.node
    await node.start()
    await node.pod("a", here.waiting("echo up", "head -c 200000 /dev/zero | tr '\\0' 'x' | fold -w 99; echo last"))
    await node.log_has("a", "up")
    fill(disk)
    here.go()
    assert (await node.over("a"))["status"]["phase"] == "Succeeded"
    assert "lines are missing here: No space left on device]" in (await node.logs("a")).splitlines()[-1]
    await node.stop()


async def test_a_container_waits_for_room_to_start(tmp_path: Path, disk: Path) -> None:
    node = World(disk)
    await node.start()
    await node.pod("first", "true")
    await node.over("first")
    filler = fill(disk)
    await node.pod("a", f"echo ran >> {tmp_path}/runs")
    waiting = await node.until(
        "a",
        lambda o: "No space left" in json.dumps(o["status"].get("containerStatuses", "")),
    )
    assert waiting["status"]["phase"] == "Pending"
    filler.unlink()
    assert (await node.over("a"))["status"]["phase"] == "Succeeded"
    assert (tmp_path / "runs").read_text() == "ran\n"
    await node.stop()


async def test_a_container_that_waits_to_restart_keeps_its_last_log(tmp_path: Path, disk: Path) -> None:
    here = OnSmallDisk(World(disk), tmp_path)
    node = here.node
    await node.start()
    script = f"if [ -e {tmp_path}/again ]; then echo second; exit 0; fi; touch {tmp_path}/again; echo first"
    await node.pod("a", here.waiting(script, "exit 1"), restartPolicy="OnFailure")
    await node.log_has("a", "first")
    filler = fill(disk)
    here.go()
    await node.until("a", lambda o: "No space left" in json.dumps(o["status"].get("containerStatuses", "")))
    async with asyncio.timeout(PATIENCE):
        tries = 0
        while tries < 3:  # each leaves no trace
            filler.touch()
            tries += [path.name for path in runs_of(disk)] == ["0"]
            await asyncio.sleep(0.5)
    filler.unlink()
    pod = await node.over("a")
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
    assert await node.logs("a", previous=True) == "first\n"
    assert await node.logs("a") == "second\n"
    await node.stop()


async def test_probes_and_hooks_need_no_disk(tmp_path: Path, disk: Path) -> None:
    node = World(disk)
    await node.start()
    probe = {
        "exec": {"command": ["sh", "-c", f"echo probed >> {tmp_path}/probes"]},
        "periodSeconds": 1,
        "failureThreshold": 1,
    }
    await node.pod("a", shell("echo up; exec sleep 1000", livenessProbe=probe), terminationGracePeriodSeconds=0)
    await node.log_has("a", "up")
    filler = fill(disk)
    before = len(lines_of(tmp_path / "probes"))
    async with asyncio.timeout(PATIENCE):
        while len(lines_of(tmp_path / "probes")) < before + 3:  # noqa: ASYNC110 - a foreign process writes it
            await asyncio.sleep(0.05)
    filler.unlink()
    status = (await node.phase("a", "Running"))["status"]["containerStatuses"][0]
    assert (status["restartCount"], status["ready"]) == (0, True)
    await node.stop()


@MODES
async def test_an_end_that_nobody_knows_is_said_to_be_unknown(tmp_path: Path, mode: Mode | None) -> None:
    """Somebody kills the process that would have written it down."""
    node = World(tmp_path, mode=mode)
    await node.start()
    await node.pod("a", f"echo up; exec sleep {LONG}04")
    await node.log_has("a", "up")
    await node.phase("a", "Running")
    init = json.loads((the_run(tmp_path) / "pid.json").read_text())["pid"]
    os.kill(init, signal.SIGKILL)
    pod = await node.over("a")
    end = terminated(pod)
    assert (end["reason"], end["exitCode"]) == ("ContainerStatusUnknown", 255)
    assert "signal" not in end and "no exit status" in end["message"]
    await no_process(f"sleep {LONG}04")  # nothing goes on of which nobody knows
    failure = failure_of(msgspec.convert(pod, Pod))
    assert failure.cause is LossCause.STATUS_UNKNOWN and failure.cause.infrastructure
    assert failure.exit_codes == ()
    await node.stop()


@MODES
async def test_a_container_that_the_kubelet_killed_is_said_to_be_killed(tmp_path: Path, mode: Mode | None) -> None:
    node = World(tmp_path, mode=mode)
    await node.start()
    await node.pod("a", "trap '' TERM; echo up; while :; do sleep 0.05; done", activeDeadlineSeconds=1,
                   terminationGracePeriodSeconds=0)  # fmt: skip
    end = terminated(await node.over("a"))
    assert (end["exitCode"], end["signal"], end["reason"]) == (137, 9, "Error")
    await node.stop()
