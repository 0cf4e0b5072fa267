"""The test bed itself: a control plane comes up, works and goes without a trace."""

from __future__ import annotations

import json

from tests.cluster.controlplane import ControlPlane
from tests.cluster.processes import wait_until


def test_pods_run_on_simulated_nodes(control_plane: ControlPlane) -> None:
    control_plane.add_nodes(2)
    control_plane.kubectl("run", "short", "--image=busybox", "--restart=Never", "--", "sh", "-c", "sleep 1; exit 3")

    def phase() -> str:
        done = control_plane.kubectl("get", "pod", "short", "-o", "json")
        return str(json.loads(done.stdout)["status"]["phase"])

    wait_until("the pod has failed", lambda: phase() == "Failed")
