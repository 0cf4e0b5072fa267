"""Cgroups (version 1) for what the tests start, and their end.

A process is in one cgroup of each hierarchy. The tests' own lie below those in which the tests themselves run.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.processes import wait_until

MOUNTED = Path("/sys/fs/cgroup")
PREFIX = "vcbatch-nodes-"
UNIFIED = "unified"
NEEDED = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids")
"""The controllers without which a kubelet or runc doesn't work on version 1."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One hierarchy: its folder in /sys/fs/cgroup, its mount option (`cpu,cpuacct`, `name=systemd`), our own cgroup."""

    folder: str
    option: str
    own: str

    @property
    def path(self) -> Path:
        """The folder of the cgroup that this process is in."""
        return MOUNTED / self.folder / self.own.lstrip("/")


def hierarchies() -> list[Hierarchy]:
    """Those that are mounted where containers expect them."""
    found = []
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        number, controllers, own = line.split(":", 2)
        if number == "0":
            hierarchy = Hierarchy(UNIFIED, "", own)
        else:
            hierarchy = Hierarchy(controllers.removeprefix("name="), controllers, own)
        if os.path.ismount(MOUNTED / hierarchy.folder) and hierarchy.path.is_dir():
            found.append(hierarchy)
    return found


def missing() -> list[str]:
    """The controllers of version 1 that aren't mounted here."""
    mounted = {controller for each in hierarchies() for controller in each.option.split(",")}
    return [controller for controller in NEEDED if controller not in mounted]


def create(name: str) -> list[Path]:
    """A cgroup of that name in each hierarchy, ready to take processes."""
    made = []
    for hierarchy in hierarchies():
        path = hierarchy.path / f"{PREFIX}{name}"
        path.mkdir(exist_ok=True)
        if "cpuset" in hierarchy.option.split(","):
            for setting in ("cpuset.cpus", "cpuset.mems"):  # empty ones take no process
                (path / setting).write_text((hierarchy.path / setting).read_text(encoding="utf-8"), encoding="utf-8")
        made.append(path)
    return made


def remove(path: Path) -> None:
    """Remove a cgroup and those below it, as soon as their processes are gone."""
    wait_until(f"{path} is empty", lambda: _removed(path), timeout=30)


def _removed(path: Path) -> bool:
    """Whether it is gone now, deepest first."""
    for folder, _, _ in os.walk(path, topdown=False):
        try:
            Path(folder).rmdir()
        except OSError:
            return False
    return True


def left() -> list[Path]:
    """All that such tests made and didn't remove, in whichever hierarchy."""
    return [Path(folder) / name for folder, names, _ in os.walk(MOUNTED) for name in names if name.startswith(PREFIX)]


def sweep() -> None:
    """Remove what a killed run left, unless a process is in it."""
    for path in left():
        _removed(path)
