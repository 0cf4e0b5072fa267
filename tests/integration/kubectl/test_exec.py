"""Commands in pods, files to and from them, and their ports, with the real kubectl."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.kubelet.world import no_process, processes_with
from tests.support.up import Kubectl, RunningVcbatch

Call = Callable[..., Kubectl]
pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("kubectl")]

PATIENCE = 60.0
LONG = f"2{os.getpid()}.0"
"""A time to sleep that no other test run uses, so that leftovers are found by it; digits may follow."""

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  nodeName: local
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  volumes: [{name: data, emptyDir: {}}]
  containers:
  - name: main
    image: any
    command: [sh, -c, "sleep 600"]
    env: [{name: GREETING, value: hello}]
    volumeMounts: [{name: data, mountPath: /data}]
"""

TALKER = """\
apiVersion: v1
kind: Pod
metadata: {name: t}
spec:
  nodeName: local
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: any
    stdin: true
    stdinOnce: true
    command: [sh, -c, 'while read line; do echo "got $line"; done; echo end']
  - {name: deaf, image: any, command: [sleep, "600"]}
"""

SERVER = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  nodeName: local
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  volumes: [{name: data, emptyDir: {}}]
  containers:
  - name: main
    image: any
    command: [sh, -c, "head -c 3000000 /dev/zero > blob; exec python3 -m http.server 8000 --bind $POD_IP"]
    workingDir: /data
    env: [{name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
    readinessProbe: {httpGet: {port: 8000}, periodSeconds: 1}
    volumeMounts: [{name: data, mountPath: /data}]
"""


def create(kubectl: Call, manifest: str, name: str) -> None:
    kubectl("apply", "-f", "-", stdin=manifest).ok()
    kubectl("wait", f"pod/{name}", "--for=condition=Ready", "--timeout=60s").ok()


@pytest.fixture(params=["websocket", "spdy"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What kubectl upgrades to: older versions know only SPDY, newer ones can be told to use it."""
    if request.param == "spdy":
        monkeypatch.setenv("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "false")
        monkeypatch.setenv("KUBECTL_PORT_FORWARD_WEBSOCKETS", "false")
    return request.param


@pytest.fixture
def pod(kubectl: Call) -> Call:
    create(kubectl, POD, "p")
    return kubectl


@contextlib.contextmanager
def background(running: RunningVcbatch, *arguments: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A kubectl that runs beside the test and is gone afterwards."""
    with subprocess.Popen(["kubectl", "--kubeconfig", str(running.kubeconfig), *arguments], **options) as process:
        try:
            yield process
        finally:
            process.kill()


def namespace_of(kubectl: Call) -> str:
    return kubectl("get", "pods", "-o", "jsonpath={.items[0].metadata.namespace}").ok()


@pytest.mark.usefixtures("way")
def test_output_errors_and_exit_code_come_back(pod: Call) -> None:
    done = pod("exec", "p", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.code, done.out) == (3, "out\n")
    assert "err\n" in done.err
    assert "command terminated with exit code 3" in done.err


def test_a_command_is_inside_the_container(pod: Call) -> None:
    script = "hostname; echo $GREETING; ls -d /data; grep -c '\tp$' /etc/hosts; echo $$"
    hostname, greeting, data, known, pid = pod("exec", "p", "-c", "main", "--", "sh", "-c", script).ok().split()
    assert (hostname, greeting, data, known) == ("p", "hello", "/data", "1")
    assert int(pid) < 1000  # its processes are numbered anew


@pytest.mark.usefixtures("way")
def test_input_is_passed_on_and_ends(pod: Call) -> None:
    text = "line\n" * 100_000
    assert pod("exec", "-i", "p", "--", "wc", "-l", stdin=text).ok().strip() == "100000"
    assert pod("exec", "-i", "p", "--", "cat", stdin=text).ok() == text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("p", "--", "no-such-program"), 'exec: "no-such-program": executable file not found in $PATH'),
        (("p", "-c", "other", "--", "true"), "container other is not valid for pod p"),
        (("nobody", "--", "true"), 'pods "nobody" not found'),
    ],
)
@pytest.mark.usefixtures("way")
def test_what_cannot_be_run_is_said(pod: Call, arguments: tuple[str, ...], words: str) -> None:
    assert words in pod("exec", *arguments).fails()


def test_a_container_that_has_ended_runs_nothing(kubectl: Call) -> None:
    kubectl("apply", "-f", "-", stdin=TALKER.replace('[sleep, "600"]', '["true"]')).ok()
    ended = "--for=jsonpath={.status.containerStatuses[?(@.name=='deaf')].state.terminated.reason}=Completed"
    kubectl("wait", "pod/t", ended, "--timeout=60s").ok()
    assert 'container not found ("deaf")' in kubectl("exec", "t", "-c", "deaf", "--", "true").fails()


@pytest.mark.usefixtures("way")
def test_a_terminal_has_the_size_of_the_window_and_a_name(pod: Call, running: RunningVcbatch) -> None:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (33, 99))
    arguments = ["-n", namespace_of(pod), "exec", "-it", "p", "--", "sh", "-c", "tty; stty size; read x; echo =$x="]
    try:
        with background(running, *arguments, stdin=slave, stdout=slave, stderr=subprocess.DEVNULL) as process:
            seen = read_until(master, rb"33 99\r\n")
            assert re.search(rb"/dev/pts/\d+\r\n", seen), seen
            os.write(master, b"typed\r")
            assert b"=typed=" in read_until(master, rb"=typed=\r\n")
            assert process.wait(PATIENCE) == 0
    finally:
        os.close(master)
        os.close(slave)


def read_until(descriptor: int, pattern: bytes) -> bytes:
    seen = b""
    deadline = time.monotonic() + PATIENCE
    while not re.search(pattern, seen):
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, seen
        seen += os.read(descriptor, 4096)
    return seen


@pytest.mark.usefixtures("way")
def test_a_command_ends_with_its_connection(pod: Call, running: RunningVcbatch) -> None:
    script = f"setsid sleep {LONG}1 & sleep {LONG}2"
    arguments = ["-n", namespace_of(pod), "exec", "p", "--", "sh", "-c", script]
    with background(running, *arguments) as process:
        asyncio.run(some_process(f"sleep {LONG}1", f"sleep {LONG}2"))
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    asyncio.run(no_process(f"sleep {LONG}"))


def test_a_command_ends_with_its_container(pod: Call, running: RunningVcbatch) -> None:
    arguments = ["-n", namespace_of(pod), "exec", "p", "--", "sleep", f"{LONG}3"]
    with background(running, *arguments, stderr=subprocess.PIPE) as process:
        asyncio.run(some_process(f"sleep {LONG}3"))
        pod("delete", "pod", "p").ok()
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode in (128 + signal.SIGTERM, 128 + signal.SIGKILL)
        assert b"command terminated with exit code" in said
    asyncio.run(no_process(f"sleep {LONG}3"))


async def some_process(*markers: str) -> None:
    async with asyncio.timeout(PATIENCE):
        for marker in markers:
            # kubectl's own command line has the marker as well
            while len(processes_with(marker)) < 2:  # noqa: ASYNC110 - nobody tells when a foreign process starts
                await asyncio.sleep(0.02)


@pytest.mark.skipif(shutil.which("tar") is None, reason="kubectl cp needs a tar in the pod")
@pytest.mark.usefixtures("way")
def test_files_are_copied_both_ways(pod: Call, tmp_path: Path) -> None:
    sent, back = tmp_path / "sent", tmp_path / "back"
    sent.mkdir()
    (sent / "large").write_bytes(os.urandom(3_000_000))
    (sent / "small").write_text("text")
    pod("cp", str(sent), "p:/data/there").ok()
    assert pod("exec", "p", "--", "cat", "/data/there/small").ok() == "text"
    pod("cp", "p:/data/there", str(back)).ok()
    assert (back / "large").read_bytes() == (sent / "large").read_bytes()
    assert (back / "small").read_text() == "text"


@pytest.mark.usefixtures("way")
def test_ports_are_forwarded(kubectl: Call, running: RunningVcbatch) -> None:
    create(kubectl, SERVER, "web")
    arguments = ["-n", namespace_of(kubectl), "port-forward", "pod/web", ":8000"]
    with background(running, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        port = int(re.search(rb"127\.0\.0\.1:(\d+) ->", process.stdout.readline())[1])  # type: ignore[index]
        for _ in range(3):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            connection.request("GET", "/blob")
            assert connection.getresponse().read() == bytes(3_000_000)
            connection.close()


@pytest.mark.usefixtures("way")
def test_a_port_without_a_listener_is_said(pod: Call, running: RunningVcbatch) -> None:
    arguments = ["-n", namespace_of(pod), "port-forward", "pod/p", ":9"]
    with background(running, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        port = int(re.search(rb"127\.0\.0\.1:(\d+) ->", process.stdout.readline())[1])  # type: ignore[index]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        with pytest.raises((http.client.HTTPException, OSError)):
            connection.request("GET", "/")
            connection.getresponse()
        connection.close()
        said = process.stderr.readline().decode()
        assert re.search(r"forwarding port 9 to pod p: dial tcp 127\.\d+\.\d+\.\d+:9: connection refused", said), said


@pytest.mark.usefixtures("way")
def test_attached_is_heard_and_spoken_to_until_the_container_ends(kubectl: Call) -> None:
    create(kubectl, TALKER, "t")
    assert kubectl("attach", "-i", "t", "-c", "main", stdin="one\ntwo\n").ok() == "got one\ngot two\nend\n"
    assert kubectl("logs", "t", "-c", "main").ok() == "got one\ngot two\nend\n"


def test_input_that_is_not_open_is_refused(kubectl: Call) -> None:
    create(kubectl, TALKER, "t")
    assert "container deaf has no standard input" in kubectl("attach", "-i", "t", "-c", "deaf", stdin="x").fails()
