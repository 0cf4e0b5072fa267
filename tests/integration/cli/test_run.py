"""A program as a job: its log, its exit code, and what Ctrl-C does to it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.integration.cli.conftest import Shell

pytestmark = pytest.mark.xdist_group("cli")

PATIENCE = 60.0  # seconds, for what takes one


def test_the_exit_code_is_the_programs_own_and_its_log_is_the_output(shell: Shell) -> None:
    shell.file("train.py", "import os, sys\nprint('in', os.getcwd(), sys.argv[1:], os.environ['WHO'])\nsys.exit(3)\n")
    said = shell.run("run", "--env", "WHO=me", "train.py", "--epochs", "3")
    assert said.code == 3
    assert said.out == f"in {shell.folder} ['--epochs', '3'] me\n"
    assert "created in queue default" in said.err
    assert "exited with code 3" in said.err


def test_torchrun_meets_over_the_nodes(shell: Shell) -> None:
    """A stand-in says what torchrun would have been started with."""
    module = shell.folder / "torch" / "distributed" / "run.py"
    module.parent.mkdir(parents=True)
    module.write_text("import socket, sys\nprint(*sys.argv[1:])\nsocket.gethostbyname(sys.argv[4].partition('=')[2])\n")
    shell.file("train.py", "")
    said = shell.run("run", "--nodes", "2", "--nproc-per-node", "2", "--name", "meet", "train.py", "-x")
    assert said.code == 0, said
    shown = sorted(line.split() for line in said.out.splitlines())
    assert [line[:2] for line in shown] == [["master/0", "│"], ["worker/0", "│"]]
    port = shown[0][6]
    assert port.startswith("--master-port=")
    for rank, line in enumerate(shown):
        assert line[2:] == [
            *("--nnodes=2", "--nproc-per-node=2", f"--node-rank={rank}", "--master-addr=meet-master-0.meet"),
            *(port, "train.py", "-x"),
        ]


def test_an_array_runs_so_many_at_a_time(shell: Shell) -> None:
    """Each member counts those that are there."""
    script = "touch up$VC_ARRAY_INDEX; echo $VC_ARRAY_INDEX; ls up* | wc -l > seen$VC_ARRAY_INDEX; rm up$VC_ARRAY_INDEX"
    said = shell.run("run", "--array", "3-9:2%1", "--", "sh", "-c", script)
    assert said.code == 0, said
    assert sorted(line.split()[-1] for line in said.out.splitlines()) == ["3", "5", "7", "9"]
    assert {(shell.folder / f"seen{index}").read_text().strip() for index in (3, 5, 7, 9)} == {"1"}


def test_a_failure_is_tried_again_and_its_log_is_followed(shell: Shell) -> None:
    # An attempt that is over before anybody could ask for its log takes it along.
    script = "echo try; [ -e there ] || { touch there; sleep 3; exit 2; }"
    said = shell.run("run", "--max-retries", "1", "--", "sh", "-c", script)
    assert (said.code, said.out) == (0, "try\ntry\n")
    assert "--- worker/0 restarted (attempt 2)" in said.err
    assert "and 1 restart" in said.err


def test_a_followed_log_ends_with_how_the_job_failed(shell: Shell) -> None:
    shell.run("run", "--detach", "--name", "fails", "--", "sh", "-c", "echo said; exit 4")
    followed = shell.run("job", "logs", "-f", "fails")
    assert (followed.code, followed.out) == (0, "said\n")
    assert followed.err.splitlines()[-1].endswith("pod fails-worker-0 exited with code 4 on node local")


def test_a_log_that_is_not_there_yet_says_why(shell: Shell) -> None:
    shell.run("run", "--detach", "--name", "huge", "--cpus", "9999", "--", "true").ok()
    shell.run("wait", "huge", "--for", "jsonpath={.status.state.reason}=NotEnoughResources").ok()
    said = shell.run("job", "logs", "huge")
    assert (said.code, said.out) == (0, "")
    assert said.err.startswith("huge is pending: Impossible: ")
    shell.run("job", "delete", "huge").ok()


def test_a_member_of_an_array_is_tried_again_and_stops_no_other(shell: Shell) -> None:
    script = "at=at$VC_ARRAY_INDEX; echo try; [ $at = at2 ] && exit 6; [ -e $at ] || { touch $at; exit 3; }"
    said = shell.run("run", "--array", "1-3", "--max-retries", "1", "--name", "tried", "--", "sh", "-c", script)
    assert said.code == 6, said
    assert sum(line.endswith(" try") for line in said.out.splitlines()) == 6
    assert said.out.count("try 1 of 2 ended with exit code 3") == 2
    assert "2 of 3 pods succeeded and 1 failed" in said.err


def test_one_that_fails_ends_the_gang_at_once(shell: Shell) -> None:
    said = shell.run("run", "--nodes", "2", "--", "sh", "-c", "[ $VC_TASK_INDEX = 0 ] && exit 5; sleep 600")
    assert said.code == 5, said


def test_a_time_limit(shell: Shell) -> None:
    said = shell.run("run", "--time-limit", "1s", "--", "sleep", "600")
    assert said.code == 124, said


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["nothing.py"], "nothing.py: no such file in"),
        (["./nothing"], "./nothing: not executable"),
        (["nothing-of-this-name"], "command not found in PATH"),
        (["--volume", "/data-of-no-one:/data", "true"], "/data-of-no-one: no such directory"),
        (["--workdir", "nowhere", "true"], "/nowhere: no such directory"),
    ],
)
def test_a_program_that_is_not_here_is_told_before_anything_is_submitted(
    shell: Shell, arguments: list[str], reported: str
) -> None:
    said = shell.run("run", *arguments)
    assert said.code == 1
    assert reported in said.err


def test_a_plan_is_shown_and_nothing_submitted(shell: Shell) -> None:
    shell.file("train.py", "")
    plan = shell.run("run", "--dry-run", "--name", "planned", "--gpus", "2", "train.py").ok()
    assert "torch.distributed.run" in plan
    assert f"workingDir: {shell.folder}" in plan
    assert "planned" not in shell.run("job", "list", "-o", "name").out


def test_detached_it_can_be_waited_for_read_and_looked_into(shell: Shell) -> None:
    script = "for n in 1 2 3; do echo $n; done; until [ -e go ]; do sleep 0.1; done"
    name = shell.run("run", "--detach", "-o", "name", "--nodes", "2", "--", "sh", "-c", script).ok().strip()
    job = name.removeprefix("job.batch.volcano.sh/")
    assert shell.run("wait", name, "--for", "running").ok() == f"{name} condition met\n"
    followed = shell.start("job", "logs", "-f", job)
    executed = shell.start("job", "exec", "-i", job, "--index", "1", "--", "sh", "-c", "cat; pwd; exit 7", stdin=-1)
    out, err = executed.communicate("typed\n", timeout=PATIENCE)
    assert (executed.returncode, out, err) == (7, f"typed\n{shell.folder}\n", "")
    (shell.folder / "go").touch()
    assert shell.run("wait", job, "--for", "completed").code == 0
    assert shell.run("wait", job, "--for", "failed").code == 1
    lines, _ = followed.communicate(timeout=PATIENCE)
    assert sorted(lines.splitlines()) == [f"worker/{pod} │ {n}" for pod in (0, 1) for n in (1, 2, 3)]
    assert shell.run("job", "logs", job, "--index", "1", "--tail", "2").ok() == "2\n3\n"
    assert shell.run("job", "logs", job, "--index", "1", "--tail", "1", "--prefix").ok() == "worker/1 │ 3\n"
    assert shell.run("job", "exec", job, "true").code == 1
    assert "has no pod with index 2" in shell.run("job", "logs", job, "--index", "2").err
    assert "has no task ps" in shell.run("job", "logs", job, "--task", "ps").err
    assert "has no container x" in shell.run("job", "logs", job, "-c", "x").err


def test_without_a_terminal_ctrl_c_leaves_the_job_and_says_how_to_come_back(shell: Shell) -> None:
    running = shell.start("run", "--name", "left", "--", "sh", "-c", "echo up; sleep 600")
    assert running.stdout is not None
    assert running.stdout.readline() == "up\n"
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 130
    assert (
        "left is still running. To follow or cancel it:\n  vcbatch job logs -f left\n  vcbatch job cancel left\n" in err
    )
    assert shell.run("job", "cancel", "left").ok() == "job.batch.volcano.sh/left cancelled\n"
    assert shell.run("wait", "left", "--for", "terminated").code == 0
    assert "already finished (Terminated)" in shell.run("job", "cancel", "left").ok()


@pytest.mark.parametrize(
    ("keys", "code", "reported", "phase"),
    [
        (b"c\n", 130, "was cancelled", "terminated"),
        (b"d\n", 0, "is still running", "running"),
        (b"\x03", 130, "is still running", "running"),
    ],
)
def test_on_a_terminal_ctrl_c_asks(shell: Shell, keys: bytes, code: int, reported: str, phase: str) -> None:
    name = f"asked-{phase}-{code}"
    master, slave = pty.openpty()
    try:
        running = shell.start(
            *("run", "--name", name, "--", "sh", "-c", "echo here; sleep 600"),
            stdin=slave, stdout=slave, stderr=slave, text=False, start_new_session=True, preexec_fn=_take_terminal,
        )  # fmt: skip
        os.close(slave)
        seen = _until(master, b"here")
        if b"Running  1/1 pods" not in seen:  # which of the two is told first is nobody's promise
            seen += _until(master, b"Running  1/1 pods")
        os.write(master, b"\x03")
        seen += _until(master, b"[d]etach, [c]ancel")
        os.write(master, keys)
        seen += _until(master, None)
        assert running.wait(PATIENCE) == code, seen
        assert reported in seen.decode(), seen
    finally:
        os.close(master)
    assert shell.run("wait", name, "--for", phase).code == 0
    shell.run("job", "cancel", name)


def test_a_progress_bar_moves_before_its_line_ends(shell: Shell) -> None:
    """The program draws the bar anew until somebody has seen it."""
    script = "until [ -e seen ]; do printf '\\rbar at 40%%'; sleep 0.2; done; printf '\\rbar at 100%%\\ndone\\n'"
    master, slave = pty.openpty()
    try:
        running = shell.start(
            *("run", "--name", "bar", "--", "sh", "-c", script),
            stdin=slave, stdout=slave, stderr=slave, text=False, start_new_session=True, preexec_fn=_take_terminal,
        )  # fmt: skip
        os.close(slave)
        _until(master, b"bar at 40%")
        (shell.folder / "seen").touch()
        seen = _until(master, None)
        assert running.wait(PATIENCE) == 0, seen
    finally:
        os.close(master)
    assert seen.count(b"done\r\n") == 1, seen
    assert b"bar at 100%\r\n" in seen
    assert shell.run("job", "logs", "bar").ok().endswith("\rbar at 100%\ndone\n")


def test_a_terminal_reaches_into_a_pod(shell: Shell) -> None:
    """Typed keys, the window's size, Ctrl-C, the end of input and the exit code; and the terminal is itself again."""
    shell.run("run", "--detach", "--name", "inside", "--", "sleep", "600").ok()
    shell.run("wait", "inside", "--for", "running").ok()
    master, slave = pty.openpty()
    try:
        _resize(master, columns=90, rows=25)
        before = termios.tcgetattr(slave)
        running = shell.start(
            *("job", "exec", "-it", "inside", "--", "sh", "-c", "PS1='ready ' exec sh -i"),
            stdin=slave, stdout=slave, stderr=slave, text=False, start_new_session=True, preexec_fn=_take_terminal,
        )  # fmt: skip
        _until(master, b"ready ")
        os.write(master, b"stty size\r")
        assert b"25 90" in _until(master, b"ready ")
        _resize(master, columns=100, rows=30)
        _resized(master, b"30 100")
        # Said by the program that is interrupted: a shell between fork and exec would lose the signal.
        os.write(master, b"echo in | cat - /dev/tty\r")
        _until(master, b"in\r\n")
        os.write(master, b"\x03")
        _until(master, b"ready ")
        os.write(master, b"echo code $?; cat; exit 7\r")
        _until(master, b"code 130")
        os.write(master, b"\x04")
        assert running.wait(PATIENCE) == 7
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(master)
        os.close(slave)


