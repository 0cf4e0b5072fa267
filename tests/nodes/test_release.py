"""The release: what its admission, its policies and its own test do, and how it is upgraded and removed."""

from __future__ import annotations

import base64
import json

import pytest

from tests.cluster.history import Recorder
from tests.cluster.processes import wait_until
from tests.nodes.connections import Connection, Watch, allowed, parse
from tests.nodes.installed import COMPONENTS, NAMESPACE, RELEASE, WEBHOOKS, Client, Installed, path_of
from tests.nodes.namespace import Json, Namespace, container, job, node_of, task
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


def test_the_network_policies_allow_all_that_the_programs_do(installed: Installed, connections: Watch) -> None:
    """Every connection of their pods so far, from the nodes' tables: what they made and what they took."""
    policies = installed.plane.call("GET", f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies")
    nodes = {node.address for node in installed.bed.nodes.values()}
    seen = connections.seen()
    for component in COMPONENTS:
        pods = {pod["status"]["podIP"]: pod["metadata"]["labels"] for pod in installed.pods(component)}
        made = [each for each in seen if each.source in pods]
        taken = [each for each in seen if each.target in pods]
        assert {each.port for each in made} == {installed.plane.port}, f"{component} asks the API server alone"
        for each in made:
            assert allowed(policies["items"], pods[each.source], each, egress=True), each
        for each in taken:
            probe = each.source.endswith(".1") or each.source in nodes  # a kubelet, which no policy keeps out
            assert probe or allowed(policies["items"], pods[each.target], each, egress=False), each
        if component == WEBHOOKS:
            assert any(each.port == 8443 for each in taken), "nobody asked"


@pytest.mark.parametrize(
    ("other", "egress", "expected"),
    [
        (Connection("TCP", "10.244.1.5", "10.250.0.1", 6443), True, True),
        (Connection("TCP", "10.244.1.5", "10.250.0.1", 443), True, False),
        (Connection("UDP", "10.244.1.5", "10.250.0.1", 6443), True, False),
        (Connection("TCP", "10.244.1.5", "192.0.2.1", 6443), True, False),
        (Connection("TCP", "192.0.2.1", "10.244.1.5", 8080), False, True),
        (Connection("TCP", "192.0.2.1", "10.244.1.5", 8081), False, False),
    ],
)
def test_policies_are_judged(other: Connection, egress: bool, expected: bool) -> None:
    """What the test above relies on."""
    spec = {
        "podSelector": {"matchLabels": {"app": "x"}},
        "policyTypes": ["Ingress", "Egress"],
        "egress": [{"ports": [{"protocol": "TCP", "port": 6443}], "to": [{"ipBlock": {"cidr": "10.250.0.0/24"}}]}],
        "ingress": [{"ports": [{"protocol": "TCP", "port": 8080}]}],
    }
    assert allowed([{"spec": spec}], {"app": "x"}, other, egress=egress) is expected
    assert allowed([{"spec": spec}], {"app": "y"}, other, egress=egress)


def test_a_line_of_the_table_of_connections() -> None:
    """Behind a Service's address it is the answering side that counts."""
    line = (
        "tcp      6 86391 ESTABLISHED src=10.244.1.5 dst=10.0.0.1 sport=40000 dport=443 "
        "src=10.250.0.1 dst=10.244.1.5 sport=6443 dport=40000 [ASSURED] mark=0 use=1"
    )
    assert parse(line) == Connection("TCP", "10.244.1.5", "10.250.0.1", 6443)
    assert parse("conntrack v1.4.8 (conntrack-tools): 1 flow entries have been shown.") is None


def test_an_upgrade_and_a_rollback_disturb_no_gang(installed: Installed, namespace: Namespace) -> None:
    """Every pod of the release is replaced, twice; running pods are the same, and no creation is refused."""
    namespace.submit(job("gang", task("member", 2, container("sleep 600"))))
    before = {pod["metadata"]["uid"] for pod in namespace.wait_running("gang", 2)}
    ours = _uids(installed)
    client = Client(namespace)
    with Recorder(namespace.plane, path_of(namespace.name)) as recorder:
        with client.submitting():
            installed.upgrade({f"{component}.logLevel": "debug" for component in COMPONENTS})
            upgraded = _uids(installed)
            assert not ours & upgraded
            installed.helm("rollback", RELEASE, "--wait", "--timeout=180s")
            assert not upgraded & _uids(installed)
        client.wait_completed()
        recorder.catch_up()
        assert not [change for change in recorder.changes() if change.type == "DELETED" and change.uid in before]
    assert client.accepted
    assert client.refused == []
    now = namespace.running("gang")
    assert {pod["metadata"]["uid"] for pod in now} == before
    assert all(status["restartCount"] == 0 for pod in now for status in pod["status"]["containerStatuses"])


def _uids(installed: Installed) -> set[str]:
    """The running pods of the release."""
    return {
        pod["metadata"]["uid"]
        for component in COMPONENTS
        for pod in installed.pods(component)
        if "deletionTimestamp" not in pod["metadata"]
    }


def test_jobs_outlive_the_release_and_go_on_with_the_next(installed: Installed, namespace: Namespace) -> None:
    """Uninstalled, nothing keeps pods from being made and running ones go on; installed again, the job completes."""
    waits = container("while ! test -e /tmp/end; do sleep 0.2; done")
    namespace.submit(job("gang", task("member", 2, waits)))
    before = {pod["metadata"]["uid"] for pod in namespace.wait_running("gang", 2)}
    installed.helm("uninstall", RELEASE, "--wait", "--timeout=120s")
    try:
        wait_until("its pods are gone", lambda: not any(installed.pods(each) for each in COMPONENTS), pause=0.2)
        assert not installed.configurations("validating")
        assert not installed.configurations("mutating")
        pod: Json = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "plain"},
            "spec": {"restartPolicy": "Never", "containers": [container("true")]},
        }
        namespace.apply(pod)
        namespace.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/plain", "--timeout=60s")
        assert {each["metadata"]["uid"] for each in namespace.running("gang")} == before
        assert namespace.phase("gang") == "Running"
    finally:
        installed.install()
    assert {each["metadata"]["uid"] for each in namespace.running("gang")} == before
    for index in range(2):
        namespace.kubectl("exec", f"gang-member-{index}", "--", "touch", "/tmp/end")
    namespace.wait_phase("gang", "Completed")
