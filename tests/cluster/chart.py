"""The chart on a test cluster: releases by a real Helm client, and its programs beside it.

Simulated nodes run no program, so what a Deployment would run is started here: with its command line, the files of its
ConfigMaps, and the token of its service account. Only addresses are those of this machine.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.chart import helm as client
from tests.cluster.components import Component, Components
from tests.cluster.controlplane import REPOSITORY, ControlPlane
from tests.cluster.processes import Program
from vcbatch.runtime.client.kubeconfig import SERVICE_ACCOUNT_VARIABLE

Json = dict[str, Any]

_ADDRESSES = ("--healthz-address", "--listen-address", "--port")
"""Flags for which there is an address of this machine."""
_names = itertools.count()


class Release:
    """A release of the chart on one control plane. Every step returns what Helm said, having asserted its status."""

    def __init__(self, plane: ControlPlane, *, name: str = client.RELEASE, namespace: str = client.NAMESPACE) -> None:
        self.plane, self.name, self.namespace = plane, name, namespace

    def helm(self, *arguments: str, values: Mapping[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
        """Any command, in the namespace of the release; nothing is asserted."""
        given = () if values is None else ("--values", "-")
        return client.run(
            *arguments, "--namespace", self.namespace, *given,
            stdin=None if values is None else yaml.safe_dump(dict(values)), kubeconfig=self.plane.kubeconfig,
        )  # fmt: skip

    def tried(self, *flags: str, values: Mapping[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
        """`helm install`, which may be refused."""
        return self.helm("install", self.name, str(client.CHART), "--create-namespace", *flags, values=values or {})

    def install(self, *flags: str, values: Mapping[str, Any] | None = None) -> str:
        return _done(self.tried("--wait", *flags, values=values))

    def upgrade(self, *flags: str, values: Mapping[str, Any] | None = None, chart: Path = client.CHART) -> str:
        return _done(self.helm("upgrade", self.name, str(chart), "--wait", *flags, values=values or {}))

    def rollback(self, revision: int) -> str:
        return _done(self.helm("rollback", self.name, str(revision), "--wait"))

    def uninstall(self) -> str:
        return _done(self.helm("uninstall", self.name, "--wait"))

    @property
    def objects(self) -> list[Json]:
        """What it consists of, by Helm's record."""
        return [each for each in yaml.safe_load_all(_done(self.helm("get", "manifest", self.name))) if each]


def _done(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, f"{' '.join(done.args[1:3])}: {done.stdout}{done.stderr}"
    return done.stdout


class Programs:
    """The programs of a release's Deployments, as processes of this machine."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.plane = release.plane
        self._components = Components(self.plane, managed_certificates=True)

    def start(self, deployment: str, *, replica: str = "") -> Component:
        """One replica of that Deployment, as the cluster has it now; it isn't waited for."""
        pod = self._pod(f"/apis/apps/v1/namespaces/{self.release.namespace}/deployments/{deployment}")
        (container,) = pod["containers"]
        part, *arguments = self._localized(pod, container["args"])
        flags = [each for each in arguments if each.partition("=")[0] not in _ADDRESSES]
        account = self.plane.service_account(self.release.namespace, pod["serviceAccountName"])
        return self._components.start(part, *flags, replica=replica or deployment, kubeconfig=account)

    def run_pod(self, path: str) -> Program:
        """What a Pod would run, started as its service account in a pod finds things."""
        pod = self._pod(path)
        (container,) = pod["containers"]
        command = self._localized(pod, container["command"])
        account = self._account(pod["serviceAccountName"], path.split("/")[4])
        name = f"pod-{next(_names)}"
        host, _, port = self.plane.server.removeprefix("https://").rpartition(":")
        program = Program(
            name,
            [sys.executable if command[0] == "python3" else command[0], *command[1:]],
            log=self.plane.logs / f"{name}.log",
            guard=self.plane.guard,
            cwd=self.plane.folder,
            env={
                "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "KUBECONFIG": "",
                SERVICE_ACCOUNT_VARIABLE: str(account), "HOME": str(account), "PYTHONPATH": str(REPOSITORY),
            },
        )  # fmt: skip
        program.start()
        return program

    def stop(self) -> None:
        """End all. What they wrote stays, unlike after `Components.stop`."""
        for component in self._components.running:
            component.program.stop()
        self._components.running.clear()

    def _pod(self, path: str) -> Json:
        found = self.plane.call("GET", path)
        spec: Json = found["spec"]["template"]["spec"] if "template" in found["spec"] else found["spec"]
        return {**spec, "namespace": found["metadata"]["namespace"]}

    def _localized(self, pod: Json, arguments: Sequence[str]) -> list[str]:
        """The arguments with folders of this machine in the place of mounted ConfigMaps."""
        (container,) = pod["containers"]
        folders: dict[str, str] = {}
        for mount in container["volumeMounts"]:
            (volume,) = [each for each in pod["volumes"] if each["name"] == mount["name"]]
            if "configMap" in volume:
                folders[mount["mountPath"]] = str(self._files(pod["namespace"], volume["configMap"]))
        moved = list(arguments)
        for inside, here in folders.items():
            moved = [each.replace(f"{inside}/", f"{here}/") for each in moved]
        return moved

    def _files(self, namespace: str, source: Json) -> Path:
        data = self.plane.call("GET", f"/api/v1/namespaces/{namespace}/configmaps/{source['name']}")["data"]
        items = source.get("items") or [{"key": key, "path": key} for key in data]
        folder = self.plane.folder / f"files-{next(_names)}"
        folder.mkdir()
        for item in items:
            (folder / item["path"]).write_text(data[item["key"]], encoding="utf-8")
        return folder

    def _account(self, name: str, namespace: str) -> Path:
        """A folder as a kubelet mounts it for a service account."""
        folder = self.plane.folder / f"account-{next(_names)}"
        folder.mkdir()
        self.plane.write_token(namespace, name, folder / "token")
        (folder / "ca.crt").write_bytes(self.plane.authority.certificate.read_bytes())
        (folder / "namespace").write_text(namespace)
        return folder


@contextmanager
def programs(release: Release, *deployments: str) -> Iterator[Programs]:
    """One replica of each of these Deployments, ready; all end with the block."""
    running = Programs(release)
    try:
        for component in [running.start(each) for each in deployments]:
            component.wait_ready()
        yield running
    finally:
        running.stop()
