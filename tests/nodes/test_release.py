"""The connections of the release's pods, over all that the tests before did to them."""

from __future__ import annotations

import pytest

from tests.nodes.bed import HUB
from tests.nodes.connections import Connection, Watch, allowed, parse
from tests.nodes.installed import COMPONENTS, NAMESPACE, Installed


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
