"""A job as torchx submits it, and what torchx reads of it and writes to it.

The shape and the reads are those of its Kubernetes scheduler: one task for each replica, the phase by `/status`.
"""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.rest import ApiException

from tests.integration.clients.waiting import until

Json = dict[str, Any]
JOBS = ("batch.volcano.sh", "v1alpha1")
PHASES = {
    "Pending", "Running", "Completed", "Failed", "Aborting", "Aborted", "Restarting", "Terminating", "Terminated",
}  # fmt: skip
POD_PHASES = {"Pending", "Running", "Succeeded", "Failed", "Unknown"}


def task(job: str, replica: int, command: str) -> Json:
    labels = {
        "app.kubernetes.io/name": job,
        "app.kubernetes.io/managed-by": "torchx.pytorch.org",
        "app.kubernetes.io/instance": job,
        "torchx.pytorch.org/version": "0.7.0",
        "torchx.pytorch.org/app-name": "app",
        "torchx.pytorch.org/role-index": "0",
        "torchx.pytorch.org/role-name": "trainer",
        "torchx.pytorch.org/replica-id": str(replica),
    }
    # The rank's host is put together by the shell, from the variable that the env plugin sets.
    rank0 = {"name": "TORCHX_RANK0_HOST", "value": "localhost"} if replica == 0 else {"name": "RANK", "value": "1"}
    container = {
        "name": f"trainer-{replica}",
        "image": "ghcr.io/pytorch/torchx:0.7.0",
        "command": ["bash", "-c", command],
        "env": [rank0, {"name": "TORCHX_JOB_ID", "value": f"kubernetes://torchx/{job}"}],
        "ports": [],
        "resources": {"limits": {"cpu": "20m", "memory": "64M"}, "requests": {"cpu": "10m", "memory": "32M"}},
        "volumeMounts": [{"mountPath": "/dev/shm", "name": "dshm"}],
    }
    return {
        "replicas": 1,
        "name": f"trainer-{replica}",
        "maxRetry": 2,
        "policies": [
            {"event": "PodEvicted", "action": "RestartJob"},
            {"event": "PodFailed", "action": "RestartJob"},
        ],
        "template": {
            "metadata": {"annotations": {"sidecar.istio.io/inject": "false"}, "labels": labels},
            "spec": {
                "containers": [container],
                "restartPolicy": "Never",
                "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}],
            },
        },
    }


def app(name: str, *commands: str) -> Json:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "volcano",
            "queue": "default",
            "tasks": [task(name, replica, command) for replica, command in enumerate(commands)],
            "maxRetry": 0,
            "plugins": {"svc": ["--publish-not-ready-addresses"], "env": []},
        },
    }


class Torchx:
    """What its scheduler does with the official client."""

    def __init__(self, connection: client.ApiClient, namespace: str) -> None:
        self.custom = client.CustomObjectsApi(connection)
        self.at = (*JOBS, namespace, "jobs")

    def submit(self, body: Json) -> None:
        # Newer ones try it out first.
        self.custom.create_namespaced_custom_object(*self.at, body, dry_run="All")
        self.custom.create_namespaced_custom_object(*self.at, body)

    def read(self, name: str) -> Json:
        read = self.custom.get_namespaced_custom_object_status(*self.at, name)
        if status := read.get("status"):
            assert status["state"]["phase"] in PHASES
            for counts in status.get("taskStatusCount", {}).values():
                assert next(iter(counts["phase"])) in POD_PHASES
        return read

    def phase(self, name: str) -> str:
        status = self.read(name).get("status")
        return status["state"]["phase"] if status else ""

    def phases(self) -> dict[str, str]:
        """`list` of its newest release needs the phase of every job that has a status."""
        items = self.custom.list_namespaced_custom_object(*self.at)["items"]
        return {one["metadata"]["name"]: one["status"]["state"]["phase"] for one in items if "status" in one}

    def cancel(self, name: str) -> bool:
        """Whether that was taken: it isn't where somebody wrote the status since it was read."""
        read = self.read(name)
        read["status"]["state"]["phase"] = "Aborted"
        try:
            self.custom.replace_namespaced_custom_object_status(*self.at, name, read)
        except ApiException as error:
            if error.status != 409:
                raise
            return False
        return True


@pytest.fixture
def torchx(connection: client.ApiClient, namespace: str) -> Torchx:
    return Torchx(connection, namespace)


def test_an_app_runs_to_its_end(torchx: Torchx, connection: client.ApiClient, namespace: str):
    finds = 'test "$(getent hosts $VC_TRAINER_0_HOSTS | wc -l)" -ge 1 && echo host $VC_TRAINER_0_HOSTS'
    torchx.submit(app("app-1", "echo rank 0; df /dev/shm > /dev/null", finds))
    until(lambda: torchx.phase("app-1") == "Completed")
    assert torchx.phases() == {"app-1": "Completed"}
    read = torchx.read("app-1")
    assert read["spec"]["minAvailable"] == 2, "the sum over the tasks"
    assert {name: counts["phase"] for name, counts in read["status"]["taskStatusCount"].items()} == {
        "trainer-0": {"Succeeded": 1},
        "trainer-1": {"Succeeded": 1},
    }
    core = client.CoreV1Api(connection)
    log = core.read_namespaced_pod_log("app-1-trainer-1-0", namespace, timestamps=True)
    assert "host app-1-trainer-0-0" in log
    pod = core.read_namespaced_pod("app-1-trainer-0-0", namespace)
    assert pod.metadata.labels["torchx.pytorch.org/replica-id"] == "0" and pod.status.pod_ip


def test_a_failing_replica_restarts_the_app_until_it_gives_up(torchx: Torchx):
    torchx.submit(app("app-2", "exit 3"))
    until(lambda: torchx.phase("app-2") == "Failed", seconds=45)
    read = torchx.read("app-2")
    assert read["spec"]["maxRetry"] == 3, "0 stands for the default"


def test_a_cancel_by_a_written_phase_ends_its_pods(torchx: Torchx, connection: client.ApiClient, namespace: str):
    torchx.submit(app("app-3", "sleep 600", "sleep 600"))
    until(lambda: torchx.phase("app-3") == "Running")
    # It reads and writes at once; another write in between would be a conflict that its user sees.
    version = torchx.read("app-3")["metadata"]["resourceVersion"]
    until(lambda: len(torchx.read("app-3")["status"].get("taskStatusCount", {})) == 2)
    until(lambda: torchx.cancel("app-3"))
    assert torchx.phase("app-3") == "Aborted"
    core = client.CoreV1Api(connection)
    until(lambda: not core.list_namespaced_pod(namespace).items)
    assert torchx.phase("app-3") == "Aborted"
    assert int(torchx.read("app-3")["metadata"]["resourceVersion"]) > int(version)
    torchx.custom.delete_namespaced_custom_object(*torchx.at, "app-3")
    until(lambda: torchx.phases() == {})
