"""A cluster with real nodes on this machine: a control plane, and kubelets that run containers.

Its network is one bridge in a network namespace of its own, in which the control plane's programs run; each node has a
network namespace at that bridge, and pods have theirs at a bridge of their node. Nothing is added to this machine's
own network. Tests reach the API server by a port of 127.0.0.1 that is carried into the namespace.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from tests.cluster import audit
from tests.cluster.binaries.build import Binaries
from tests.cluster.controlplane import APISERVER, CONTROLLERS, REPOSITORY, ControlPlane, Options
from tests.cluster.processes import Guard, Program, wait_until
from tests.nodes import cgroups, images
from tests.nodes.node import Node, Tools, system
from tests.support.caches import cache, digest, made_once

HUB = "10.250.0.1"
VCBATCH_NAMESPACE = "volcano-system"
_NODE_LOST_SECONDS = 32
"""How long a kubelet may be silent: long enough for one that a busy machine holds up."""


class Plane(ControlPlane):
    """The control plane of real nodes: it asks kubelets for logs and the like, and lets them do what nodes may."""

    def _commands(self) -> dict[str, list[str]]:
        commands = super()._commands()
        asks = self.authority.client("kube-apiserver-kubelet-client", groups=("system:masters",))
        commands[APISERVER] += [
            f"--kubelet-client-certificate={asks.certificate}", f"--kubelet-client-key={asks.key}",
            f"--kubelet-certificate-authority={self.authority.certificate}",
        ]  # fmt: skip
        return commands

    @property
    def port(self) -> int:
        return self._ports[APISERVER]

    def node_kubeconfig(self, name: str, *, groups: Sequence[str] = ()) -> Path:
        """The kubeconfig of a user who comes from a node."""
        return self.through(f"https://{HUB}:{self.port}", self.user(name, groups=groups), name=f"{name}-node")


class Bed:
    """The whole cluster, in a folder of its own that goes with it; its logs go to the folder that the test gives."""

    def __init__(self, folder: Path, binaries: Binaries, archives: Sequence[Path], *, nodes: int = 2) -> None:
        """`archives` are OCI archives of images that the nodes have, each in a folder that is named for its content;
        the last one is the one that changes most often."""
        self.folder = folder
        self.binaries = binaries
        self.archives = archives
        self.logs = folder / "logs"
        self.nodes: dict[str, Node] = {}
        self.plane: Plane
        self.seconds: dict[str, float] = {}
        """How long what took, for the report."""
        self._count = nodes
        self._cleanup = ExitStack()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Return once all nodes are Ready."""
        cgroups.sweep()
        began = time.monotonic()
        self.guard = Guard()
        self._cleanup.callback(self.guard.close)
        base = cache() / "nodes"
        base.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        self.state = Path(tempfile.mkdtemp(prefix="run-", dir=base))
        self.guard.remove(self.state)
        self._cleanup.callback(shutil.rmtree, self.state)
        tools = Tools(
            system=system(),
            kubelet=self.binaries.path("kubelet"),
            kube_proxy=self.binaries.path("kube-proxy"),
            pause=images.PAUSE,
            shown=[self.folder],
        )
        for index in range(1, self._count + 1):
            name = f"node{index}"
            self.nodes[name] = Node(
                name=name, index=index, folder=self.state / name, logs=self.logs, tools=tools, guard=self.guard
            )
        self._provide_images(tools)
        self.seconds["images imported"] = time.monotonic() - began
        began = time.monotonic()
        self._open_network()
        self._start_plane()
        self.seconds["API server ready"] = time.monotonic() - began
        self._add_node_rights()
        for node in self.nodes.values():
            self._cleanup.callback(node.kill)
            self._configure(node)
            self.start_node(node)
        self.wait_ready(*self.nodes)
        self.seconds["nodes Ready"] = time.monotonic() - began

    def stop(self) -> None:
        """End everything, and remove all but the logs. What can't be ended keeps nothing else from its end."""
        self._cleanup.close()

    # Images

    def _provide_images(self, tools: Tools) -> None:
        """Import the archives once for all nodes and for later runs: the last one, which changes with each change of
        the code, on top of the others."""
        *lasting, last = self.archives
        imported = self._imported(tools, lasting, None)
        imported = self._imported(tools, [last], imported)
        for node in self.nodes.values():
            node.folder.mkdir()
            node.fill(imported / "containerd")

    def _imported(self, tools: Tools, archives: Sequence[Path], before: Path | None) -> Path:
        """A node's folder with the images of another one and of these archives."""

        def make(folder: Path) -> None:
            node = Node(name="importer", index=0, folder=folder, logs=self.logs, tools=tools, guard=self.guard)
            if before is not None:
                node.fill(before / "containerd")
            node.configure(kubelet={})
            node.import_images(*archives)

        parts = [str(tools.system), before.name if before else "", *(archive.parent.name for archive in archives)]
        return made_once("nodes/images", digest(parts), make)

    # Network

    def _open_network(self) -> None:
        """The namespace with the bridge. Its process does nothing but keep it."""
        self._hub = Program(
            "hub", ["unshare", "--net", "sleep", "infinity"], log=self.logs / "hub.log", guard=self.guard
        )
        self._cleanup.callback(self._hub.kill)
        self._hub.start()
        own = Path("/proc/self/ns/net")
        wait_until("the network exists", lambda: not Path(self.network).samefile(own))
        self.ip("link", "set", "lo", "up")
        self.ip("link", "add", "hub", "type", "bridge")
        self.ip("address", "add", f"{HUB}/24", "dev", "hub")
        self.ip("link", "set", "hub", "up")

    @property
    def network(self) -> str:
        """The network namespace of the control plane, as a file."""
        return f"/proc/{self._hub.pid}/ns/net"

    def ip(self, *arguments: str, network: str = "") -> None:
        """Run `ip` in the control plane's network namespace, or another."""
        done = subprocess.run(
            ["nsenter", f"--net={network or self.network}", "ip", *arguments],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"

    def _connect(self, node: Node) -> None:
        """Bring a node that was just started to the bridge."""
        outside = f"veth{node.index}"
        wait_until(f"{node.name} has a network", lambda: self._separate(node))
        self.ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", str(node.init))
        self.ip("link", "set", outside, "master", "hub", "up")
        self.ip("address", "add", f"{node.address}/24", "dev", "eth0", network=node.network)
        self.ip("link", "set", "eth0", "up", network=node.network)
        self.ip("route", "add", "default", "via", HUB, network=node.network)
        self.ip("route", "replace", node.pods, "via", node.address)
        for other in self.nodes.values():
            if other is not node:
                self.ip("route", "add", other.pods, "via", other.address, network=node.network)

    def _separate(self, node: Node) -> bool:
        """Whether the node has its own network namespace by now."""
        if not node.program.running:
            raise AssertionError(f"{node.name} ended:\n{node.program.said()}")
        try:
            return not Path(node.network).samefile("/proc/self/ns/net")
        except (OSError, IndexError):
            return False

    # Control plane

    def _start_plane(self) -> None:
        self.audited = self.folder / "audit"
        self.audited.mkdir()
        options = Options(
            kwok=False,
            controllers=("*",),
            network=Path(self.network),
            hosts=(HUB,),
            flags={
                APISERVER: (
                    "--bind-address=0.0.0.0", f"--advertise-address={HUB}", "--endpoint-reconciler-type=lease",
                    "--authorization-mode=Node", "--enable-admission-plugins=NodeRestriction",
                    "--kubelet-preferred-address-types=InternalIP",
                    # It has no kube-proxy: a Service is asked by the addresses behind it.
                    "--enable-aggregator-routing=true",
                ),
                CONTROLLERS: (
                    f"--node-monitor-grace-period={_NODE_LOST_SECONDS}s", "--node-monitor-period=1s",
                    # It makes this folder, by default in /usr.
                    f"--flex-volume-plugin-dir={self.folder}/flex-volumes",
                ),
            },
        )  # fmt: skip
        options = audit.options(self.audited, options, rules=_AUDITED)
        self.plane = Plane(self.folder / "plane", self.binaries, options)
        port = str(self.plane.port)
        command = [sys.executable, "-m", "tests.nodes.forward", port, self.network, "127.0.0.1", port]
        self._forward = Program("forward", command, log=self.logs / "forward.log", guard=self.guard, cwd=REPOSITORY)
        self._cleanup.callback(self._forward.kill)
        self._forward.start()
        self._cleanup.callback(self.plane.stop)
        self.plane.start()

    def _add_node_rights(self) -> None:
        """What kubeadm would give kube-proxy, which no node has by itself."""
        for binding in _BINDINGS:
            self.plane.call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)

    # Nodes

    def _configure(self, node: Node) -> None:
        plane = self.plane
        serving = plane.authority.serving(f"kubelet-{node.name}-serving", hosts=(node.name, node.address, "127.0.0.1"))
        node.configure(
            kubelet={
                "authentication": {
                    "anonymous": {"enabled": False},
                    "webhook": {"enabled": True},
                    "x509": {"clientCAFile": str(plane.authority.certificate)},
                },
                "authorization": {"mode": "Webhook"},
                "tlsCertFile": str(serving.certificate),
                "tlsPrivateKeyFile": str(serving.key),
                "nodeLeaseDurationSeconds": 20,
                "nodeStatusUpdateFrequency": "4s",
                "nodeStatusReportFrequency": "10s",
            }
        )
        kubelet = plane.node_kubeconfig(f"system:node:{node.name}", groups=("system:nodes",))
        shutil.copyfile(kubelet, node.folder / "kubelet.kubeconfig")
        shutil.copyfile(plane.node_kubeconfig("system:kube-proxy"), node.folder / "kube-proxy.kubeconfig")

    def start_node(self, node: Node) -> None:
        """Start a node, for the first time or again; it isn't waited for."""
        node.start()
        self._connect(node)

    def is_ready(self, name: str) -> bool:
        """Whether the node is Ready by what the API server knows."""
        return _is_ready(self.plane.call("GET", f"/api/v1/nodes/{name}"))

    def wait_ready(self, *names: str, timeout: float = 120.0) -> None:
        """Return once these nodes are Ready; raises where one of them ended."""

        def ready() -> bool:
            for name in names:
                self.nodes[name].program.check()
            found = self.plane.call("GET", "/api/v1/nodes")["items"]
            return {node["metadata"]["name"] for node in found if _is_ready(node)} >= set(names)

        wait_until(f"{', '.join(names)} ready", ready, timeout=timeout, pause=0.1)


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


_WRITES = ["create", "update", "patch", "delete", "deletecollection"]
_AUDITED: Sequence[audit.Rule] = [
    {"level": "Request", "verbs": _WRITES, "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}],
     "namespaces": [VCBATCH_NAMESPACE]},
    {"level": "Metadata", "verbs": _WRITES,
     "resources": [{"group": "", "resources": ["pods", "pods/eviction"]}, {"group": "batch.volcano.sh"}]},
    {"level": "None"},
]  # fmt: skip
"""What the log has: who leads by vcbatch's Leases, and what is done to pods and jobs."""

_BINDINGS = [
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "kube-proxy"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-proxier"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:kube-proxy"}],
    }
]
