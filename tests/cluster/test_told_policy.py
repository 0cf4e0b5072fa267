"""Users read which policy the scheduler follows, by the shipped roles and no other right to its Lease."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cluster.components import CONTROLLERS, NAMESPACE, SCHEDULER, Components
from tests.cluster.controlplane import REPOSITORY, ControlPlane
from tests.cluster.processes import wait_until

READ = {
    "batch.volcano.sh": "jobs",
    "scheduling.volcano.sh": "podgroups,queues",
    "scheduling.k8s.io": "priorityclasses",
    "": "nodes,pods",
    "shard.volcano.sh": "nodeshards",
    "resource.k8s.io": "resourceclaims,resourceslices,deviceclasses",
}
"""What a user may get and list, by group."""


def test_a_user_is_told_by_whose_policy_a_job_waits(control_plane: ControlPlane, tmp_path: Path) -> None:
    control_plane.add_nodes(1, cpu="8")
    user = control_plane.user("ann")
    control_plane.must_kubectl("apply", "-f", "-", stdin=json.dumps(_reader("ann")))

    seen: list[dict[str, Any]] = []

    def order() -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "vcbatch", "job", "explain", "tall", "-o", "json", "--kubeconfig", str(user)],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        seen.append(json.loads(done.stdout).get("order", {}))
        return seen[-1]

    with Components(control_plane) as components:
        for part in (CONTROLLERS, SCHEDULER):
            components.start(part).wait_ready()
        control_plane.must_kubectl("create", "-f", "-", stdin=json.dumps(_job("tall", cpu="9")))
        wait_until("the policy is known", lambda: order().get("by") == "policy")
        reported = seen[-1]
        assert (reported["policy"], reported["lease"]) == ("built-in default", f"{NAMESPACE}/vcbatch-scheduler")
        assert "doubt" not in reported
        listed = control_plane.kubectl("get", "leases", "--namespace", NAMESPACE, kubeconfig=user)
        assert (listed.returncode, "is forbidden" in listed.stderr) == (1, True), "no more than the one"

        control_plane.must_kubectl("delete", "rolebinding", "vcbatch-policy-readers", "--namespace", NAMESPACE)
        refused = f"no permission to read Lease {NAMESPACE}/vcbatch-scheduler"
        wait_until("the right is gone", lambda: refused in order().get("policyUnknown", ""))
        assert seen[-1]["by"] == "priority and age"


def _reader(user: str) -> dict[str, Any]:
    rules = [
        {"apiGroups": [group], "resources": kinds.split(","), "verbs": ["get", "list"]} for group, kinds in READ.items()
    ]
    api, metadata = "rbac.authorization.k8s.io", {"name": "reader"}
    role = {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}
    subjects = [{"apiGroup": api, "kind": "User", "name": user}]
    ref = {"apiGroup": api, "kind": "ClusterRole", "name": "reader"}
    binding = {
        "apiVersion": f"{api}/v1", "kind": "ClusterRoleBinding", "metadata": metadata, "roleRef": ref,
        "subjects": subjects,
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "List", "items": [role, binding]}


def _job(name: str, *, cpu: str) -> dict[str, Any]:
    container = {"name": "m", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {
        "minAvailable": 1, "queue": "default", "schedulerName": "volcano",
        "tasks": [{"name": "w", "replicas": 1, "template": template}],
    }  # fmt: skip
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
