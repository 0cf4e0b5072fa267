"""A namespace of a test's own: what the test submits there, and what it asks about it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.cluster.controlplane import REPOSITORY, ControlPlane
from tests.cluster.processes import wait_until
from vcbatch.api.quantity import parse_quantity
from vcbatch.api.resources import JOBS, PODGROUPS

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Namespace:
    """Everything in it goes with it."""

    plane: ControlPlane
    name: str

    # What is done

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = 180.0) -> str:
        """What kubectl printed; it must succeed."""
        return self.plane.must_kubectl("--namespace", self.name, *arguments, stdin=stdin, timeout=timeout)

    def vcbatch(self, *arguments: str, timeout: float = 180.0) -> subprocess.CompletedProcess[str]:
        """Run the command of this checkout, as the administrator."""
        command = [sys.executable, "-m", "vcbatch", *arguments]
        where = {"KUBECONFIG": str(self.plane.kubeconfig), "PYTHONPATH": str(REPOSITORY)}
        return subprocess.run(
            [*command, "--namespace", self.name] if "--" not in arguments else _before_dashes(command, self.name),
            capture_output=True, text=True, check=False, timeout=timeout, env=os.environ | where,
        )  # fmt: skip

    def apply(self, manifest: str | Json) -> None:
        """Create or change what a manifest says."""
        self.kubectl("apply", "-f", "-", stdin=manifest if isinstance(manifest, str) else json.dumps(manifest))

    def submit(self, job: Json) -> None:
        """Create a Job of vcbatch; it must be accepted."""
        self.plane.call("POST", JOBS.path(namespace=self.name), job)

    # What is asked

    def job(self, name: str) -> Json:
        found: Json = self.plane.call("GET", JOBS.path(namespace=self.name, name=name))
        return found

    def phase(self, name: str) -> str:
        """The job's phase; empty before its first."""
        return str(self.job(name).get("status", {}).get("state", {}).get("phase", ""))

    def wait_phase(self, name: str, *wanted: str, timeout: float = 120.0) -> None:
        wait_until(f"{name} is {' or '.join(wanted)}", lambda: self.phase(name) in wanted, timeout=timeout, pause=0.2)

    def pods(self, job: str) -> list[Json]:
        """The pods of a job, by their names."""
        path = f"/api/v1/namespaces/{self.name}/pods?labelSelector=volcano.sh/job-name%3D{job}"
        return sorted(self.plane.call("GET", path)["items"], key=lambda pod: pod["metadata"]["name"])

    def running(self, job: str) -> list[Json]:
        """Those that run and aren't being deleted."""
        return [
            pod
            for pod in self.pods(job)
            if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        ]

    def wait_running(self, job: str, count: int, *, timeout: float = 120.0) -> list[Json]:
        wait_until(f"{count} pods of {job} run", lambda: len(self.running(job)) >= count, timeout=timeout, pause=0.2)
        return self.running(job)

    def events(self, name: str) -> list[Json]:
        """The events about an object of that name."""
        path = f"/api/v1/namespaces/{self.name}/events?fieldSelector=involvedObject.name%3D{name}"
        return list(self.plane.call("GET", path)["items"])

    def waiting(self, job: str) -> str:
        """Why the job's gang doesn't start, in the scheduler's words; empty where it has said nothing."""
        found = self.plane.call("GET", PODGROUPS.path(namespace=self.name))["items"]
        conditions = [
            condition
            for group in found
            if any(owner["name"] == job for owner in group["metadata"].get("ownerReferences", ()))
            for condition in group.get("status", {}).get("conditions", ())
        ]
        return "; ".join(each.get("message", "") for each in conditions if each["type"] == "Unschedulable")

    @contextmanager
    def following(self, pod: str) -> Iterator[subprocess.Popen[str]]:
        """`kubectl logs --follow`, which ends with the pod."""
        plane = self.plane
        command = [str(plane.binaries.path("kubectl")), "--kubeconfig", str(plane.kubeconfig), "-n", self.name]
        process = subprocess.Popen(
            [*command, "logs", "--follow", pod], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def logs(self, pod: str, *more: str) -> str:
        return self.kubectl("logs", pod, *more)


def free_millicores(plane: ControlPlane) -> dict[str, int]:
    """How much CPU each node has left, by the requests of its pods."""
    nodes = plane.call("GET", "/api/v1/nodes")["items"]
    free = {node["metadata"]["name"]: _millicores(node["status"]["allocatable"]["cpu"]) for node in nodes}
    for pod in plane.call("GET", "/api/v1/pods")["items"]:
        if node_of(pod) in free and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            for each in pod["spec"]["containers"]:
                free[node_of(pod)] -= _millicores(each.get("resources", {}).get("requests", {}).get("cpu", "0"))
    return free


def _millicores(quantity: str) -> int:
    return parse_quantity(quantity).milli()


def _before_dashes(command: Sequence[str], namespace: str) -> list[str]:
    place = list(command).index("--")
    return [*command[:place], "--namespace", namespace, *command[place:]]


def container(
    command: str, *, image: str = "busybox:1.37", cpu: str = "50m", memory: str = "16Mi", **more: Any
) -> Json:
    """A container that runs a shell command."""
    return {
        "name": "main",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", command],
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
        **more,
    }


def task(
    name: str, replicas: int, runs: Json, *, grace: int = 1, spec: Mapping[str, Any] | None = None, **more: Any
) -> Json:
    """A task of a job: so many pods of that container."""
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": grace, "containers": [runs], **(spec or {})}
    return {"name": name, "replicas": replicas, "template": {"spec": pod}, **more}


def job(name: str, *tasks: Json, **spec: Any) -> Json:
    """A gang of all pods of these tasks."""
    members = sum(each["replicas"] for each in tasks)
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": name},
        "spec": {"schedulerName": "volcano", "minAvailable": members, "tasks": list(tasks), **spec},
    }


def apart(name: str) -> Json:
    """What keeps the pods of a job on different nodes."""
    selector = {"matchLabels": {"volcano.sh/job-name": name}}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def node_of(pod: Json) -> str:
    return str(pod["spec"].get("nodeName", ""))
