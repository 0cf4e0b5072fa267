"""Commands in pods and their ports by the official Python client, which speaks older protocols than kubectl."""

from __future__ import annotations

import pytest
from kubernetes import client
from kubernetes.stream import portforward, stream

from tests.integration.clients.waiting import until

SERVER = """
import os, socket
listener = socket.create_server((os.environ["IP"], 0))
print(listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    connection.sendall(connection.recv(100).upper())
    connection.close()
"""


@pytest.fixture
def core(connection: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(connection)


@pytest.fixture
def port(core: client.CoreV1Api, namespace: str) -> int:
    """The port that the pod `p` listens on."""
    address = client.V1EnvVarSource(field_ref=client.V1ObjectFieldSelector(field_path="status.podIP"))
    container = client.V1Container(
        name="main",
        image="any",
        command=["python3", "-c", SERVER],
        env=[client.V1EnvVar(name="IP", value_from=address)],
    )
    spec = client.V1PodSpec(containers=[container], node_name="local", termination_grace_period_seconds=0)
    core.create_namespaced_pod(namespace, client.V1Pod(metadata=client.V1ObjectMeta(name="p"), spec=spec))
    until(lambda: core.read_namespaced_pod("p", namespace).status.phase == "Running")
    return int(until(lambda: core.read_namespaced_pod_log("p", namespace)))


@pytest.mark.usefixtures("port")
def test_a_command_is_run_and_talked_to(core: client.CoreV1Api, namespace: str):
    run = core.connect_get_namespaced_pod_exec
    both = ["sh", "-c", "echo out; echo err >&2"]
    said = stream(run, "p", namespace, command=both, stdin=False, stdout=True, stderr=True, tty=False)
    assert sorted(said.split()) == ["err", "out"]
    talking = stream(
        run,
        "p",
        namespace,
        command=["sh", "-c", "read line; echo got $line; exit 5"],
        stdin=True,
        stdout=True,
        stderr=True,
        tty=False,
        _preload_content=False,
    )
    talking.write_stdin("hello\n")
    talking.run_forever(timeout=30)
    assert talking.read_stdout() == "got hello\n"
    assert talking.returncode == 5
    talking.close()


def test_a_port_is_forwarded(core: client.CoreV1Api, namespace: str, port: int):
    forward = portforward(core.connect_get_namespaced_pod_portforward, "p", namespace, ports=str(port))
    connection = forward.socket(port)
    connection.sendall(b"hello")
    assert connection.recv(100) == b"HELLO"
    assert forward.error(port) is None
    connection.close()
