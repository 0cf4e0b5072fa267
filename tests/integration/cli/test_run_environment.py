"""A program on this machine runs in the environment of the shell that submitted it. Real processes."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.conftest import Said, Shell
from tests.support.up import RunningVcbatch
from vcbatch.api.names import ENVIRONMENT

pytestmark = pytest.mark.xdist_group("cli")

PATIENCE = 60.0  # seconds, for what takes one


def stored(program: RunningVcbatch) -> dict[str, str]:
    directory = program.kubeconfig.parent / "environments"
    return {path.name: path.read_text() for path in directory.glob("*")}


def until(condition: object) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def activated(shell: Shell) -> Path:
    """A stand-in for an activated virtual environment, in the shell that submits."""
    python = shell.folder / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "python of $VIRTUAL_ENV with $@, $TOKEN"\n')
    python.chmod(0o755)
    shell.environment |= {
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "VIRTUAL_ENV": str(python.parent.parent),
        "TOKEN": "kept-in-one-file",
        "SLURM_JOB_ID": "17",
        "RANK": "3",
    }
    return python.parent.parent


def test_a_wrapper_script_finds_the_activated_python(shell: Shell, umask: None) -> None:
    venv = activated(shell)
    shell.file("sweep.sh", '#!/bin/sh\npython train.py\necho "$(umask) $PWD ${SLURM_JOB_ID-none} ${RANK-none}"\n')
    (shell.folder / "sweep.sh").chmod(0o755)
    said = shell.run("run", "./sweep.sh")
    assert said.out.splitlines() == [
        f"python of {venv} with train.py, kept-in-one-file",
        f"0027 {shell.folder} none none",
    ]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["--export", "NONE"], " "),
        (["--export", "TOKEN,ANSWER=42"], "kept-in-one-file 42"),
        (["--export", "ALL,TOKEN=other"], "other "),
        (["-e", "TOKEN=stronger"], "stronger "),
    ],
)
def test_the_user_chooses_what_is_exported(shell: Shell, options: list[str], shown: str) -> None:
    activated(shell)
    said = shell.run("run", *options, "--", "sh", "-c", 'echo "$TOKEN $ANSWER"')
    assert said.out == f"{shown}\n"


def test_values_are_in_one_private_file_until_the_job_is_deleted(shell: Shell, program: RunningVcbatch) -> None:
    activated(shell)
    shell.environment["TOKEN"] = "in-one-file-only"
    created = json.loads(shell.run("run", "--detach", "-o", "json", "--name", "keeps", "--", "sleep", "600").ok())
    number = created["metadata"]["annotations"][ENVIRONMENT]
    shell.run("wait", "keeps", "--for", "running").ok()
    path = program.kubeconfig.parent / "environments" / number
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
    files = [file for file in program.kubeconfig.parent.rglob("*") if file.is_file() and not file.is_symlink()]
    assert [file for file in files if b"in-one-file-only" in file.read_bytes()] == [path]
    shell.run("job", "delete", "keeps").ok()
    until(lambda: not path.exists())


def test_a_restarted_job_keeps_its_environment(shell: Shell) -> None:
    activated(shell)
    script = 'echo "$TOKEN"; [ -e there ] || { touch there; sleep 3; exit 2; }'
    said = shell.run("run", "--max-retries", "1", "--", "sh", "-c", script)
    assert (said.code, said.out) == (0, "kept-in-one-file\n" * 2)


def test_a_job_that_copies_the_id_gets_nothing(shell: Shell, program: RunningVcbatch) -> None:
    activated(shell)
    submitted = shell.run("run", "--detach", "-o", "json", "--name", "owner", "--", "sleep", "600").ok()
    job = json.loads(submitted)
    copy = {**job, "metadata": {"name": "thief", "annotations": job["metadata"]["annotations"]}}
    copy.pop("status", None)
    copy["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["command"] = ["env"]
    shell.run("apply", "--yes", "-f", "-", stdin=json.dumps(copy)).ok()

    def refused() -> bool:
        return "belongs to another job" in pod(shell, "thief-worker-0")

    until(refused)
    shell.run("job", "delete", "thief").ok()
    until(lambda: shell.run("job", "get", "thief").code != 0)
    assert job["metadata"]["annotations"][ENVIRONMENT] in stored(program)
    shell.run("job", "delete", "owner").ok()


def pod(shell: Shell, name: str) -> str:
    return shell.run("pod", "get", name, "-o", "json").out


@pytest.mark.parametrize("path", ["../kubeconfig", "../environments/{0}"])
def test_an_object_can_not_name_a_file(shell: Shell, path: str) -> None:
    activated(shell)
    job = json.loads(shell.run("run", "--dry-run", "-o", "json", "--name", "paths", "--", "env").ok())
    job["spec"]["tasks"][0]["template"]["metadata"] = {"annotations": {ENVIRONMENT: path.format("0" * 32)}}
    shell.run("apply", "--yes", "-f", "-", stdin=json.dumps(job)).ok()
    until(lambda: "doesn't exist (any more); submit the program again" in pod(shell, "paths-worker-0"))
    shell.run("job", "delete", "paths").ok()
    until(lambda: shell.run("job", "get", "paths").code != 0)


def test_a_refused_job_leaves_no_file(shell: Shell, program: RunningVcbatch) -> None:
    before = stored(program)
    assert shell.run("run", "--queue", "no-such-queue", "true").code == 1
    assert stored(program) == before


def test_a_dry_run_stores_nothing(shell: Shell, program: RunningVcbatch) -> None:
    before = stored(program)
    assert ENVIRONMENT not in shell.run("run", "--dry-run", "true").ok()
    assert stored(program) == before


@pytest.mark.parametrize("required", [False, True])
def test_where_the_state_directory_is_not_known_that_is_said(shell: Shell, tmp_path: Path, required: bool) -> None:
    elsewhere = tmp_path / "elsewhere" / "config"
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(Path(shell.environment["KUBECONFIG"]).read_bytes())
    shell.environment |= {"KUBECONFIG": str(elsewhere), "XDG_STATE_HOME": str(tmp_path), "TOKEN": "x"}
    options = ["--export", "ALL"] if required else []
    said: Said = shell.run("run", *options, "--", "sh", "-c", 'echo "[$TOKEN]"')
    if required:
        assert said.code == 1
        assert "error: " not in said.out and "the environment can't be exported" in said.err
    else:
        assert (said.code, said.out) == (0, "[]\n")
        assert "note: the program gets the environment of the server, not of this shell: " in said.err
