"""The shipped roles grant what the programs ask for, and nothing that they don't.

The API server's audit log is the witness: a broad run meets no refusal, and every right that is granted was used,
unless it is in the list below with its reason.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import audit
from tests.cluster.components import CONTROLLERS, NAMESPACE, RBAC, SCHEDULER, WEBHOOKS, Components
from tests.cluster.conftest import MakeControlPlane
from tests.cluster.controlplane import ControlPlane
from tests.cluster.processes import wait_until
from vcbatch.api.names import SELECTED_NODE, TTL_AFTER_FINISHED

Right = tuple[str, str, str]
SSH = "vcbatch-ssh"

_FINALIZERS = "asked for by an admission plugin, by no request: without it the run below is refused"
_LISTS = "listed where the server doesn't begin a watch with what there is (WatchList), or refuses to"
_FIRST = "the first queues are made by whichever program comes first"
_DISCOVERY = "HyperNodes are made from labels where a configuration names some"
_WORKLOADS = (("apps", "replicasets"), ("apps", "statefulsets"), ("apps", "daemonsets"), ("batch", "jobs"))
_CLAIM_VERBS = ("get", "create", "patch", "delete")
_LEASE_VERBS = ("create", "get", "update")
_LOAD_OF_NODES = (
    ("metrics.k8s.io", "nodes", "list"),
    *(
        ("custom.metrics.k8s.io", f"nodes/node_{what}_usage_avg", verb)
        for what in ("cpu", "memory")
        for verb in ("get", "list")
    ),
)

UNUSED: dict[str, dict[Right, str]] = {
    CONTROLLERS: {
        ("batch.volcano.sh", "jobs", "get"): "read again after a conflict with another writer",
        ("scheduling.volcano.sh", "queues", "get"): "read again after a conflict, or where both programs make a queue",
        ("scheduling.volcano.sh", "queues", "create"): _FIRST,
        ("scheduling.volcano.sh", "podgroups", "get"): "read again after a conflict with another writer",
        ("scheduling.volcano.sh", "podgroups", "list"): _LISTS,
        ("bus.volcano.sh", "commands", "get"): "read again where its deletion met a conflict",
        ("", "pods", "list"): _LISTS,
        ("scheduling.k8s.io", "priorityclasses", "list"): _LISTS,
        ("", "resourcequotas", "list"): _LISTS,
        ("", "nodes", "list"): _LISTS,
        ("", "persistentvolumeclaims", "list"): _LISTS,
        ("", "persistentvolumeclaims", "get"): "read where a claim that was just made isn't in the cache yet",
        ("batch.volcano.sh", "cronjobs", "get"): "read again after a conflict with another writer",
        ("flow.volcano.sh", "jobflows", "get"): "read again after a conflict with another writer",
        ("flow.volcano.sh", "jobtemplates", "get"): "read again after a conflict with another writer",
        ("flow.volcano.sh", "jobflows/finalizers", "update"): _FINALIZERS,
        ("topology.volcano.sh", "hypernodes", "get"): "read again after a conflict with another writer",
        **{("topology.volcano.sh", "hypernodes", verb): _DISCOVERY for verb in ("create", "patch", "delete")},
        **{
            ("shard.volcano.sh", "nodeshards", verb): "only where the controllers are told which schedulers there are"
            for verb in ("get", "list", "watch", "create", "patch", "delete")
        },
        ("config.volcano.sh", "colocationconfigurations", "list"): _LISTS,
        **{(*workload, "list"): _LISTS for workload in _WORKLOADS},
        **{(*workload, "get"): "read where a pod is seen before what it belongs to" for workload in _WORKLOADS},
        ("batch.volcano.sh", "jobs/finalizers", "update"): _FINALIZERS,
        ("batch.volcano.sh", "cronjobs/finalizers", "update"): _FINALIZERS,
        ("", "pods/finalizers", "update"): _FINALIZERS,
        ("", "replicationcontrollers/finalizers", "update"): _FINALIZERS,
        ("apps", "replicasets/finalizers", "update"): _FINALIZERS,
        ("apps", "statefulsets/finalizers", "update"): _FINALIZERS,
        ("apps", "daemonsets/finalizers", "update"): _FINALIZERS,
        ("batch", "jobs/finalizers", "update"): _FINALIZERS,
    },
    SCHEDULER: {
        ("", "pods", "get"): "read after a bind whose answer was lost",
        ("", "pods", "list"): _LISTS,
        ("", "nodes", "list"): _LISTS,
        ("scheduling.k8s.io", "priorityclasses", "list"): _LISTS,
        ("scheduling.volcano.sh", "podgroups", "list"): _LISTS,
        ("", "persistentvolumeclaims", "list"): _LISTS,
        ("", "persistentvolumes", "list"): _LISTS,
        ("storage.k8s.io", "storageclasses", "list"): _LISTS,
        ("storage.k8s.io", "csinodes", "list"): _LISTS,
        ("storage.k8s.io", "csidrivers", "list"): _LISTS,
        **{("", "nodes", verb): "only where deviceshare.NodeLockEnable locks nodes" for verb in ("get", "patch")},
        ("", "configmaps", "get"): "only where the policy, or what deviceshare knows of cards, is kept in one",
        ("resource.k8s.io", "resourceslices", "list"): _LISTS,
        ("resource.k8s.io", "deviceclasses", "list"): _LISTS,
        ("resource.k8s.io", "devicetaintrules", "list"): _LISTS,
        ("resource.k8s.io", "devicetaintrules", "watch"): "only where the kind is served",
        ("resource.k8s.io", "resourceclaims", "list"): _LISTS,
        **{("resource.k8s.io", "resourceclaims", verb): "only for pods with devices" for verb in _CLAIM_VERBS},
        ("resource.k8s.io", "resourceclaims/status", "patch"): "only for pods with devices",
        ("resource.k8s.io", "resourceclaims/binding", "patch"): "asked for with the status, and no request of its own",
        ("topology.volcano.sh", "hypernodes", "list"): _LISTS,
        ("shard.volcano.sh", "nodeshards", "list"): _LISTS,
        ("shard.volcano.sh", "nodeshards", "watch"): "only where the kind is served",
        ("shard.volcano.sh", "nodeshards/status", "patch"): "only where a NodeShard divides the nodes",
        ("storage.k8s.io", "csistoragecapacities", "list"): _LISTS,
        ("", "namespaces", "list"): _LISTS,
        ("", "pods", "delete"): "only where the policy has actions that evict",
        ("", "pods", "patch"): "only where gates of pods are opened by queues",
        ("nodeinfo.volcano.sh", "numatopologies", "list"): _LISTS,
        **dict.fromkeys(_LOAD_OF_NODES, "only where the policy measures the load of nodes there"),
        ("policy", "poddisruptionbudgets", "list"): _LISTS,
        ("", "resourcequotas", "list"): _LISTS,
        ("", "events", "patch"): "an equal event within ten minutes is counted on the one that there is",
        ("scheduling.volcano.sh", "queues", "create"): _FIRST,
    },
    WEBHOOKS: {
        ("scheduling.volcano.sh", "podgroups", "get"): "of a pod that is resized",
        ("batch.volcano.sh", "jobs", "get"): "read where the PodGroup of a job comes to a Closing queue",
        ("batch", "jobs", "list"): "listed where a queue that is deleted has PodGroups of such jobs",
        **{("coordination.k8s.io", "leases", verb): "only with --manage-configurations" for verb in _LEASE_VERBS},
        **{
            (group, resource, "list"): _LISTS
            for group, resource in (
                ("", "namespaces"),
                ("scheduling.k8s.io", "priorityclasses"),
                ("scheduling.volcano.sh", "queues"),
                ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
                ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
            )
        },
    },
}
"""What needs not be used in the run, and why it is granted."""


PARTS = (CONTROLLERS, SCHEDULER, WEBHOOKS)


def test_no_role_grants_everything_or_more_secrets_than_its_own() -> None:
    for part in PARTS:
        for rule in _rules(part):
            assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
            if any(resource.partition("/")[0] == "secrets" for resource in rule["resources"]):
                assert part == WEBHOOKS
                assert rule["resourceNames"] == ["volcano-admission-secret"]
                assert "create" not in rule["verbs"], "by which one gets the token of any service account"


def test_every_granted_right_is_used_and_no_other_is_asked_for(
    make_control_plane: MakeControlPlane, tmp_path: Path
) -> None:
    enforced = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"
    plane = make_control_plane(audit.options(tmp_path, flags=[enforced]))
    plane.add_nodes(2, cpu="8")
    log = audit.AuditLog(tmp_path)
    with Components(plane, managed_certificates=True) as programs:
        programs.start_all()
        programs.allow_ssh("default")
        _broad_run(plane)
    for part in PARTS:
        entries = list(log.entries(user=f"system:serviceaccount:{NAMESPACE}:vcbatch-{part}"))
        refused = {entry.right for entry in entries if entry.code == 403}
        assert not refused, f"{part} was refused {sorted(refused)}"
        granted = _granted(part) | (_granted(CONTROLLERS, SSH) if part == CONTROLLERS else set())
        unused = granted - {entry.right for entry in entries}
        assert unused <= UNUSED[part].keys(), f"{part} never used {sorted(unused - UNUSED[part].keys())}"
    for program in PARTS:
        said = (plane.logs / f"vcbatch-{program}.log").read_text()
        assert "forbidden" not in said, said[-3000:]


@pytest.mark.parametrize("part", PARTS)
def test_the_list_of_unused_rights_names_only_granted_ones(part: str) -> None:
    assert UNUSED[part].keys() <= _granted(part)


def _rules(part: str, role: str = "") -> list[dict[str, Any]]:
    """The rules of the roles of that name in the file of that program."""
    documents = yaml.safe_load_all((RBAC / f"{part}.yaml").read_text())
    roles = [
        document
        for document in documents
        if document["kind"] in ("ClusterRole", "Role") and document["metadata"]["name"] == (role or f"vcbatch-{part}")
    ]
    assert roles, f"no role {role or part}"
    return [rule for role in roles for rule in role["rules"]]


def _granted(part: str, role: str = "") -> set[Right]:
    """What these roles grant."""
    return {
        right
        for rule in _rules(part, role)
        for right in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])
    }


def _broad_run(plane: ControlPlane) -> None:
    """Something of everything that the programs do."""
    # A job with plugins: its objects are made, follow a change of its size, and go when it ends.
    plugins = {"svc": [], "env": [], "ssh": []}
    plane.must_kubectl("create", "-f", "-", stdin=_job("wide", replicas=2, run="sleep 600", plugins=plugins))
    _until_job(plane, "wide", "Running")
    _patch_job(plane, "wide", {"spec": {"minAvailable": 3, "tasks": [_task(replicas=3, run="sleep 600")]}})
    _until_job(plane, "wide", "Running", running=3)
    _command(plane, "wide", "AbortJob")
    _until_job(plane, "wide", "Aborted")
    _command(plane, "wide", "ResumeJob")
    _until_job(plane, "wide", "Running", running=3)
    # Pods that come and go: a failure with a policy, an end, a TTL.
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    fails = json.loads(_job("restarts", replicas=1, run="exit 3", policies=policies, maxRetry=2))
    # On one node, so that it fails with the same words twice, which are one event.
    fails["spec"]["tasks"][0]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "node-0"}
    plane.must_kubectl("create", "-f", "-", stdin=json.dumps(fails))
    plane.must_kubectl("create", "-f", "-", stdin=_job("short", replicas=1, run="exit 0", ttlSecondsAfterFinished=1))
    _until_job(plane, "restarts", "Failed")
    wait_until("the TTL of short is over", lambda: plane.request("GET", _job_path("short"))[0] == 404)
    # Queues: a child gets its parent, closes by a Command and with its parent.
    plane.call("POST", f"{_SCHEDULING}/queues", _queue("parent"))
    plane.call("POST", f"{_SCHEDULING}/queues", _queue("child", parent="parent"))
    wait_until("child is open", lambda: _state(plane, "child") == "Open")
    _command(plane, "parent", "CloseQueue", kind="Queue", api="scheduling.volcano.sh/v1beta1")
    wait_until("child is closed with its parent", lambda: _state(plane, "child") == "Closed")
    # Pods without a job: alone, and of a Deployment.
    plane.must_kubectl("create", "-f", "-", stdin=json.dumps(_pod("bare")))
    plane.must_kubectl("create", "-f", "-", stdin=json.dumps(_deployment("web")))
    wait_until("bare pods run", lambda: len(_running(plane)) >= 5)
    # A job with a claim of its own, jobs by the clock, and a HyperNode.
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"mountPath": "/data", "volumeClaim": claim}]
    plane.must_kubectl("create", "-f", "-", stdin=_job("keeps", replicas=1, run="exit 0", volumes=volumes))
    plane.call("POST", f"{_BATCH}/cronjobs", _cron_job("ticks"))
    plane.call("POST", "/apis/topology.volcano.sh/v1alpha1/hypernodes", _hyper_node("rack"))
    # A flow of jobs that is suspended and goes on.
    plane.must_kubectl("create", "-f", "-", stdin=json.dumps(_job_template("step")))
    plane.must_kubectl("create", "-f", "-", stdin=json.dumps(_job_flow("flow", "step")))
    wait_until("the flow made a job", lambda: plane.request("GET", _job_path("flow-step"))[0] == 200)
    _until_job(plane, "flow-step", "Running")
    _command(plane, "flow", "AbortJob", kind="JobFlow", api="flow.volcano.sh/v1alpha1")
    _until_job(plane, "flow-step", "Aborted")
    # Another that goes when it has ended.
    plane.must_kubectl("create", "-f", "-", stdin=json.dumps(_job_template("last", run="exit 0")))
    brief = _job_flow("brief", "last")
    brief["metadata"]["annotations"] = {TTL_AFTER_FINISHED: "0"}
    plane.must_kubectl("create", "-f", "-", stdin=json.dumps(brief))
    wait_until("the brief flow is gone", lambda: plane.request("GET", f"{_FLOW}/jobflows/brief")[0] == 404)
    wait_until("the claim is made", lambda: plane.call("GET", _CLAIMS)["items"])
    wait_until("the clock made a job", lambda: "ticks-" in json.dumps(plane.call("GET", f"{_BATCH}/jobs")))
    # Claims that wait for their first consumer: one finds a volume, the other's is to be made by a driver.
    for name, provisioner in (("found", "kubernetes.io/no-provisioner"), ("made", "example.com/nobody")):
        plane.call("POST", "/apis/storage.k8s.io/v1/storageclasses", _late_class(name, provisioner))
        volumes = [{"mountPath": "/data", "volumeClaim": {**claim, "storageClassName": name}}]
        plane.must_kubectl("create", "-f", "-", stdin=_job(name, replicas=1, run="sleep 600", volumes=volumes))
    plane.call("POST", "/api/v1/persistentvolumes", _volume("found"))
    _until_job(plane, "found", "Running")
    wait_until("a node is chosen", lambda: SELECTED_NODE in json.dumps(plane.call("GET", _CLAIMS)))
    # A gang that fits no node and is told so.
    plane.must_kubectl("create", "-f", "-", stdin=_job("tall", replicas=1, run="sleep 600", cpu="9"))
    wait_until("tall is told why", lambda: "Unschedulable" in json.dumps(_pods(plane)))
    plane.must_kubectl("delete", "vcjob", "wide", "tall", "--wait=true")
    # What admission refuses is read once more before.
    nowhere = _job("nowhere", replicas=1, run="true", priorityClassName="unheard-of").replace("default", "unheard-of")
    refused = plane.kubectl("create", "-f", "-", stdin=nowhere)
    assert refused.returncode == 1 and "denied the request" in refused.stderr, refused.stderr
    _until_events_are_sent(plane)


def _job_template(name: str, *, run: str = "sleep 600") -> dict[str, Any]:
    spec = {"minAvailable": 1, "tasks": [_task(replicas=1, run=run)]}
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate", "metadata": {"name": name}, "spec": spec
    }  # fmt: skip


def _job_flow(name: str, *templates: str) -> dict[str, Any]:
    spec = {"flows": [{"name": template} for template in templates]}
    return {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": name}, "spec": spec}


def _until_events_are_sent(plane: ControlPlane) -> None:
    def reasons() -> set[str]:
        return {event["reason"] for event in plane.call("GET", "/api/v1/events")["items"]}

    wait_until("events are there", lambda: {"Scheduled", "FailedScheduling", "ExecuteAction"} <= reasons())


def _late_class(name: str, provisioner: str) -> dict[str, Any]:
    body = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, **body}


def _volume(of_class: str) -> dict[str, Any]:
    spec = {
        "storageClassName": of_class,
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/tmp"},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "volume"}, "spec": spec}


_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
_BATCH = "/apis/batch.volcano.sh/v1alpha1/namespaces/default"
_FLOW = "/apis/flow.volcano.sh/v1alpha1/namespaces/default"
_SCHEDULING = "/apis/scheduling.volcano.sh/v1beta1"


def _job_path(name: str) -> str:
    return f"{_BATCH}/jobs/{name}"


def _task(*, replicas: int, run: str, cpu: str = "1") -> dict[str, Any]:
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "busybox", "command": ["sh", "-c", run],
                        "resources": {"requests": {"cpu": cpu}}}],
    }  # fmt: skip
    return {"name": "w", "replicas": replicas, "template": {"spec": spec}}


def _job(name: str, *, replicas: int, run: str, cpu: str = "1", **more: Any) -> str:
    task = _task(replicas=replicas, run=run, cpu=cpu)
    spec = {"schedulerName": "volcano", "queue": "default", "minAvailable": replicas, "tasks": [task], **more}
    return json.dumps(
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    )


def _cron_job(name: str) -> dict[str, Any]:
    template = {"spec": json.loads(_job(name, replicas=1, run="exit 0"))["spec"]}
    spec = {"schedule": "@every 1s", "jobTemplate": template}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec
    }  # fmt: skip


def _hyper_node(name: str) -> dict[str, Any]:
    members = [{"type": "Node", "selector": {"regexMatch": {"pattern": "."}}}]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name},
        "spec": {"tier": 1, "members": members},
    }  # fmt: skip


def _patch_job(plane: ControlPlane, name: str, patch: object) -> None:
    plane.call("PATCH", _job_path(name), patch, content_type="application/merge-patch+json")


def _until_job(plane: ControlPlane, name: str, phase: str, *, running: int = 0) -> None:
    def there() -> bool:
        status = plane.call("GET", _job_path(name)).get("status") or {}
        return (status.get("state") or {}).get("phase") == phase and status.get("running", 0) >= running

    wait_until(f"{name} is {phase}", there)


def _command(
    plane: ControlPlane, target: str, action: str, *, kind: str = "Job", api: str = "batch.volcano.sh/v1alpha1"
) -> None:
    paths = {"Queue": f"{_SCHEDULING}/queues/{target}", "JobFlow": f"{_FLOW}/jobflows/{target}"}
    path = paths.get(kind, _job_path(target))
    uid = plane.call("GET", path)["metadata"]["uid"]
    command = {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": f"{target}-{action.lower()}"},
        "action": action,
        "target": {"apiVersion": api, "kind": kind, "name": target, "uid": uid},
    }
    plane.call("POST", "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands", command)


def _queue(name: str, *, parent: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {"weight": 1, **({"parent": parent} if parent else {})}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def _state(plane: ControlPlane, queue: str) -> str:
    return str((plane.call("GET", f"{_SCHEDULING}/queues/{queue}").get("status") or {}).get("state"))


def _pod(name: str) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"schedulerName": "volcano", "containers": [container]},
    }


def _deployment(name: str) -> dict[str, Any]:
    pod = _pod(name)
    template = {"metadata": {"labels": {"app": name}}, "spec": pod["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def _pods(plane: ControlPlane) -> list[dict[str, Any]]:
    return list(plane.call("GET", "/api/v1/namespaces/default/pods")["items"])


def _running(plane: ControlPlane, job: str = "") -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in _pods(plane)
        if pod["status"].get("phase") == "Running" and pod["metadata"]["name"].startswith(job)
    ]
