"""A node: containerd, kube-proxy and a kubelet in namespaces of their own, with one process whose end ends all."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.processes import Guard, Program
from tests.nodes import cgroups
from tests.support import debian

SCRIPT = Path(__file__).parent / "node.sh"
POD_NETWORK = "10.244.0.0/16"
CLUSTER_DNS = "10.0.0.10"
_NAMESPACES = ("--mount", "--net", "--pid", "--fork", "--uts", "--ipc", "--cgroup", "--kill-child")

_CONTAINERD = """\
version = 2
root = "{folder}/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Without CAP_SYS_RESOURCE runc can't lower the score of a sandbox.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/cni"
"""


PACKAGES = (
    "bash", "conntrack", "containerd", "containernetworking-plugins", "coreutils", "grep", "hostname", "iproute2",
    "iptables", "mount", "nftables", "procps", "runc", "util-linux",
)  # fmt: skip


def system() -> Path:
    """The root file system of nodes. Raises DebianError."""
    return debian.root("node", PACKAGES, _finish, "1")


def _finish(root: Path) -> None:
    """What the scripts of the packages would have done."""
    for family in ("iptables", "ip6tables"):
        for suffix in ("", "-save", "-restore"):
            (root / f"usr/sbin/{family}{suffix}").symlink_to("xtables-nft-multi")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n", encoding="utf-8")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\n", encoding="utf-8")
    (root / "etc/group").write_text("root:x:0:\n", encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What all nodes use and none changes."""

    system: Path
    """Their root file system."""
    kubelet: Path
    kube_proxy: Path
    pause: str
    """The name of the image that keeps a pod's namespaces."""
    shown: Sequence[Path] = ()
    """Further files and folders that nodes see, e.g. certificates."""


@dataclass(slots=True, kw_only=True)
class Node:
    """One node. Its folder keeps images and containers; `start` and `kill` may follow each other."""

    name: str
    index: int
    folder: Path
    logs: Path
    tools: Tools
    guard: Guard
    program: Program = field(init=False)
    _cgroups: list[Path] = field(init=False, default_factory=list)

    @property
    def address(self) -> str:
        return f"10.250.0.{10 + self.index}"

    @property
    def pods(self) -> str:
        """The addresses of its pods."""
        return f"10.244.{self.index}.0/24"

    @property
    def network(self) -> str:
        """Its network namespace, as a file."""
        return f"/proc/{self.init}/ns/net"

    @property
    def init(self) -> int:
        """Process 1 of the node, by its number on this machine."""
        children = Path(f"/proc/{self.program.pid}/task/{self.program.pid}/children").read_text(encoding="ascii")
        return int(children.split()[0])

    def configure(self, *, kubelet: Mapping[str, Any]) -> None:
        """Write what containerd and the kubelet read; `kubelet` is the variable part of its configuration."""
        for name in ("kubelet", "cni", "containerd"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "containerd.toml").write_text(
            _CONTAINERD.format(folder=self.folder, pause=self.tools.pause), encoding="utf-8"
        )
        bridge = {
            "type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True,
            "ipam": {
                "type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": self.pods}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }  # fmt: skip
        plugins = [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]
        network = {"cniVersion": "1.0.0", "name": "pods", "plugins": plugins}
        (self.folder / "cni/10-pods.conflist").write_text(json.dumps(network), encoding="utf-8")
        (self.folder / "resolv.conf").write_text("", encoding="utf-8")
        (self.folder / "kubelet.yaml").write_text(yaml.safe_dump(self._kubelet(kubelet)), encoding="utf-8")

    def _kubelet(self, more: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "clusterDomain": "cluster.local",
            "clusterDNS": [CLUSTER_DNS],
            "resolvConf": str(self.folder / "resolv.conf"),
            "podLogsDir": "/var/log/pods",
            "failSwapOn": False,
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%", "memory.available": "100Mi"},
            **more,
        }

    def fill(self, images: Path) -> None:
        """Take over the images of a folder that `import_images` wrote: files by hard links, databases as copies."""
        shutil.rmtree(self.folder / "containerd", ignore_errors=True)
        subprocess.run(["cp", "-al", str(images), str(self.folder / "containerd")], check=True)
        for database in images.rglob("*.db"):
            copy = self.folder / "containerd" / database.relative_to(images)
            copy.unlink()
            shutil.copy2(database, copy)

    def import_images(self, *archives: Path) -> None:
        """Read images from archives. The node ends again."""
        self._launch("import", archives)
        code = self.program.wait_ended(timeout=300)
        self._remove_cgroups()
        assert code == 0, f"images can't be imported:\n{self.program.said()[-3000:]}"

    def start(self) -> None:
        """Start process 1; containerd and the others follow as soon as the node has a network."""
        self._launch("run", ())

    def _launch(self, mode: str, archives: Sequence[Path]) -> None:
        self._cgroups = cgroups.create(f"{os.getpid()}-{self.name}")
        for path in self._cgroups:
            self.guard.remove(path)
        enter = "".join(f"echo $$ > {path}/cgroup.procs; " for path in self._cgroups) + 'exec "$@"'
        tools = self.tools
        programs = [tools.kubelet, tools.kube_proxy] if mode == "run" else []
        environment = {
            "FOLDER": self.folder, "LOGS": self.logs, "SYSTEM": tools.system, "KUBELET": tools.kubelet,
            "KUBE_PROXY": tools.kube_proxy, "ADDRESS": self.address, "POD_NETWORK": POD_NETWORK,
            "ARCHIVES": " ".join(map(str, archives)),
            "BINDS": " ".join(map(str, (self.folder, self.logs, *tools.shown, *programs, *archives))),
            "HIERARCHIES": " ".join(f"{each.folder}:{each.option}" for each in cgroups.hierarchies()),
        }  # fmt: skip
        self.program = Program(
            self.name,
            ["bash", "-c", enter, "enter", "unshare", *_NAMESPACES, "bash", str(SCRIPT), mode, self.name],
            log=self.logs / f"{self.name}.log",
            guard=self.guard,
            env={key: str(value) for key, value in environment.items()},
        )
        self.program.start()

    def kill(self) -> None:
        """As a machine that loses its power: SIGKILL for process 1, and with it for all others."""
        if hasattr(self, "program"):
            self.program.kill()
        self._remove_cgroups()

    def _remove_cgroups(self) -> None:
        for path in self._cgroups:
            cgroups.remove(path)
        self._cgroups = []

    def run(self, *command: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a command in the node's namespaces."""
        return subprocess.run(
            ["nsenter", f"--target={self.init}", "--all", *command],
            capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
