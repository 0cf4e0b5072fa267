"""Whether this machine can run real nodes: root, namespaces, cgroups of version 1, Debian's packages, the test bed.

In continuous integration (`CI=true`) what is missing fails the tests; elsewhere they are skipped, in one line. As a
command, `python -m tests.nodes.available` says what is missing and ends with 3.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.cluster.binaries.available import UNAVAILABLE
from tests.cluster.binaries.available import unavailable as without_test_bed
from tests.cluster.binaries.programs import KUBERNETES_VARIABLE, kubernetes_version
from tests.nodes import cgroups
from tests.support import debian
from tests.support.lacking import required

SUPPORTED = "1.36"
"""Kubelets of 1.37 and newer ask containerd for its cgroup driver, which Debian's doesn't know."""
_PROGRAMS = ("bash", "hostname", "ip", "mount", "nsenter", "pivot_root", "unshare")


def missing() -> str:
    """What this machine lacks, in one line; empty where nothing is missing."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "not root on Linux"
    if lacking := [program for program in _PROGRAMS if shutil.which(program) is None]:
        return f"no {', '.join(lacking)} on the PATH"
    if lacking := cgroups.missing():
        return f"no cgroup v1 controllers {', '.join(lacking)} below /sys/fs/cgroup (cgroup v2 alone isn't supported)"
    if "overlay" not in Path("/proc/filesystems").read_text(encoding="utf-8"):
        return "no overlay file system"
    namespaces = ["unshare", "--mount", "--net", "--pid", "--fork", "--uts", "--ipc", "--cgroup", "true"]
    if subprocess.run(namespaces, capture_output=True, check=False).returncode != 0:
        return "namespaces can't be made here (unshare)"
    if lacking := debian.missing():
        return f"no {lacking}"
    if kubernetes_version() != SUPPORTED:
        return f"Kubernetes {kubernetes_version()} needs a newer containerd than Debian's; unset {KUBERNETES_VARIABLE}"
    return without_test_bed().partition(": ")[2]


def unavailable() -> str:
    """Why the tests are skipped; empty where they run, or must run because this is continuous integration."""
    if required():
        return ""
    lacking = missing()
    return f"tests on real nodes skipped: {lacking}" if lacking else ""


def main() -> int:
    """0 where the tests can run, else 3 (1 in continuous integration) with the reason."""
    lacking = missing()
    if not lacking:
        return 0
    if required():
        print(f"error: tests on real nodes can't run: {lacking}", file=sys.stderr)
        return 1
    print(f"tests on real nodes skipped: {lacking}", file=sys.stderr)
    return UNAVAILABLE


if __name__ == "__main__":
    raise SystemExit(main())
