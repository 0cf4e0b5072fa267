"""The command line: what it says, where, and with which exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
import yaml

from vcbatch._version import __version__
from vcbatch.cli.base.output import CliError, age
from vcbatch.cli.base.state import StateDir, default_state_dir, start_time_of
from vcbatch.cli.base.table import table

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def vcbatch(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vcbatch", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **environment},
    )


def test_version_and_help():
    assert vcbatch("--version").stdout == f"vcbatch {__version__}\n"
    said = vcbatch("--help")
    assert said.returncode == 0
    for command in ("up", "down", "status", "controllers", "scheduler", "crds", "policies"):
        assert f"  {command} " in said.stdout


@pytest.mark.parametrize(
    "arguments", [["fly"], ["up", "--port", "99999"], ["up", "--kubelet-mode", "docker"], ["down", "--force"]]
)
def test_wrong_usage_is_exit_code_2_and_on_stderr(arguments: list[str]):
    said = vcbatch(*arguments)
    assert said.returncode == 2
    assert said.stdout == ""
    assert "Traceback" not in said.stderr


def test_the_help_of_all_commands_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['vcbatch', '--help']\n"
        "from vcbatch.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'pydantic', 'aiohttp', 'kopf', 'kubernetes', 'uvicorn', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_up_imports_neither_the_official_client_nor_its_models():
    code = "import sys, vcbatch.cli.local.process; sys.exit(bool({'kubernetes', 'fastapi'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_crds_are_a_stream_that_kubectl_takes(tmp_path: Path):
    said = vcbatch("crds")
    kinds = {document["spec"]["names"]["kind"] for document in yaml.safe_load_all(said.stdout)}
    assert {"Job", "Queue", "PodGroup", "Command"} <= kinds
    written = vcbatch("crds", "--output", str(tmp_path / "crds"))
    assert written.returncode == 0 and written.stdout == ""
    assert {
        yaml.safe_load(path.read_text())["spec"]["names"]["kind"] for path in (tmp_path / "crds").iterdir()
    } == kinds


def test_policies_are_a_stream_that_kubectl_takes(tmp_path: Path):
    said = vcbatch("policies", "--scheduler-name", "gpu", "--mutating-version", "v1beta1")
    documents = [document for document in yaml.safe_load_all(said.stdout) if document]
    versions = {document["kind"]: document["apiVersion"] for document in documents}
    assert versions["MutatingAdmissionPolicy"] == "admissionregistration.k8s.io/v1beta1"
    assert versions["ValidatingAdmissionPolicyBinding"] == "admissionregistration.k8s.io/v1"
    assert "'gpu'" in said.stdout
    assert vcbatch("policies", "--output", str(tmp_path)).returncode == 0
    assert {file.name for file in tmp_path.iterdir()} == {"mutating.yaml", "validating.yaml"}


def test_crds_that_cant_be_written_are_said(tmp_path: Path):
    (tmp_path / "file").touch()
    said = vcbatch("crds", "--output", str(tmp_path / "file"))
    assert said.returncode != 0
    assert "Traceback" not in said.stderr


def test_nothing_runs_where_nothing_was_started(tmp_path: Path):
    status = vcbatch("status", "--state-dir", str(tmp_path))
    assert (status.returncode, status.stdout) == (1, "")
    assert "vcbatch up" in status.stderr
    down = vcbatch("down", "--state-dir", str(tmp_path))
    assert (down.returncode, down.stdout) == (0, "vcbatch is not running\n")


def test_a_state_directory_that_cant_be_made_is_said(tmp_path: Path):
    (tmp_path / "file").touch()
    said = vcbatch("up", "--state-dir", str(tmp_path / "file" / "below"))
    assert said.returncode == 1
    assert str(tmp_path / "file" / "below") in said.stderr and "Traceback" not in said.stderr


def test_the_state_directory_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_state_dir() == tmp_path / "vcbatch"
    monkeypatch.setenv("XDG_STATE_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_state_dir() == tmp_path / ".local" / "state" / "vcbatch"


def test_one_claim_at_a_time_and_a_dead_one_counts_for_nothing(tmp_path: Path):
    first = StateDir(tmp_path / "state")
    first.create()
    first.claim()
    with pytest.raises(CliError, match="already running"):
        StateDir(first.path).claim()
    running = StateDir(first.path).running()
    assert running is not None and running.pid == os.getpid()
    first.release()
    assert StateDir(first.path).running() is None
    second = StateDir(first.path)
    second.claim()
    second.release()


def test_a_pid_that_was_given_out_again_is_not_the_server(tmp_path: Path):
    state = StateDir(tmp_path)
    (tmp_path / "pid").write_text(f"{os.getpid()} {(start_time_of(os.getpid()) or 0) - 1}\n")
    assert state.running() is None
    (tmp_path / "pid").write_text("nonsense")
    assert state.running() is None


def test_the_start_time_is_the_kernels(tmp_path: Path):
    created = psutil.Process().create_time() - psutil.boot_time()
    ticks = start_time_of(os.getpid())
    assert ticks is not None
    assert abs(ticks / os.sysconf("SC_CLK_TCK") - created) < 1.5
    assert start_time_of(2**22 + 1) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (192, "3m12s"),
        (1800, "30m"),
        (4 * 3600, "4h"),
        (3 * 86400, "3d"),
        (-5, "0s"),
    ],
)
def test_ages_are_as_kubectl_says_them(seconds: int, text: str):
    assert age(NOW - timedelta(seconds=seconds), NOW) == text


def test_tables_line_up_and_have_no_trailing_blanks():
    assert table([("NAME", "STATE"), ("a-long-name", "Open"), ("b", "")]) == (
        "NAME          STATE\na-long-name   Open\nb"
    )
