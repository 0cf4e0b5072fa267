"""vcbatch on the cluster as people install it: its image, its chart, a real Helm."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.chart import helm as client
from tests.cluster.processes import wait_until
from tests.nodes.bed import VCBATCH_NAMESPACE, Bed, Plane
from tests.nodes.builds import Build

Json = dict[str, Any]

NAMESPACE = VCBATCH_NAMESPACE
RELEASE = "vcbatch"
CONTROLLERS, SCHEDULER, WEBHOOKS = "controllers", "scheduler", "webhooks"
COMPONENTS = (CONTROLLERS, SCHEDULER, WEBHOOKS)
_PATIENCE = 420
"""Seconds that a busy machine may take to replace all pods; a quiet one takes half a minute."""
WAIT = f"--timeout={_PATIENCE}s"


@dataclass(slots=True)
class Installed:
    """The release, and what tests do to it and ask about it."""

    bed: Bed
    newest: Build
    """The build of this checkout."""
    revisions: list[Build] = field(default_factory=list[Build])
    """The builds of the release's revisions, that of the present one last; empty where nothing is installed."""

    @property
    def build(self) -> Build | None:
        """What is installed; None where nothing is."""
        return self.revisions[-1] if self.revisions else None

    @property
    def plane(self) -> Plane:
        return self.bed.plane

    # Helm

    def helm(self, *arguments: str, timeout: float = _PATIENCE + 60) -> str:
        """What Helm printed; it must succeed."""
        done = client.run("--namespace", NAMESPACE, *arguments, kubeconfig=self.plane.kubeconfig, timeout=timeout)
        assert done.returncode == 0, f"helm {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def ensure(self, build: Build) -> None:
        """Return once that build is installed, available, and asked for admission."""
        if self.build is None:
            self.install(build)
        elif self.build is not build:
            self.upgrade(build)

    def install(self, build: Build) -> None:
        """Return once everything is available and admission is asked."""
        self.helm("install", RELEASE, str(build.chart), "--create-namespace", "--wait", WAIT, *self._values(build))
        self.revisions.append(build)
        self.wait_admission()

    def upgrade(self, build: Build) -> None:
        """Return once all pods are those of that build."""
        self.helm("upgrade", RELEASE, str(build.chart), "--wait", WAIT, *self._values(build))
        self.revisions.append(build)

    def rollback(self) -> None:
        """Go back to the revision before; return once all pods are those of its build."""
        self.helm("rollback", RELEASE, "--wait", WAIT)
        self.revisions.append(self.revisions[-2])

    def uninstall(self) -> None:
        """As docs/install.md says: first what asks the webhooks, then the rest. Return once its pods are gone."""
        kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
        self.plane.must_kubectl("delete", kinds, "--selector", f"app.kubernetes.io/instance={RELEASE}")
        self.helm("uninstall", RELEASE, "--wait", WAIT)
        self.revisions.clear()
        wait_until("its pods are gone", lambda: not any(self.pods(each) for each in COMPONENTS), pause=0.2)

    def _values(self, build: Build) -> list[str]:
        repository, _, tag = build.image.rpartition(":")
        values = {
            "image.repository": repository, "image.tag": tag, "image.pullPolicy": "Never",
            "networkPolicy.apiServerPorts": f"{{{self.plane.port}}}",
        }  # fmt: skip
        return [argument for key, value in values.items() for argument in ("--set", f"{key}={value}")]

    # State

    def wait_available(self) -> None:
        """Return once every Deployment has all its replicas, in their newest revision."""
        for component in COMPONENTS:
            deployment = f"deployment/vcbatch-{component}"
            self.plane.must_kubectl("rollout", "status", deployment, "-n", NAMESPACE, WAIT, timeout=_PATIENCE + 60)

    def wait_spread(self) -> None:
        """Return once the replicas of each Deployment are on different nodes: made anew where they aren't, since nobody
        moves those that had to leave a node back to it."""
        self.wait_available()
        for component in COMPONENTS:
            if len({pod["spec"].get("nodeName") for pod in self.pods(component)}) == 1:
                self.plane.must_kubectl("rollout", "restart", f"deployment/vcbatch-{component}", "-n", NAMESPACE)
        self.wait_available()

    def wait_admission(self) -> None:
        """Return once every webhook is registered, with the authority by which API servers trust it."""

        def trusted() -> bool:
            found = [each for kind in ("mutating", "validating") for each in self.configurations(kind)]
            bundles = [
                [webhook["clientConfig"].get("caBundle") for webhook in each.get("webhooks", ())] for each in found
            ]
            return bool(bundles) and all(inner and all(inner) for inner in bundles)

        wait_until("the webhooks are trusted", trusted, pause=0.2)

    def configurations(self, kind: str) -> list[Json]:
        """The webhook configurations of vcbatch, `mutating` or `validating`."""
        path = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations"
        found = self.plane.call("GET", path)["items"]
        return [each for each in found if each["metadata"]["name"].startswith("volcano-admission-service")]

    def pods(self, component: str) -> list[Json]:
        """The pods of a component."""
        label = f"app.kubernetes.io/component%3D{component}"
        return list(self.plane.call("GET", f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={label}")["items"])

    def asked_nodes(self) -> set[str]:
        """The nodes with webhooks that API servers ask."""
        label = "kubernetes.io/service-name%3Dvolcano-admission-service"
        path = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices?labelSelector={label}"
        return {
            endpoint["nodeName"]
            for each in self.plane.call("GET", path)["items"]
            for endpoint in each["endpoints"] or ()
            if endpoint["conditions"].get("ready")
        }

    def lease(self, component: str) -> Json:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/vcbatch-{component}"
        return dict(self.plane.call("GET", path)["spec"])

    def leader(self, component: str) -> str:
        """The name of the pod that leads."""
        return str(self.lease(component).get("holderIdentity") or "").rsplit("_", 2)[0]

    def leader_node(self, component: str) -> str:
        """The node that it runs on; empty where nobody leads."""
        leader = self.leader(component)
        return next((pod["spec"]["nodeName"] for pod in self.pods(component) if pod["metadata"]["name"] == leader), "")

    def uids(self) -> set[str]:
        """The pods of the release that aren't being deleted."""
        return {
            pod["metadata"]["uid"]
            for component in COMPONENTS
            for pod in self.pods(component)
            if "deletionTimestamp" not in pod["metadata"]
        }

    def kill(self, pod: Json) -> None:
        """SIGKILL for the program of a pod, on its node; the kubelet starts it again."""
        (status,) = pod["status"]["containerStatuses"]
        name = status["containerID"].removeprefix("containerd://")
        node = self.bed.nodes[pod["spec"]["nodeName"]]
        done = node.run("ctr", "--namespace", "k8s.io", "task", "kill", "--signal", "SIGKILL", name)
        assert done.returncode == 0, done.stderr

    def allow_ssh(self, namespace: str) -> None:
        """Let jobs of that namespace use the `ssh` plugin, which needs Secrets."""
        self.plane.must_kubectl(
            "create", "rolebinding", "vcbatch-ssh", "--namespace", namespace, "--clusterrole=vcbatch-ssh",
            f"--serviceaccount={NAMESPACE}:vcbatch-{CONTROLLERS}",
        )  # fmt: skip
