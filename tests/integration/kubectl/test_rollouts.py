"""Deployments and StatefulSets as people roll them out, with the real kubectl and real processes."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.up import Kubectl

Call = Callable[..., Kubectl]
pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("kubectl")]

_POD = """
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: any
        command: [sh, -c, "sleep 600"]
        env: [{name: VERSION, value: "1"}]
        resources: {requests: {cpu: 1m}}
"""
DEPLOYMENT = f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:{_POD}"""
STATEFUL_SET = f"""\
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db}}
spec:
  replicas: 2
  serviceName: db
  selector: {{matchLabels: {{app: db}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec:{_POD}"""


def _versions(kubectl: Call, app: str) -> list[str]:
    """What each pod that isn't ending has in VERSION."""
    pods = json.loads(kubectl("get", "pods", "-l", f"app={app}", "-o", "json").ok())["items"]
    return [
        pod["spec"]["containers"][0]["env"][0]["value"] for pod in pods if "deletionTimestamp" not in pod["metadata"]
    ]


def _done(kubectl: Call, what: str) -> str:
    return kubectl("rollout", "status", what, "--timeout=90s").ok()


def test_a_deployment_is_rolled_out_scaled_and_undone(kubectl: Call) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT).ok()
    assert "successfully rolled out" in _done(kubectl, "deployment/web")
    kubectl("set", "env", "deployment/web", "VERSION=2").ok()
    _done(kubectl, "deployment/web")
    assert _versions(kubectl, "web") == ["2", "2"]
    kubectl("scale", "deployment/web", "--replicas=3").ok()
    _done(kubectl, "deployment/web")
    assert _versions(kubectl, "web") == ["2", "2", "2"]
    kubectl("rollout", "undo", "deployment/web").ok()
    _done(kubectl, "deployment/web")
    assert _versions(kubectl, "web") == ["1", "1", "1"]
    history = kubectl("rollout", "history", "deployment/web").ok()
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["2", "3"]
    kubectl("rollout", "restart", "deployment/web").ok()
    _done(kubectl, "deployment/web")
    kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=60s").ok()


def test_a_paused_deployment_waits_until_it_is_resumed(kubectl: Call) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT).ok()
    _done(kubectl, "deployment/web")
    kubectl("rollout", "pause", "deployment/web").ok()
    kubectl("set", "env", "deployment/web", "VERSION=2").ok()
    kubectl("scale", "deployment/web", "--replicas=1").ok()
    kubectl("wait", "--for=jsonpath={.status.replicas}=1", "deployment/web", "--timeout=60s").ok()
    assert _versions(kubectl, "web") == ["1"]
    kubectl("rollout", "resume", "deployment/web").ok()
    _done(kubectl, "deployment/web")
    assert _versions(kubectl, "web") == ["2"]


def test_a_stateful_set_is_rolled_out_scaled_and_undone(kubectl: Call) -> None:
    kubectl("apply", "-f", "-", stdin=STATEFUL_SET).ok()
    assert "complete" in _done(kubectl, "statefulset/db")
    kubectl("set", "env", "statefulset/db", "VERSION=2").ok()
    _done(kubectl, "statefulset/db")
    assert _versions(kubectl, "db") == ["2", "2"]
    kubectl("rollout", "undo", "statefulset/db").ok()
    _done(kubectl, "statefulset/db")
    assert _versions(kubectl, "db") == ["1", "1"]
    kubectl("scale", "statefulset/db", "--replicas=1").ok()
    kubectl("wait", "--for=delete", "pod/db-1", "--timeout=60s").ok()
    assert kubectl("get", "pods", "-l", "app=db", "-o", "name").ok().split() == ["pod/db-0"]
