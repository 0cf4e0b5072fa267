"""What tests on real nodes could leave on this machine: processes, mounts, network links, cgroups, files."""

from __future__ import annotations

import os
from pathlib import Path

from tests.nodes import cgroups

_FOLDERS = (
    "/etc/cni", "/opt/cni", "/opt/containerd", "/run/containerd", "/run/netns", "/var/lib/cni", "/var/lib/containerd",
    "/var/lib/kubelet", "/var/log/containers", "/var/log/pods", "/usr/libexec/kubernetes",
)  # fmt: skip
_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")


def observe(*folders: Path) -> set[str]:
    """All that could come from such tests, each as one line; `folders` hold what is theirs alone."""
    marks = [str(folder) for folder in folders]
    return {
        *(f"cgroup {path}" for path in cgroups.left()),
        *(f"link {path.name}" for path in Path("/sys/class/net").iterdir() if path.name != "lo"),
        *(f"folder {folder}" for folder in _FOLDERS if Path(folder).exists()),
        *(f"mount {line}" for line in _lines("/proc/self/mountinfo") if any(mark in line for mark in marks)),
        *(f"process {name}" for name in _processes(marks)),
        *(f"file {folder}" for folder in folders[:1] if folder.exists()),
        f"ip_forward {_FORWARDING.read_text(encoding='ascii').strip()}",
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()


def _processes(marks: list[str]) -> list[str]:
    """Those whose command line, environment's folder or cgroup is of these tests."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        if process.name == str(os.getpid()):
            continue
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            cgroup = (process / "cgroup").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if any(mark in command for mark in marks) or cgroups.PREFIX in cgroup:
            found.append(f"{process.name} {command.strip()}")
    return found
