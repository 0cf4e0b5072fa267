"""A released torchx in a separate environment, used by its command line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

from tests.support import kubeconfigs
from tests.support.caches import alone, cache, digest
from tests.support.lacking import lacks

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "constraints-torchx.txt"
_RELEASE = "torchx[kubernetes]"
_STATE = re.compile(r"^ *State: (\w+)$", re.MULTILINE)
_REPLICA = re.compile(r"^[ *]*(\w+)\[(\d+)\]:(\w+)", re.MULTILINE)


def environment() -> Path:
    """The directory of its programs, built once per machine below the user's cache. Skips the test where its packages
    are unavailable, but fails in continuous integration."""
    # Not `made_once`: an environment works only at the path where it was created.
    folder = cache() / f"torchx-{digest([CONSTRAINTS.read_bytes(), sys.version])}"
    ready = folder / ".ready"
    with alone(folder.name):
        if not ready.exists():
            install = [
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "-c",
                str(CONSTRAINTS),
                _RELEASE,
            ]
            for command in ([sys.executable, "-m", "venv", "--clear", folder], [folder / "bin" / "python", *install]):
                done = subprocess.run(command, capture_output=True, text=True, timeout=540, check=False)
                if done.returncode:
                    lacks(f"no torchx: {done.stderr}")
            ready.touch()
    return folder / "bin"


class Torchx:
    """Its command line, for one namespace of one server."""

    def __init__(self, programs: Path, kubeconfig: Path, namespace: str, folder: Path) -> None:
        self.namespace = namespace
        self._torchx = programs / "torchx"
        # It lists the namespace of the kubeconfig's current context, which must be set.
        config = yaml.safe_load(kubeconfig.read_text())
        for context in config["contexts"]:
            context["context"]["namespace"] = namespace
        own = kubeconfigs.write(folder / "kubeconfig", config)
        self._folder = folder
        self._environment = {**os.environ, "HOME": str(folder), "KUBECONFIG": str(own)}
        self._environment.pop("PYTHONPATH", None)

    def __call__(self, *arguments: str) -> str:
        """The output of a command."""
        done = self._typed(*arguments)
        assert done.returncode == 0, f"torchx {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def cancel(self, app: str) -> bool:
        """Whether the cancellation was accepted: it isn't if another client wrote the job's status after torchx
        read it."""
        done = self._typed("cancel", app)
        assert done.returncode == 0 or "Conflict" in done.stderr, done.stdout + done.stderr
        return done.returncode == 0

    def _typed(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._torchx, *arguments],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def run(self, *command: str, replicas: int) -> str:
        """Submit an app of the component `utils.sh`, which runs `command` in a shell; returns its handle."""
        config = f"queue=default,namespace={self.namespace}"
        component = ["utils.sh", "--image", "example.com/app", "--num_replicas", str(replicas)]
        said = self("run", "--scheduler", "kubernetes", "-cfg", config, "--workspace=", *component, "--", *command)
        return said.split()[-1]

    def state(self, app: str) -> str:
        found = _STATE.search(self("status", app))
        assert found is not None
        return found[1]

    def replicas(self, app: str) -> dict[str, str]:
        """The state of each replica."""
        return {f"{role}/{index}": state for role, index, state in _REPLICA.findall(self("status", app))}

    def apps(self) -> dict[str, str]:
        """State by handle of the listed apps."""
        rows = (line.split() for line in self("list", "--scheduler", "kubernetes").splitlines())
        return {row[0]: row[1] for row in rows if len(row) == 2 and row[0].startswith("kubernetes://")}

    def log(self, app: str) -> list[str]:
        return sorted(self("log", f"{app}/sh").splitlines())