def test_a_shell_in_a_pod_reads_commands_from_stdin(shell: Shell) -> None:
    shell.run("run", "--detach", "--name", "shelled", "--nodes", "2", "--", "sleep", "600").ok()
    shell.run("wait", "shelled", "--for", "running").ok()
    for options, index in ((), "0"), (("--index", "1"), "1"):
        started = shell.start("shell", "shelled", *options, stdin=-1)
        out, err = started.communicate("echo index $VC_TASK_INDEX; exit 4\n", timeout=PATIENCE)
        assert (started.returncode, out) == (4, f"index {index}\n"), err
    assert "has no pod with index 2" in shell.run("shell", "shelled", "--index", "2", stdin="").err


def test_a_shell_in_a_pod_is_a_terminal_for_a_debugger(shell: Shell) -> None:
    shell.file("stop.py", "answer = 41\nbreakpoint()\nprint('answer', answer)\n")
    shell.run("run", "--detach", "--name", "debugged", "--", "sleep", "600").ok()
    shell.run("wait", "debugged", "--for", "running").ok()
    master, slave = pty.openpty()
    try:
        _resize(master, columns=91, rows=26)
        before = termios.tcgetattr(slave)
        running = shell.start(
            *("shell", "debugged"),
            stdin=slave, stdout=slave, stderr=slave, text=False, start_new_session=True, preexec_fn=_take_terminal,
        )  # fmt: skip
        _type(master, b"stty size\r", answer=b"26 91")
        os.write(master, f"{sys.executable} {shell.folder}/stop.py\r".encode())
        _until(master, b"(Pdb) ")
        os.write(master, b"answer += 1\r")
        _until(master, b"(Pdb) ")
        os.write(master, b"c\r")
        _until(master, b"answer 42")
        os.write(master, b"exit 9\r")
        assert running.wait(PATIENCE) == 9
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminal_is_itself_again_where_the_command_is_ended(shell: Shell, number: signal.Signals) -> None:
    name = f"ended-{number}"
    shell.run("run", "--detach", "--name", name, "--", "sleep", "600")
    assert shell.run("wait", name, "--for", "running").code == 0
    master, slave = pty.openpty()
    try:
        before = termios.tcgetattr(slave)
        running = shell.start(
            *("job", "exec", "-it", name, "--", "sh", "-c", "echo here; sleep 600"),
            stdin=slave, stdout=slave, stderr=slave, text=False, start_new_session=True, preexec_fn=_take_terminal,
        )  # fmt: skip
        _until(master, b"here")
        assert termios.tcgetattr(slave) != before
        running.send_signal(number)
        assert running.wait(PATIENCE) == 128 + number
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(master)
        os.close(slave)


