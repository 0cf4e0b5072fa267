"""Who may submit to which queue by RBAC, where the service is told to ask."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cluster.components import WEBHOOKS, Components
from tests.cluster.controlplane import REPOSITORY, ControlPlane
from tests.cluster.processes import wait_until
from tests.corpus.corpus import bases, changed
from vcbatch.api.model import Json
from vcbatch.api.resources import QUEUES, Resource

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
    _kubectl(control_plane, "create", "role", "worker", *everything)
    _kubectl(control_plane, "create", "rolebinding", "worker", "--role=worker", "--user=ann")
    submit = ("--verb=create", "--resource=queues.scheduling.volcano.sh/submit", "--resource-name=team")
    _kubectl(control_plane, "create", "role", "submit", *submit)
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
        _kubectl(control_plane, "create", "rolebinding", "submit", "--role=submit", "--user=ann")
        wait_until("what is granted holds", lambda: said(manifest("job", "team")) == "")
        assert said(manifest("cronjob", "team", at=at)) == ""
        assert "may not submit to queue `other`" in said(manifest("job", "other"))


def _kubectl(plane: ControlPlane, *arguments: str) -> None:
    done = plane.kubectl(*arguments)
    assert done.returncode == 0, done.stderr


def _queue(plane: ControlPlane, name: str) -> None:
    body: Json = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": {"name": name}, "spec": {}}
    resource: Resource = QUEUES
    plane.call("POST", resource.path(), body)
