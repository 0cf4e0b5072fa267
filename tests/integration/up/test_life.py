"""Starting, stopping, being killed, and starting again."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.integration.up.conftest import left_over
from tests.integration.up.manifests import job
from tests.support.up import RunningVcbatch, vcbatch

pytestmark = pytest.mark.kubectl


def wait_for_phase(program: RunningVcbatch, name: str, phase: str) -> None:
    program.kubectl("wait", f"vcjob/{name}", f"--for=jsonpath={{.status.state.phase}}={phase}", "--timeout=60s").ok()


def server_pid(program: RunningVcbatch) -> int:
    return int((program.state / "pid").read_text().split()[0])


def alive(pid: int) -> bool:
    """A zombie that nobody has buried yet runs nothing."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def kill(program: RunningVcbatch) -> None:
    """As the kernel does when memory is short: no goodbye."""
    process = psutil.Process(server_pid(program))
    os.kill(process.pid, signal.SIGKILL)
    psutil.wait_procs([process], timeout=60)


def test_a_job_can_be_submitted_the_moment_it_says_ready(program: RunningVcbatch):
    program.up()
    program.kubectl("apply", "-f", "-", stdin=job("hello", "echo hello; hostname", replicas=3)).ok()
    wait_for_phase(program, "hello", "Completed")
    assert "hello" in program.kubectl("logs", "hello-w-2").ok()
    node = json.loads(program.kubectl("get", "nodes", "-o", "json").ok())["items"][0]
    assert any(item["type"] == "Ready" and item["status"] == "True" for item in node["status"]["conditions"])
    queues = json.loads(program.kubectl("get", "queues", "-o", "json").ok())["items"]
    assert {queue["metadata"]["name"]: queue["status"]["state"] for queue in queues} == {
        "default": "Open", "root": "Open",
    }  # fmt: skip


def test_what_is_kept_is_the_users_alone(program: RunningVcbatch):
    program.up()
    assert stat.S_IMODE(program.state.stat().st_mode) == 0o700
    assert stat.S_IMODE(program.kubeconfig.stat().st_mode) == 0o600
    for path in program.state.rglob("*"):
        if (path.is_file() and path.suffix in (".key", ".db")) or path.name in ("token", "log"):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_killed_server_finds_its_pods_again_and_their_results(program: RunningVcbatch):
    program.up()
    marks = program.folder / "marks"
    marks.mkdir()
    # Each pod notes its start, waits for the go, and ends with a code of its own.
    command = f"echo x >> {marks}/$HOSTNAME; until [ -e {marks}/go ]; do sleep 0.05; done; exit 3"
    program.kubectl("apply", "-f", "-", stdin=job("adopted", command, replicas=2)).ok()
    wait_for_phase(program, "adopted", "Running")
    for _ in range(2):
        kill(program)
        program.up()
    pods = json.loads(program.kubectl("get", "pods", "-o", "json").ok())["items"]
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    kill(program)
    (marks / "go").touch()  # they end while nobody watches
    program.up()
    wait_for_phase(program, "adopted", "Failed")
    pods = json.loads(program.kubectl("get", "pods", "-o", "json").ok())["items"]
    ended = [pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for pod in pods]
    assert ended == [3, 3]
    assert [path.read_text() for path in marks.glob("adopted*")] == ["x\n", "x\n"], "a pod ran twice"


def test_down_after_a_kill_leaves_nothing_running(program: RunningVcbatch):
    program.up()
    program.kubectl("apply", "-f", "-", stdin=job("long", "sleep 600", replicas=2)).ok()
    wait_for_phase(program, "long", "Running")
    records = list(program.state.glob("kubelet/pods/*/containers/*/*/pid.json"))
    pids = [json.loads(record.read_text())["pid"] for record in records]
    assert len(pids) == 2 and all(alive(pid) for pid in pids)
    kill(program)
    said = vcbatch("down", "--state-dir", str(program.state)).stdout
    assert "2 containers" in said
    assert not any(alive(pid) for pid in pids)
    assert left_over(program.state) == []


def test_down_is_the_same_twice_and_where_nothing_ever_ran(program: RunningVcbatch, tmp_path: Path):
    program.up()
    port = int(program.kubeconfig.read_text().partition("127.0.0.1:")[2].split()[0])
    assert "stopped" in vcbatch("down", "--state-dir", str(program.state)).stdout
    assert "is not running" in vcbatch("down", "--state-dir", str(program.state)).stdout
    assert "is not running" in vcbatch("down", "--state-dir", str(tmp_path / "nowhere")).stdout
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_the_port_stays_the_same_from_one_start_to_the_next(program: RunningVcbatch):
    program.up()
    before = program.kubeconfig.read_text()
    program.down()
    vcbatch("up", "--detach", "--state-dir", str(program.state))
    assert program.kubeconfig.read_text() == before


