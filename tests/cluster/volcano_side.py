"""What Volcano leaves in a cluster and what its controllers write, played without it.

Objects have the shape of the recordings of a real Volcano (1.15). The queue controller's write of `status.state` is the
one of its sources: server-side apply as `queue-controller`, without force. The job controller writes a whole status of
its own types, so that fields that it doesn't know are lost.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping
from typing import Any, Final

from tests.cluster.controlplane import ControlPlane
from tests.cluster.processes import wait_until
from vcbatch.api.resources import CRONJOBS, DEPLOYMENTS, JOBS, PODGROUPS, PODS, QUEUES, SERVICES, VALIDATING_WEBHOOKS
from vcbatch.cli.inventory.read import ENDPOINT_SLICES, MUTATING_WEBHOOKS

Json = dict[str, Any]

NAMESPACE: Final = "volcano-system"
RELEASE: Final = {"meta.helm.sh/release-name": "volcano", "meta.helm.sh/release-namespace": NAMESPACE}
HELM: Final = {"app.kubernetes.io/managed-by": "Helm"}
POLICY: Final = """actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
_APPLY: Final = "application/apply-patch+yaml"
_KNOWN_TO_VOLCANO: Final = frozenset(
    {
        "state", "minAvailable", "taskStatusCount", "pending", "running", "succeeded", "failed", "terminating",
        "unknown", "version", "retryCount", "runningDuration", "controlledResources", "conditions",
    }
)  # fmt: skip
"""Fields of `status` that Volcano's types have."""


