"""The signal before the end of a pod: its option, and the hook that sends it. Real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from vcbatch.sdk.compose import Array, CannotCompose, Framework, JobRequest, compose
from vcbatch.sdk.compose.notice import Notice

PATIENCE = 30.0


@pytest.mark.parametrize(
    ("text", "name", "seconds"),
    [("USR1@60", "USR1", 60), ("sigusr2@1", "USR2", 1), ("TERM", "TERM", 60), ("HUP@65535", "HUP", 65535)],
)
def test_slurms_spelling_is_read(text: str, name: str, seconds: int) -> None:
    assert Notice.parse(text) == Notice(name=name, seconds=seconds)


@pytest.mark.parametrize("text", ["", "KILL@60", "USR1@", "USR1@0", "USR1@65536", "B:USR1@60", "9@60", "USR1@1s"])
def test_what_is_no_signal_is_an_error(text: str) -> None:
    with pytest.raises(CannotCompose):
        Notice.parse(text)


def request(**options: Any) -> JobRequest:
    return JobRequest(command=("train.py",), image="img", signal=Notice(name="USR1", seconds=60), **options)


def test_the_grace_period_has_room_for_it_and_the_time_limit_includes_it() -> None:
    job = compose(request(time_limit=3600, framework=Framework.PYTORCH, nodes=2))
    assert job["metadata"]["annotations"]["vcbatch.dev/max-run-seconds"] == "3540"
    assert [task["template"]["spec"]["terminationGracePeriodSeconds"] for task in job["spec"]["tasks"]] == [90, 90]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"framework": Framework.MPI}, "framework mpi"),
        ({"framework": Framework.RAY}, "framework ray"),
        ({"array": Array(first=0, last=1), "max_retries": 1}, "array with retries"),
        ({"time_limit": 60}, "less than the time limit"),
    ],
)
def test_where_it_can_not_work_it_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(CannotCompose, match=why):
        compose(request(**options))


class Pod:
    """Processes with the variables of a pod, and the hook of its specification."""

    def __init__(self, folder: Path, uid: str) -> None:
        self.folder, self.uid = folder, uid
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *, handles: bool = True, **env: str) -> subprocess.Popen[bytes]:
        handler = f"signal.signal(signal.SIGUSR1, lambda *_: (open({name!r}, 'w').close(), sys.exit(0)))"
        handling = handler if handles else "pass"
        script = f"import signal, sys, time; {handling}; open('up-{name}', 'w').close(); time.sleep(60)"
        process = subprocess.Popen(
            [sys.executable, "-c", script], cwd=self.folder, env={**os.environ, "VC_POD_UID": self.uid, **env}
        )
        self.started.append(process)
        deadline = time.monotonic() + PATIENCE
        while not (self.folder / f"up-{name}").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return process

    def run_hook(self, seconds: int = 20) -> float:
        spec: dict[str, Any] = {"containers": [{"name": "main"}]}
        Notice(name="USR1", seconds=seconds).apply(spec)
        command = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
        started = time.monotonic()
        done = subprocess.Popen(command, env={**os.environ, "VC_POD_UID": self.uid})
        while done.poll() is None:
            for process in self.started:
                process.poll()
            time.sleep(0.02)
        assert done.returncode == 0
        return time.monotonic() - started

    def signalled(self) -> set[str]:
        return {path.name for path in self.folder.iterdir() if not path.name.startswith("up-")}

    def close(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()


@pytest.fixture
def pods(tmp_path: Path) -> Any:
    made = [Pod(tmp_path, f"{name}-{os.getpid()}") for name in ("own", "other")]
    yield made
    for pod in made:
        pod.close()


def test_every_rank_gets_it_and_neither_launcher_nor_others(pods: list[Pod]) -> None:
    own, other = pods
    launcher = own.start("launcher")
    shell = own.start("shell", handles=False)
    loader = own.start("loader", handles=False, LOCAL_RANK="0")
    for rank in range(3):
        own.start(f"rank{rank}", LOCAL_RANK=str(rank))
    stranger = other.start("stranger", LOCAL_RANK="0")
    own.run_hook()
    assert own.signalled() == {"rank0", "rank1", "rank2"}
    assert [process.poll() for process in (launcher, shell, loader, stranger)] == [None] * 4


def test_without_ranks_every_process_that_handles_it_gets_it(pods: list[Pod]) -> None:
    own, other = pods
    own.start("program")
    shell = own.start("shell", handles=False)
    other.start("stranger")
    own.run_hook()
    assert own.signalled() == {"program"}
    assert shell.poll() is None


def test_where_no_process_handles_it_nothing_waits(pods: list[Pod]) -> None:
    own, _ = pods
    program = own.start("program", handles=False)
    assert own.run_hook(seconds=20) < 15
    assert program.poll() is None


def test_it_waits_no_longer_than_it_was_given(pods: list[Pod]) -> None:
    own, _ = pods
    script = "import signal, time; signal.signal(signal.SIGUSR1, lambda *_: None); open('up-slow', 'w').close(); "
    slow = subprocess.Popen(
        [sys.executable, "-c", script + "[time.sleep(1) for _ in range(60)]"],
        cwd=own.folder,
        env={**os.environ, "VC_POD_UID": own.uid},
    )
    own.started.append(slow)
    deadline = time.monotonic() + PATIENCE
    while not (own.folder / "up-slow").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert 2 <= own.run_hook(seconds=2) < 15
    assert slow.poll() is None
