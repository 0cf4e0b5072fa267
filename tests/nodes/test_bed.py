"""The cluster itself: what a kubelet, containers, the network between pods and the names of Services give to tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.processes import wait_until
from tests.nodes.namespace import Json, Namespace, container


def _pod(name: str, runs: Json, *, node: str = "", **spec: object) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [runs],
            **({"nodeName": node} if node else {}), **spec,
        },
    }  # fmt: skip


def _phase(namespace: Namespace, name: str) -> str:
    pod = namespace.plane.call("GET", f"/api/v1/namespaces/{namespace.name}/pods/{name}")
    return str(pod["status"].get("phase"))


@pytest.mark.parametrize("node", ["node1", "node2"])
def test_each_node_runs_containers(namespace: Namespace, node: str, tmp_path: Path) -> None:
    """With logs, a command inside, and a file out of it."""
    namespace.apply(
        _pod("first", container("echo hello from $(hostname); echo data > /tmp/file; sleep 600"), node=node)
    )
    namespace.kubectl("wait", "--for=condition=Ready", "pod/first", "--timeout=120s")
    assert namespace.logs("first") == "hello from first\n"
    assert namespace.kubectl("exec", "first", "--", "cat", "/tmp/file") == "data\n"
    namespace.kubectl("cp", "first:/tmp/file", str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_text(encoding="utf-8") == "data\n"


def test_pods_reach_each_other_by_the_name_of_a_service(namespace: Namespace) -> None:
    """From the other node as from the same one, through kube-proxy and CoreDNS."""
    answers = "while true; do echo here | nc -l -p 8080; done"
    namespace.apply(_pod("server", container(answers), node="node1"))
    service = {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": 8080}]}
    namespace.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "answers"}, "spec": service})
    namespace.kubectl("wait", "--for=condition=Ready", "pod/server", "--timeout=120s")
    asks = 'until [ "$(nc -w 2 answers 80 </dev/null)" = here ]; do sleep 0.2; done'
    for node in ("node1", "node2"):
        namespace.apply(_pod(f"client-{node}", container(asks), node=node))
    for node in ("node1", "node2"):
        wait_until(f"an answer on {node}", lambda name=f"client-{node}": _phase(namespace, name) == "Succeeded")
