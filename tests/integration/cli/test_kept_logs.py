"""The logs of pods that were deleted, by every operation that deletes pods."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.integration.cli.conftest import Shell
from tests.support.up import RunningVcbatch

pytestmark = pytest.mark.xdist_group("cli")

PATIENCE = 60.0  # seconds


def started(shell: Shell, name: str, script: str, *options: str) -> None:
    """Run a program as a job, and return when it has printed its first line."""
    shell.run("run", "--detach", "--name", name, *options, "--", "sh", "-c", script).ok()
    until(lambda: shell.run("job", "logs", name).out)


def until(condition: object, text: str = "") -> None:
    deadline = time.monotonic() + PATIENCE
    while not (seen := condition()) or text not in str(seen):  # type: ignore[operator]
        assert time.monotonic() < deadline, seen
        time.sleep(0.1)


def test_a_cancelled_job_keeps_its_log(shell: Shell) -> None:
    started(shell, "cancelled", "trap 'echo last words; exit 0' TERM; echo first; sleep 600 & wait")
    shell.run("job", "cancel", "cancelled").ok()
    shell.run("wait", "cancelled", "--for", "terminated").ok()
    until(lambda: shell.run("job", "logs", "cancelled").out, "last words")
    said = shell.run("job", "logs", "cancelled")
    assert (said.code, said.out, said.err) == (0, "first\nlast words\n", "")
    assert shell.run("job", "logs", "-f", "cancelled").out == "first\nlast words\n"
    assert shell.run("job", "logs", "--tail", "1", "cancelled").out == "last words\n"
    stamped = shell.run("job", "logs", "--timestamps", "cancelled").out
    assert [line.partition(" ")[2] for line in stamped.splitlines()] == ["first", "last words"]
    assert stamped.startswith("20")
    time.sleep(1.1)
    late = shell.run("job", "logs", "--since", "1s", "cancelled")
    assert late.out == ""
    assert late.err.startswith("cancelled has printed nothing since ")


def test_each_attempt_of_a_suspended_and_resumed_job_keeps_its_log(shell: Shell) -> None:
    started(shell, "resumed", "echo run $(cat runs 2>/dev/null || echo 0); echo 1 > runs; sleep 600")
    shell.run("job", "suspend", "resumed").ok()
    shell.run("wait", "resumed", "--for", "aborted").ok()
    suspended = shell.run("job", "logs", "resumed")
    assert suspended.out == "run 0\n"
    assert suspended.err.startswith("resumed is suspended")
    shell.run("job", "resume", "resumed").ok()
    until(lambda: shell.run("job", "logs", "resumed").out, "run 1")
    assert shell.run("job", "logs", "resumed").out == "run 1\n"
    assert shell.run("job", "logs", "--previous", "resumed").out == "run 0\n"
    assert shell.run("job", "logs", "--attempt", "1", "resumed").out == "run 0\n"
    assert shell.run("job", "logs", "--attempt", "2", "resumed").out == "run 1\n"
    described = shell.run("job", "describe", "resumed").out
    assert "Kept logs: attempt 1 in /" in " ".join(described.split())
    assert "/logs/default/resumed/" in described
    none = shell.run("job", "logs", "--attempt", "3", "resumed")
    assert none.code == 1
    assert "there is no attempt 3\nAttempts with logs: 1, 2." in none.err
    shell.run("job", "delete", "resumed").ok()


def test_a_time_limit_leaves_the_log(shell: Shell) -> None:
    shell.run("run", "--name", "limited", "--time-limit", "2s", "--", "sh", "-c", "echo before; sleep 600")
    assert shell.run("job", "logs", "limited").out == "before\n"


def test_a_restart_keeps_the_log_of_the_failure(shell: Shell) -> None:
    script = "[ -e there ] && { echo better; exit 0; }; touch there; echo broken; exit 3"
    said = shell.run("run", "--name", "retried", "--max-retries", "1", "--nodes", "2", "--", "sh", "-c", script)
    assert said.code == 0, said
    before = shell.run("job", "logs", "--previous", "retried").out
    assert "broken" in before
    assert "broken" in shell.run("job", "logs", "--attempt", "1", "retried").out


def test_a_deleted_job_is_found_by_its_name(shell: Shell) -> None:
    for word in ("older", "newer"):
        started(shell, "same", f"echo {word}; sleep 600")
        shell.run("job", "delete", "same").ok()
        shell.run("wait", "same", "--for", "deleted").ok()
        until(lambda word=word: shell.run("job", "logs", "same").out, word)
    said = shell.run("job", "logs", "same")
    assert said.out == "newer\n"
    note, _, uid = said.err.strip().rpartition(" ")
    assert note == "logs of 1 more deleted job named same are kept: --uid"
    assert shell.run("job", "logs", "--uid", uid, "same").out == "older\n"
    assert shell.run("job", "logs", "--task", "nobody", "same").code == 1
    missing = shell.run("job", "logs", "never-there")
    assert (missing.code, missing.out) == (1, "")


def test_there_is_always_a_reason_for_an_empty_log(shell: Shell) -> None:
    shell.run("run", "--name", "quiet", "--", "true").ok()
    said = shell.run("job", "logs", "quiet")
    assert (said.code, said.out, said.err) == (0, "", "quiet has printed nothing (its pod ended)\n")
    shell.run("run", "--detach", "--name", "still", "--", "sleep", "600").ok()
    shell.run("wait", "still", "--for", "running").ok()
    assert shell.run("job", "logs", "still").err == "still has printed nothing yet (its pod runs)\n"
    shell.run("job", "delete", "still").ok()
    shell.run("run", "--detach", "--name", "bare", "--volume", "configmap/none:/data", "--", "true").ok()
    until(lambda: shell.run("job", "logs", "bare").err, "worker/0 has not started: ")
    shell.run("job", "delete", "bare").ok()


def test_logs_survive_a_killed_server_once_each(tmp_path: Path) -> None:
    """The server is killed while it deletes the pods of a job; the next one finds the logs, and no line twice."""
    program = RunningVcbatch(tmp_path)
    with program:
        shell = Shell(program, tmp_path)
        shell.run(
            "run", "--detach", "--name", "gang", "--nodes", "8", "--", "sh", "-c", "echo said; exec sleep 600"
        ).ok()
        until(lambda: shell.run("job", "logs", "gang").out.count("said") == 8)
        pid = int((program.state / "pid").read_text().split()[0])
        shell.run("job", "delete", "gang").ok()
        os.kill(pid, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text())
        program.up()
        shell.run("wait", "gang", "--for", "deleted").ok()
        until(lambda: shell.run("job", "logs", "gang").out.count("said") >= 8)
        assert shell.run("job", "logs", "gang").out.count("said") == 8
        left = [path.name for path in (program.state / "kubelet" / "pods").iterdir()]
        until(lambda: not list((program.state / "kubelet" / "pods").iterdir()), str(left)[:0])


def test_a_command_that_follows_a_job_ends_with_the_local_server(tmp_path: Path) -> None:
    with RunningVcbatch(tmp_path) as program:
        shell = Shell(program, tmp_path)
        running = shell.start("run", "--name", "left", "--", "sh", "-c", "echo said; sleep 600")
        until(lambda: shell.run("job", "logs", "left").out)
        following = shell.start("job", "logs", "-f", "left")
        assert following.stdout is not None
        assert following.stdout.readline() == "said\n"
        program.down()
        for command in (running, following):
            _, err = command.communicate(timeout=PATIENCE)
            assert command.returncode == 1
            assert f"error: the local server of {program.state} has ended" in err, err


def test_a_server_can_keep_no_logs(tmp_path: Path) -> None:
    with RunningVcbatch(tmp_path, arguments=("--log-retention", "0")) as program:
        shell = Shell(program, tmp_path)
        started(shell, "gone", "echo said; sleep 600")
        shell.run("job", "cancel", "gone").ok()
        shell.run("wait", "gone", "--for", "terminated").ok()
        until(lambda: json.loads(shell.run("pod", "list", "-o", "json").out)["items"] == [])
        said = shell.run("job", "logs", "gone")
        assert said.out == ""
        assert said.err == "gone has no pods: logs of deleted pods are not kept here (vcbatch up --log-retention 0)\n"
        assert not (program.state / "logs").exists()
