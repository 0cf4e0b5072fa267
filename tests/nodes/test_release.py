"""The release over time: the connections of its pods, upgrades, and what stays when it is removed."""

from __future__ import annotations

import pytest

from tests.cluster.history import Recorder
from tests.cluster.processes import wait_until
from tests.nodes.bed import HUB
from tests.nodes.connections import Connection, Watch, allowed, parse
from tests.nodes.installed import COMPONENTS, NAMESPACE, RELEASE, WAIT, Client, Installed, path_of
from tests.nodes.namespace import Json, Namespace, container, job, task


def test_the_network_policies_allow_all_that_the_programs_do(installed: Installed, connections: Watch) -> None:
    """Every connection of their pods so far, from the nodes' tables: what they made and what they took."""
    policies = installed.plane.call("GET", f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies")
    gateways = {node.pods.replace(".0/24", ".1") for node in installed.bed.nodes.values()}
    kubelets = gateways | {node.address for node in installed.bed.nodes.values()}
    seen = connections.seen()
    for component in COMPONENTS:
        ours = [each for each in seen if ("app.kubernetes.io/component", component) in each.labels]
        made = {each.connection.port for each in ours if each.made}
        assert made == {installed.plane.port}, f"{component} asks the API server alone"
        for each in ours:
            probe = not each.made and each.connection.source in kubelets  # no policy keeps a pod's own node out
            assert probe or allowed(policies["items"], dict(each.labels), each.connection, egress=each.made), each
    taken = {each.connection.port for each in seen if not each.made and each.connection.source == HUB}
    assert taken == {8443}, "API servers ask the webhooks and nobody else"


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
            installed.helm("rollback", RELEASE, "--wait", WAIT)
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
    installed.helm("uninstall", RELEASE, "--wait", WAIT)
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
