"""`vcbatch up` as users run it, for tests that need the whole program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self


def vcbatch(*arguments: str, timeout: float = 120.0, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "vcbatch", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if check and done.returncode:
        raise AssertionError(f"vcbatch {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


_GUARD = """
import os, subprocess, sys
sys.stdin.read()
subprocess.run([sys.executable, "-m", "vcbatch", "down", "--state-dir", os.environ["STATE"]])
"""


class RunningVcbatch:
    """A detached `vcbatch up` on a separate state directory, from `up` to `down`, or for the duration of a `with`
    block. It ends at the latest with the test's process, however that ends."""

    def __init__(self, folder: Path, arguments: Sequence[str] = ()) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.kubeconfig = self.state / "kubeconfig"
        self.arguments = tuple(arguments)
        self._guard: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def up(self) -> None:
        if self._guard is None:
            # Its standard input is closed when this process ends.
            self._guard = subprocess.Popen(
                [sys.executable, "-c", _GUARD],
                stdin=subprocess.PIPE,
                text=True,
                start_new_session=True,
                env={**os.environ, "STATE": str(self.state)},
            )
        vcbatch("up", "--detach", "--port", "0", "--state-dir", str(self.state), *self.arguments)

    def down(self) -> None:
        vcbatch("down", "--state-dir", str(self.state))
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
            self._guard = None

    def kubectl(self, *arguments: str, stdin: str | None = None, env: dict[str, str] | None = None) -> Kubectl:
        command = ["kubectl", "--kubeconfig", str(self.kubeconfig), "--cache-dir", str(self.folder / "cache")]
        done = subprocess.run(
            [*command, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=90,
            env={**os.environ, **(env or {})},
            check=False,
        )
        return Kubectl(arguments, done)


class Kubectl:
    """The result of a kubectl command."""

    def __init__(self, arguments: Sequence[str], done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self._said = f"kubectl {' '.join(arguments)}\n-> {self.code}\n{self.out}{self.err}"

    def ok(self) -> str:
        assert self.code == 0, self._said
        return self.out

    def fails(self) -> str:
        assert self.code != 0, self._said
        return self.err