class VolcanoSide:
    """Volcano on a control plane, as far as a migration meets it."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane

    # What its chart installs

    def install(self) -> None:
        """The namespace, the claim on the CRDs, the programs and the policy. Nobody runs in the pods."""
        plane = self.plane
        plane.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        plane.wait_service_accounts(NAMESPACE)
        annotations = [f"{key}={value}" for key, value in RELEASE.items()]
        for verb, words in (("annotate", annotations), ("label", [f"{key}={value}" for key, value in HELM.items()])):
            plane.must_kubectl(verb, "crd", "--all", *words)
        secret = {"name": "sh.helm.release.v1.volcano.v1", "labels": {"owner": "helm", "name": "volcano"}}
        plane.call(
            "POST",
            f"/api/v1/namespaces/{NAMESPACE}/secrets",
            {"metadata": secret, "type": "helm.sh/release.v1", "stringData": {"release": "bm9uZQ=="}},
        )
        plane.call(
            "POST",
            f"/api/v1/namespaces/{NAMESPACE}/configmaps",
            {"metadata": {"name": "volcano-scheduler-configmap"}, "data": {"volcano-scheduler.conf": POLICY}},
        )
        conf = "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf"
        for name, image, app, args in (
            ("scheduler", "vc-scheduler", "volcano-scheduler", [conf, "--leader-elect=false"]),
            ("controllers", "vc-controller-manager", "volcano-controller", ["--leader-elect=false"]),
            ("admission", "vc-webhook-manager", "volcano-admission", ["--enabled-admission=/jobs/mutate"]),
        ):
            plane.call("POST", DEPLOYMENTS.path(namespace=NAMESPACE), _deployment(name, image, app, args))
        for name in ("scheduler", "controllers", "admission"):
            path = DEPLOYMENTS.path(namespace=NAMESPACE, name=f"volcano-{name}")
            wait_until(
                f"volcano-{name} is there", lambda p=path: plane.call("GET", p)["status"].get("readyReplicas") == 1
            )
        for queue in ("root", "default"):
            parent = {} if queue == "root" else {"parent": "root"}
            new_queue(plane, queue, **parent)
            assert self.queue_state(queue, "Open") == 200

    def admission(self) -> None:
        """Its Service, an endpoint and its configurations, of which nobody answers here: from now on no pod can be
        made, until they are removed."""
        plane = self.plane
        # By its name alone: a cluster address would lead off this machine.
        spec = {"type": "ExternalName", "externalName": "localhost", "selector": {"app": "volcano-admission"}}
        service = {"metadata": {"name": "volcano-admission-service"}, "spec": spec}
        plane.call("POST", SERVICES.path(namespace=NAMESPACE), service)
        labels = {"kubernetes.io/service-name": "volcano-admission-service"}
        endpoint = {"addresses": ["10.0.0.9"], "conditions": {"ready": True}}
        plane.call(
            "POST",
            ENDPOINT_SLICES.path(namespace=NAMESPACE),
            {"metadata": {"name": "volcano-admission", "labels": labels}, "addressType": "IPv4",
             "endpoints": [endpoint], "ports": [{"port": 8443}]},
        )  # fmt: skip
        bundle = base64.b64encode(plane.authority.certificate.read_bytes()).decode()
        for resource, plural, verb, group, version in (
            (MUTATING_WEBHOOKS, "jobs", "mutate", "batch.volcano.sh", "v1alpha1"),
            (VALIDATING_WEBHOOKS, "jobs", "validate", "batch.volcano.sh", "v1alpha1"),
            (MUTATING_WEBHOOKS, "pods", "mutate", "", "v1"),
        ):
            target = {"name": "volcano-admission-service", "namespace": NAMESPACE, "path": f"/{plural}/{verb}"}
            rule = {"apiGroups": [group], "apiVersions": [version], "resources": [plural], "operations": ["CREATE"]}
            webhook = {
                "name": f"{verb}{plural}.volcano.sh", "failurePolicy": "Fail", "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "rules": [rule],
                "clientConfig": {"service": target, "caBundle": bundle},
            }  # fmt: skip
            name = f"volcano-admission-service-{plural}-{verb}"
            plane.call(
                "POST", resource.path(), {"metadata": {"name": name, "annotations": RELEASE}, "webhooks": [webhook]}
            )

    # What its controllers write

    def queue_state(self, queue: str, state: str) -> int:
        """The code of the answer to the queue controller's write."""
        body = {
            "apiVersion": QUEUES.api_version,
            "kind": "Queue",
            "metadata": {"name": queue},
            "status": {"state": state},
        }
        path = f"{QUEUES.path(name=queue, subresource='status')}?fieldManager=queue-controller"
        code, _ = self.plane.request("PATCH", path, body, content_type=_APPLY)
        return code

    def job(
        self, name: str, pods: int, *, command: str = "sleep inf", cpu: str = "1", owner: Json | None = None
    ) -> Json:
        """A Job after Volcano's defaults."""
        container = {"name": "main", "image": "none", "command": ["sh", "-c", command],
                     "resources": {"requests": {"cpu": cpu}}}  # fmt: skip
        task = {
            "name": "w", "replicas": pods, "minAvailable": pods, "maxRetry": 3,
            "policies": [{"event": "PodFailed", "action": "RestartJob"}],
            "template": {"metadata": {}, "spec": {"restartPolicy": "Never", "containers": [container]}},
        }  # fmt: skip
        spec = {"schedulerName": "volcano", "queue": "default", "minAvailable": pods, "maxRetry": 3, "tasks": [task]}
        metadata: Json = {"name": name}
        if owner is not None:
            metadata |= owner
        body = {"apiVersion": JOBS.api_version, "kind": "Job", "metadata": metadata, "spec": spec}
        return dict(
            self.plane.call("POST", f"{JOBS.path(namespace='default')}?fieldManager=vc-controller-manager", body)
        )

    def status(self, job: Json, phase: str, counts: Mapping[str, int], *, version: int = 0) -> None:
        """The job controller's write of a status, which keeps nothing that its types don't know."""
        path = JOBS.path(namespace="default", name=job["metadata"]["name"])
        stored = self.plane.call("GET", path)
        status = {key: value for key, value in (stored.get("status") or {}).items() if key in _KNOWN_TO_VOLCANO}
        words = {"running": "Running", "pending": "Pending", "succeeded": "Succeeded", "failed": "Failed"}
        phases = {words[key]: number for key, number in counts.items()}
        status |= {
            "state": {"phase": phase, "lastTransitionTime": "2026-11-01T12:00:00Z"},
            "minAvailable": stored["spec"]["minAvailable"], **counts,
        }  # fmt: skip
        if version:
            status["version"] = version
        if phases:
            status["taskStatusCount"] = {"w": {"phase": phases}}
        body = {**stored, "status": status}
        self.plane.call("PUT", f"{path}/status?fieldManager=vc-controller-manager", body)

    def group(self, job: Json, phase: str) -> str:
        """The PodGroup, called JOB-UID."""
        metadata = job["metadata"]
        name = f"{metadata['name']}-{metadata['uid']}"
        tasks = {task["name"]: task["minAvailable"] for task in job["spec"]["tasks"]}
        body = {
            "apiVersion": PODGROUPS.api_version, "kind": "PodGroup",
            "metadata": {"name": name, "ownerReferences": [_owner(job)]},
            "spec": {"minMember": job["spec"]["minAvailable"], "minTaskMember": tasks, "queue": "default"},
            "status": {"phase": phase},
        }  # fmt: skip
        self.plane.call("POST", f"{PODGROUPS.path(namespace='default')}?fieldManager=vc-controller-manager", body)
        return name

    def pods(self, job: Json, nodes: list[str], *, version: int = 0) -> list[Json]:
        """A pod for each node name; an empty one leaves it to be placed."""
        return [self._pod(job, index, node, version) for index, node in enumerate(nodes)]

    def _pod(self, job: Json, index: int, node: str, version: int) -> Json:
        metadata, task = job["metadata"], job["spec"]["tasks"][0]
        name, uid = metadata["name"], metadata["uid"]
        labels = {
            "volcano.sh/job-name": name, "volcano.sh/job-namespace": "default", "volcano.sh/queue-name": "default",
            "volcano.sh/task-index": str(index), "volcano.sh/task-spec": "w",
        }  # fmt: skip
        annotations = {
            "scheduling.k8s.io/group-name": f"{name}-{uid}", "volcano.sh/job-name": name,
            "volcano.sh/job-retry-count": "0", "volcano.sh/job-version": str(version),
            "volcano.sh/queue-name": "default", "volcano.sh/task-index": str(index), "volcano.sh/task-spec": "w",
            "volcano.sh/template-uid": f"{name}-w",
        }  # fmt: skip
        spec = {**copy.deepcopy(task["template"]["spec"]), "schedulerName": "volcano"}
        if node:
            spec["nodeName"] = node
        body = {
            "metadata": {"name": f"{name}-w-{index}", "labels": labels, "annotations": annotations,
                         "ownerReferences": [_owner(job)]},
            "spec": spec,
        }  # fmt: skip
        made = self.plane.call("POST", f"{PODS.path(namespace='default')}?fieldManager=vc-controller-manager", body)
        return dict(made)

    def wait_pods(self, phase: str, *pods: Json) -> None:
        for pod in pods:
            path = PODS.path(namespace="default", name=pod["metadata"]["name"])
            wait_until(
                f"{pod['metadata']['name']} is {phase}",
                lambda p=path: self.plane.call("GET", p)["status"]["phase"] == phase,
            )

    def cron(self, name: str, template: Json, *, schedule: str) -> Json:
        """A CronJob; its jobs are as the template."""
        body = {
            "apiVersion": CRONJOBS.api_version, "kind": "CronJob", "metadata": {"name": name},
            "spec": {"schedule": schedule, "timeZone": "Etc/UTC", "concurrencyPolicy": "Allow",
                     "jobTemplate": {"spec": template}},
        }  # fmt: skip
        return dict(self.plane.call("POST", CRONJOBS.path(namespace="default"), body))


def new_queue(plane: ControlPlane, name: str, **spec: str) -> None:
    """A queue without a state."""
    body = {
        "apiVersion": QUEUES.api_version,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
    }
    plane.call("POST", QUEUES.path(), body)


def _owner(job: Json) -> Json:
    metadata = job["metadata"]
    return {"apiVersion": JOBS.api_version, "kind": "Job", "name": metadata["name"], "uid": metadata["uid"],
            "controller": True, "blockOwnerDeletion": True}  # fmt: skip


def _deployment(name: str, image: str, app: str, args: list[str]) -> Json:
    container = {"name": name, "image": f"docker.io/volcanosh/{image}:v1.15.0", "args": args,
                 "volumeMounts": [{"name": "conf", "mountPath": "/volcano.scheduler"}]}  # fmt: skip
    volume = {"name": "conf", "configMap": {"name": "volcano-scheduler-configmap"}}
    return {
        "metadata": {"name": f"volcano-{name}", "annotations": RELEASE, "labels": HELM},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": app}},
            "template": {"metadata": {"labels": {"app": app}},
                         "spec": {"containers": [container], "volumes": [volume]}},
        },
    }  # fmt: skip
