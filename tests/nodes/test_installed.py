"""What a new release gives: admission by the Service, replicas on different nodes, and Helm's own test."""

from __future__ import annotations

import base64
import json

from tests.nodes.installed import COMPONENTS, RELEASE, Installed
from tests.nodes.namespace import Namespace, container, job, node_of, task
from tests.nodes.test_jobs import MPI

_HANDSHAKE = """\
import socket, ssl
name = "volcano-admission-service.volcano-system.svc"
context = ssl.create_default_context(cafile="/authority/ca.crt")
with socket.create_connection((name, 443), timeout=10) as plain:
    with context.wrap_socket(plain, server_hostname=name) as secure:
        print(secure.version())
"""


def test_a_wrong_job_is_refused_through_the_service(installed: Installed, namespace: Namespace) -> None:
    """The API server asks the pods behind volcano-admission-service, and says what they said."""
    wrong = job("wrong", task("member", 2, container("true")), minAvailable=3)
    done = installed.plane.kubectl("-n", namespace.name, "create", "-f", "-", stdin=json.dumps(wrong))
    assert done.returncode == 1
    assert 'admission webhook "jobs.validate.volcano.sh" denied the request' in done.stderr
    plain = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plain"},
        "spec": {"restartPolicy": "Never", "containers": [container("true")]},
    }
    namespace.apply(plain)
    namespace.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/plain", "--timeout=60s")


def test_pods_trust_the_service_by_the_authority_that_is_registered(installed: Installed, namespace: Namespace) -> None:
    """By its name in the cluster, with the certificate that it made for itself."""
    bundle = installed.configurations("validating")[0]["webhooks"][0]["clientConfig"]["caBundle"]
    authority = {"ca.crt": base64.b64decode(bundle).decode()}
    namespace.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "authority"}, "data": authority})
    runs = container(f"python3 -c '{_HANDSHAKE}'", image=MPI)
    runs["volumeMounts"] = [{"name": "authority", "mountPath": "/authority"}]
    volumes = [{"name": "authority", "configMap": {"name": "authority"}}]
    namespace.submit(job("asks", task("once", 1, runs, spec={"volumes": volumes})))
    namespace.wait_phase("asks", "Completed")
    assert namespace.logs("asks-once-0") == "TLSv1.3\n"


def test_replicas_run_on_different_nodes(installed: Installed) -> None:
    for component in COMPONENTS:
        assert {node_of(pod) for pod in installed.pods(component)} == {"node1", "node2"}, component


def test_helm_runs_its_test(installed: Installed) -> None:
    """A gang to Completed, by the chart's own pod."""
    said = installed.helm("test", RELEASE, "--timeout=150s")
    assert "Phase:          Succeeded" in said
