"""kopf as others use it: annotations, finalizers, events, timers, indexes, and an operator that starts again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.rest import ApiException

from tests.integration.clients.waiting import until
from tests.integration.up.manifests import job

OPERATOR = Path(__file__).with_name("operator.py")
JOBS = ("batch.volcano.sh", "v1alpha1")


@contextmanager
def operator(kubeconfig: Path, namespace: str, log: Path) -> Iterator[None]:
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "kopf", "run", "--standalone", "--verbose", "-n", namespace, str(OPERATOR)],
            env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            stdout=output,
            stderr=output,
        )
    try:
        yield
        assert process.poll() is None, log.read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    said = log.read_text()
    assert "Traceback" not in said, said


def target(name: str, value: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"role": "target"}}, "data": {"value": value}}


@pytest.fixture
def core(connection: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(connection)


def gone(core: client.CoreV1Api, name: str, namespace: str) -> bool:
    try:
        core.read_namespaced_config_map(name, namespace)
    except ApiException as error:
        return error.status == 404
    return False


def test_an_operator_runs_unmodified(
    core: client.CoreV1Api, connection: client.ApiClient, kubeconfig: Path, namespace: str, tmp_path: Path
):
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "i", "labels": {"role": "input"}},
                                                  "data": {"value": "x"}})  # fmt: skip
    custom = client.CustomObjectsApi(connection)

    def annotations(name: str) -> dict[str, str]:
        return core.read_namespaced_config_map(name, namespace).metadata.annotations or {}

    with operator(kubeconfig, namespace, tmp_path / "log"):
        core.create_namespaced_config_map(namespace, target("t", "1"))
        until(lambda: {"example.com/created", "example.com/ticked"} <= annotations("t").keys())
        stored = core.read_namespaced_config_map("t", namespace)
        assert stored.metadata.annotations["example.com/created"] == "x", "the index was filled before the handler ran"
        assert stored.metadata.finalizers == ["example.com/operator"]
        core.patch_namespaced_config_map("t", namespace, {"data": {"value": "2"}})
        until(lambda: annotations("t").get("example.com/updated") == "1->2")
        reasons = until(lambda: {one.reason for one in core.list_namespaced_event(namespace).items} >= {"Seen"})
        assert reasons

        custom.create_namespaced_custom_object(*JOBS, namespace, "jobs", json.loads(job("j", "sleep 600")))

        def adopted() -> dict[str, Any] | None:
            read = custom.get_namespaced_custom_object(*JOBS, namespace, "jobs", "j")
            phase = ((read.get("status") or {}).get("state") or {}).get("phase")
            return read if (read["metadata"].get("labels") or {}) and phase == "Running" else None

        stored_job = until(adopted)
        assert stored_job["metadata"]["labels"] == {"example.com/adopted": "yes"}
        assert stored_job["metadata"]["finalizers"] == ["example.com/operator"]

    # Its finalizer holds what is deleted while it is away.
    core.delete_namespaced_config_map("t", namespace)
    custom.delete_namespaced_custom_object(*JOBS, namespace, "jobs", "j")
    assert core.read_namespaced_config_map("t", namespace).metadata.deletion_timestamp is not None
    core.create_namespaced_config_map(namespace, target("u", "1"))

    with operator(kubeconfig, namespace, tmp_path / "log"):
        until(lambda: gone(core, "t", namespace))
        until(lambda: not custom.list_namespaced_custom_object(*JOBS, namespace, "jobs")["items"])
        until(lambda: "example.com/created" in annotations("u"))
    with operator(kubeconfig, namespace, tmp_path / "log"):
        until(lambda: annotations("u").get("example.com/resumed") == "yes")
        core.delete_namespaced_config_map("u", namespace)
        until(lambda: gone(core, "u", namespace))
