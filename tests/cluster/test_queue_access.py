"""Who may submit to which queue by RBAC, where the service is told to ask."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cluster.components import WEBHOOKS, Components
from tests.cluster.controlplane import REPOSITORY, ControlPlane
from tests.cluster.processes import wait_until
from tests.corpus.corpus import bases, changed
from vcbatch.api.model import Json
from vcbatch.api.names import SCHEDULING_QUEUE_NAME
from vcbatch.api.resources import COMMANDS, QUEUES, Resource

RIGHTS = REPOSITORY / "helm/vcbatch/files/queue-access/rbac.yaml"


def manifest(base: str, queue: str, *, at: str = "/spec/queue") -> str:
    given = bases()[base]
    kind = {"job": "Job", "cronjob": "CronJob"}[base]
    body = changed(given["object"], {at: queue})
    return json.dumps({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": kind, **body})


def test_rbac_says_who_submits_where(control_plane: ControlPlane) -> None:
    for name in ("team", "other"):
        _queue(control_plane, name)
    user = control_plane.user("ann")
    everything = ("--verb=*", "--resource=jobs.batch.volcano.sh,cronjobs.batch.volcano.sh")
    control_plane.must_kubectl("create", "role", "worker", *everything)
    control_plane.must_kubectl("create", "rolebinding", "worker", "--role=worker", "--user=ann")
    submit = ("--verb=create", "--resource=queues.scheduling.volcano.sh/submit", "--resource-name=team")
    control_plane.must_kubectl("create", "role", "submit", *submit)
    with Components(control_plane) as components:
        control_plane.apply(RIGHTS)
        service = components.start(WEBHOOKS, "--check-queue-access").wait_ready()
        components.install_admission(service)

        def said(body: str, kubeconfig: Path | None = user) -> str:
            done = control_plane.kubectl("create", "--dry-run=server", "-f", "-", stdin=body, kubeconfig=kubeconfig)
            return "" if done.returncode == 0 else done.stderr

        wait_until("the user is asked about", lambda: "may not submit to queue `team`" in said(manifest("job", "team")))
        assert "in namespace `default`" in said(manifest("job", "team"))
        at = "/spec/jobTemplate/spec/queue"
        assert "user `ann` may not submit to queue `team`" in said(manifest("cronjob", "team", at=at))
        assert said(manifest("job", "team"), None) == "", "the administrator may"
        control_plane.must_kubectl("create", "rolebinding", "submit", "--role=submit", "--user=ann")
        wait_until("what is granted holds", lambda: said(manifest("job", "team")) == "")
        assert said(manifest("cronjob", "team", at=at)) == ""
        assert "may not submit to queue `other`" in said(manifest("job", "other"))


def test_rbac_says_who_opens_and_closes_a_queue(control_plane: ControlPlane) -> None:
    _queue(control_plane, "steered")
    user = control_plane.user("bob")
    control_plane.must_kubectl(
        "create", "clusterrole", "commander", "--verb=create", "--resource=commands.bus.volcano.sh"
    )
    control_plane.must_kubectl("create", "clusterrolebinding", "commander", "--clusterrole=commander", "--user=bob")
    update = ("--verb=update", "--resource=queues.scheduling.volcano.sh", "--resource-name=steered")
    control_plane.must_kubectl("create", "clusterrole", "queue-updater", *update)
    with Components(control_plane) as components:
        service = components.start(WEBHOOKS).wait_ready()
        components.install_admission(service)

        def said(namespace: str = "default", *, uid: str = "u") -> str:
            target = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "name": "steered", "uid": uid}
            metadata = {"generateName": "c-", "namespace": namespace}
            head = {"apiVersion": COMMANDS.api_version, "kind": COMMANDS.kind, "metadata": metadata}
            body = json.dumps({**head, "action": "CloseQueue", "target": target})
            done = control_plane.kubectl("create", "--dry-run=server", "-f", "-", stdin=body, kubeconfig=user)
            return "" if done.returncode == 0 else done.stderr

        text = "user `bob` may not open or close queue `steered`: want the right to update"
        wait_until("Commands are judged", lambda: text in said())
        for namespace in ("kube-system", "kube-public"):
            assert text in said(namespace)
        assert "target.uid: Required value" in said(uid="")
        control_plane.must_kubectl(
            "create", "clusterrolebinding", "updaters", "--clusterrole=queue-updater", "--user=bob"
        )
        wait_until("what is granted holds", lambda: said() == "")
        assert "target.uid: Required value" in said(uid="")


def test_a_queue_is_deleted_by_what_is_stored_and_not_by_counts(control_plane: ControlPlane) -> None:
    _queue(control_plane, "counted")
    counts: Json = {"status": {"state": "Open", "running": 3}}
    patch = ("patch", "queue.scheduling.volcano.sh", "counted", "--subresource=status", "--type=merge")
    control_plane.must_kubectl(*patch, "-p", json.dumps(counts))
    with Components(control_plane) as components:
        service = components.start(WEBHOOKS).wait_ready()
        components.install_admission(service)
        job = json.loads(manifest("job", "counted"))
        control_plane.must_kubectl("create", "-f", "-", stdin=json.dumps(job))
        delete = ("delete", "queue.scheduling.volcano.sh", "counted", "--wait=false")
        refused = control_plane.kubectl(*delete)
        name = job["metadata"]["name"]
        assert f"because it has 1 unfinished Jobs (default/{name} Pending)" in refused.stderr
        control_plane.must_kubectl("delete", "jobs.batch.volcano.sh", name)
        control_plane.must_kubectl(*delete)


def test_the_queue_of_a_pod_stays_as_it_was_admitted(control_plane: ControlPlane) -> None:
    _queue(control_plane, "stays")
    with Components(control_plane) as components:
        service = components.start(WEBHOOKS).wait_ready()
        components.install_admission(service)
        spec = {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}
        metadata = {"name": "p", "namespace": "default", "annotations": {SCHEDULING_QUEUE_NAME: "stays"}}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        control_plane.must_kubectl("create", "-f", "-", stdin=json.dumps(body))

        def annotated(note: str) -> str:
            done = control_plane.kubectl("annotate", "--overwrite", "pod", "p", note)
            return "" if done.returncode == 0 else done.stderr

        moved = f"{SCHEDULING_QUEUE_NAME}=other"
        wait_until("pods are judged", lambda: "the pod was admitted with queue stays" in annotated(moved))
        assert "the pod was admitted with queue stays" in annotated(f"{SCHEDULING_QUEUE_NAME}-")
        assert annotated("example.com/other=x") == ""


def _queue(plane: ControlPlane, name: str) -> None:
    body: Json = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": {"name": name}, "spec": {}}
    resource: Resource = QUEUES
    plane.call("POST", resource.path(), body)
