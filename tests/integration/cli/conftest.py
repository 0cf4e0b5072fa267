"""The commands against a server of this machine. Most run in this process; those that are about signals, terminals or
file descriptors run as programs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.up import RunningVcbatch
from vcbatch.cli.base.output import CliError
from vcbatch.cli.main import cli


class Shell:
    """A folder to work in, and the server that commands find."""

    def __init__(self, program: RunningVcbatch, folder: Path) -> None:
        self.folder = folder
        self.environment = {"KUBECONFIG": str(program.kubeconfig), "NO_COLOR": "1"}

    def file(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return name

    def run(self, *arguments: str, stdin: str | None = None) -> Said:
        """In this process. What the program would complain of comes as its error and exit code."""
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            done = CliRunner(env=self.environment).invoke(cli, arguments, input=stdin, standalone_mode=False)
        finally:
            os.chdir(before)
        if isinstance(done.exception, CliError):
            return Said(done.exception.exit_code, done.stdout, f"{done.stderr}{done.exception}\n{done.exception.hint}")
        if done.exception is not None:
            raise done.exception
        return Said(done.return_value or 0, done.stdout, done.stderr)

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """As a program, with pipes where nothing else is said."""
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [sys.executable, "-m", "vcbatch", *arguments],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            **{"text": True, **pipes, **options},
        )


class Said:
    """What a command said and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def __repr__(self) -> str:
        return f"exit code {self.code}\n{self.out}{self.err}"

    def ok(self) -> str:
        assert self.code == 0, f"exit code {self.code}: {' | '.join((self.out + self.err).splitlines())}"
        return self.out


@pytest.fixture(scope="package")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningVcbatch]:
    with RunningVcbatch(tmp_path_factory.mktemp("cli")) as program:
        yield program


@pytest.fixture
def shell(program: RunningVcbatch, tmp_path: Path) -> Shell:
    return Shell(program, tmp_path)