def test_what_it_prints_can_be_pasted_wherever_its_state_is(tmp_path: Path):
    state = tmp_path / "my state's"
    said = vcbatch("up", "--detach", "--port", "0", "--kubelet-mode", "none", "--state-dir", str(state)).stdout
    (export,) = (line for line in said.splitlines() if "export" in line)
    down = said.partition("To stop it: `")[2].partition("`")[0].removeprefix("vcbatch ")
    try:
        assert bash(f'{export}; echo "$KUBECONFIG"') == f"{state}/kubeconfig\n"
        assert bash(f"{sys.executable} -m vcbatch {down}") == "vcbatch stopped\n"
    finally:
        vcbatch("down", "--state-dir", str(state))


def bash(line: str) -> str:
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, timeout=90).stdout


def test_two_on_one_state_directory_is_refused_and_the_first_stays(program: RunningVcbatch):
    program.up()
    for arguments in (["--detach"], []):
        second = vcbatch("up", "--state-dir", str(program.state), *arguments, check=False)
        assert second.returncode == 1
        assert f"already running on {program.state} (pid {server_pid(program)})" in second.stderr
        assert "Traceback" not in second.stderr
    program.kubectl("get", "nodes").ok()


@pytest.mark.parametrize("detach", [True, False])
def test_a_port_in_use_is_said(program: RunningVcbatch, detach: bool):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        arguments = ["--detach"] if detach else []
        refused = vcbatch("up", "--state-dir", str(program.state), "--port", str(port), *arguments, check=False)
    assert refused.returncode == 1
    assert f"port {port}" in refused.stderr and "--port" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_state_directory_of_a_newer_version_is_left_alone(program: RunningVcbatch):
    program.up()
    program.down()
    database = program.state / "state.db"
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    before = database.read_bytes()
    refused = vcbatch("up", "--detach", "--state-dir", str(program.state), check=False)
    assert refused.returncode == 1
    assert "newer version" in refused.stderr
    assert database.read_bytes() == before


def test_status_says_what_runs_and_that_nothing_does(program: RunningVcbatch):
    nothing = vcbatch("status", "--state-dir", str(program.state), check=False)
    assert nothing.returncode == 1
    assert "is not running" in nothing.stderr
    program.up()
    program.kubectl("apply", "-f", "-", stdin=job("big", "true", replicas=2, cpu="1000")).ok()
    program.kubectl("wait", "pg", "--all", "--for=condition=Unschedulable", "--timeout=80s").ok()
    said = vcbatch("status", "--state-dir", str(program.state)).stdout
    assert "default/big" in said and "Pending" in said
    assert "local" in said and "Ready" in said and "Open" in said


def test_ctrl_c_ends_pods_and_everything(program: RunningVcbatch):
    process = subprocess.Popen(
        [sys.executable, "-m", "vcbatch", "up", "--port", "0", "--state-dir", str(program.state)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "Ctrl-C" in line:
            break
    program.kubectl("apply", "-f", "-", stdin=job("long", "sleep 600", replicas=2)).ok()
    wait_for_phase(program, "long", "Running")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert left_over(program.state) == []


def test_virtual_nodes_pretend_and_go_when_they_arent_asked_for(tmp_path: Path, program: RunningVcbatch):
    program.arguments = ("--virtual-nodes", "3", "--virtual-node-size", "cpu=80,nvidia.com/gpu=0,ephemeral-storage=1Ti")
    program.up()
    shown = program.kubectl("get", "node", "virtual-0002", "-o", "jsonpath={.status.allocatable}").ok()
    assert json.loads(shown) == {"cpu": "80", "memory": "768Gi", "pods": "110", "ephemeral-storage": "1Ti"}
    wide = program.kubectl("get", "nodes", "-o", "wide", "-l", "kubernetes.io/os=linux,kubernetes.io/arch").ok()
    assert len(wide.splitlines()) == 1 + 4
    program.kubectl("apply", "-f", "-", stdin=job("big", "sleep 1", replicas=6, cpu="40")).ok()
    wait_for_phase(program, "big", "Completed")
    refused = program.kubectl("logs", "big-w-0").fails()
    assert "(MethodNotAllowed)" in refused
    assert "is on simulated node" in refused
    said = vcbatch("job", "logs", "-f", "big", "--kubeconfig", str(program.kubeconfig))
    assert (said.stdout, said.stderr) == (
        "",
        "pods of big on simulated nodes print nothing\n",
    )
    program.down()
    program.arguments = ()
    program.up()
    nodes = program.kubectl("get", "nodes", "-o", "name").ok().split()
    assert nodes == ["node/local"]