def _resize(fd: int, *, columns: int, rows: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _type(fd: int, line: bytes, *, answer: bytes) -> None:
    """Type a line until it is answered: what is typed before the terminal is raw is lost."""
    deadline, seen = time.monotonic() + PATIENCE, b""
    while answer not in seen:
        assert time.monotonic() < deadline, seen
        os.write(fd, line)
        while select.select([fd], [], [], 3.0)[0]:
            seen += os.read(fd, 65536)
            if answer in seen:
                break


def _resized(fd: int, size: bytes) -> None:
    """Until the other side has this size, which it is told beside what is typed."""
    deadline = time.monotonic() + PATIENCE
    seen = b""
    while size not in seen:
        assert time.monotonic() < deadline, seen
        os.write(fd, b"stty size\r")
        seen = _until(fd, b"ready ")


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _until(fd: int, text: bytes | None) -> bytes:
    """What is read up to a text, or to the end."""
    seen, deadline = b"", time.monotonic() + PATIENCE
    while text is None or text not in seen:
        assert time.monotonic() < deadline, seen
        if not select.select([fd], [], [], 1.0)[0]:
            continue
        try:
            piece = os.read(fd, 65536)
        except OSError:  # everybody on the other side has gone
            piece = b""
        if not piece:
            assert text is None, seen
            break
        seen += piece
    return seen


def test_a_reader_that_goes_away_leaves_the_job_and_says_so(shell: Shell, tmp_path: Path) -> None:
    running = shell.start("run", "--name", "unread", "--", "sh", "-c", "while echo y; do sleep 0.1; done")
    assert running.stdout is not None
    assert running.stdout.readline() == "y\n"
    running.stdout.close()
    assert running.stderr is not None
    err = running.stderr.read()
    assert running.wait(PATIENCE) == 141
    assert "unread is still running" in err
    running.stderr.close()
    shell.run("job", "cancel", "unread")


@pytest.mark.parametrize("arguments", [("job", "logs", "-f", "silent"), ("job", "list", "-w", "--no-headers")])
def test_a_reader_that_goes_away_is_noticed_though_there_is_nothing_to_say(
    shell: Shell, arguments: tuple[str, ...]
) -> None:
    if "logs" in arguments:
        shell.run("run", "--detach", "--name", "silent", "--", "sh", "-c", "echo once; sleep 600")
    reading = shell.start(*arguments)
    assert reading.stdout is not None and reading.stdout.readline()
    reading.stdout.close()
    assert reading.wait(PATIENCE) == 141
    assert reading.stderr is not None and reading.stderr.read() == ""
    reading.stderr.close()


def test_a_job_that_can_never_start_ends_the_command_with_the_reason_and_a_code_of_its_own(shell: Shell) -> None:
    said = shell.run("run", "--name", "too-large", "--cpus", "9999", "--", "true")
    assert (said.code, said.out) == (125, "")
    assert "too-large can't start on this cluster: " in said.err
    assert "9999" in said.err and "--wait-impossible" in said.err
    shell.run("wait", "too-large", "--for", "terminated", "--timeout", "30s").ok()
    shell.run("job", "delete", "too-large").ok()


def test_a_user_may_wait_for_a_larger_cluster(shell: Shell) -> None:
    process = shell.start("run", "--name", "patient", "--wait-impossible", "--cpus", "9999", "--", "true")
    shell.run("wait", "patient", "--for", "created", "--timeout", "60s").ok()
    shell.run("wait", "patient", "--for", "jsonpath={.status.state.reason}=NotEnoughResources").ok()
    time.sleep(2)
    assert process.poll() is None
    shell.run("job", "cancel", "patient").ok()
    process.communicate(timeout=PATIENCE)
    assert process.returncode != 125


def test_a_job_is_deleted_some_time_after_its_end(shell: Shell) -> None:
    shell.run("run", "--name", "brief", "--ttl", "1s", "--", "true").ok()
    shell.run("wait", "brief", "--for", "deleted", "--timeout", "30s").ok()


def test_a_job_of_the_same_name_is_replaced_on_request(shell: Shell) -> None:
    shell.run("run", "--detach", "--name", "again", "--", "sleep", "600").ok()
    refused = shell.run("run", "--name", "again", "--", "echo", "second")
    assert refused.code == 1
    assert "job again already exists" in refused.err and "--replace" in refused.err
    kept = shell.run("run", "--name", "again", "--replace", "--queue", "of-no-one", "--", "echo", "second")
    assert kept.code == 1
    assert shell.run("job", "list", "--field-selector", "metadata.name=again", "-o", "name").out
    replaced = shell.run("run", "--name", "again", "--replace", "--", "echo", "second")
    assert (replaced.code, replaced.out) == (0, "second\n")
    assert "job.batch.volcano.sh/again deleted" in replaced.err
