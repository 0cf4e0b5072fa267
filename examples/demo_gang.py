"""The first part of `make demo`, without PyTorch: a gang of three pods waits until all of them fit, runs, and ends."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from vcbatch.interfaces import interpreter

MEMBERS = 3
PATIENCE = "60s"
PROGRAM = f"echo member $VC_TASK_INDEX of {MEMBERS}; sleep 1"


def vcbatch(*arguments: str, kubeconfig: Path) -> int:
    """Run a command with the output of this process; its exit code."""
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    return subprocess.run(interpreter.vcbatch(*arguments), env=environment, check=False).returncode


def shown(*arguments: str, kubeconfig: Path) -> int:
    print(f"\n  $ {shlex.join(('vcbatch', *arguments))}", flush=True)
    return vcbatch(*arguments, kubeconfig=kubeconfig)


def main() -> int:
    """0 if the gang has run to its end."""
    cpus = os.cpu_count() or 1
    share = f"{cpus * 1000 // (MEMBERS + 1)}m"
    with tempfile.TemporaryDirectory(prefix="vcbatch-demo-") as folder:
        state = Path(folder) / "state"
        kubeconfig = state / "kubeconfig"
        print("vcbatch demo: first a gang without PyTorch", flush=True)
        try:
            if vcbatch("up", "--detach", "--port", "0", "--state-dir", str(state), kubeconfig=kubeconfig):
                return 1
            print("\nA job takes half of this machine's CPUs.", flush=True)
            half = f"{cpus * 500}m"
            hold = ("run", "--detach", "--name", "first", "--cpus", half, "-o", "name", "--", "sleep", "600")
            gang = ("run", "--detach", "--name", "gang", "--nodes", str(MEMBERS), "--cpus", share, "-o", "name", "--")
            if shown(*hold, kubeconfig=kubeconfig) or shown(
                "wait", "first", "--for", "running", "--timeout", PATIENCE, kubeconfig=kubeconfig
            ):
                return 1
            print(f"\nA gang of {MEMBERS} needs three quarters: none of its pods starts until all can.", flush=True)
            if shown(*gang, "sh", "-c", PROGRAM, kubeconfig=kubeconfig):
                return 1
            shown("job", "list", kubeconfig=kubeconfig)
            print("\nThe first job is cancelled, and the gang starts.", flush=True)
            shown("job", "cancel", "first", kubeconfig=kubeconfig)
            ended = shown("wait", "gang", "--for", "completed", "--timeout", PATIENCE, kubeconfig=kubeconfig)
            shown("job", "logs", "gang", kubeconfig=kubeconfig)
            print(flush=True)
            return ended
        finally:
            vcbatch("down", "--state-dir", str(state), kubeconfig=kubeconfig)


if __name__ == "__main__":
    sys.exit(main())
