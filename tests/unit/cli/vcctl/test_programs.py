"""Volcano's commands without hiding Volcano's own."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.screens.play import call
from vcbatch.cli.vcctl.commands import PROGRAMS

ROOT = Path(__file__).parents[4]


def volcanos(directory: Path) -> Path:
    """Another program of the name vcctl."""
    directory.mkdir()
    program = directory / "vcctl"
    program.write_text("#!/bin/sh\necho volcano\n")
    program.chmod(0o755)
    return program


def test_the_package_installs_no_program_of_volcanos_names() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert not set(scripts) & set(PROGRAMS)


@pytest.mark.parametrize(
    ("typed", "usage"),
    [
        (["job", "list", "--help"], "vcctl job list [flags]"),
        (["vcctl", "job", "list", "--help"], "vcctl job list [flags]"),
        (["vjobs", "--help"], "vjobs [flags]"),
        (["-h"], "vcbatch vcctl"),
        ([], "vcctl [command]"),
    ],
)
def test_all_programs_are_within_reach_without_installing_them(typed: list[str], usage: str) -> None:
    code, out, err = call(["vcctl", *typed], "/nonexistent")
    assert (code, err) == (0, "")
    assert usage in out


def test_the_exit_code_and_the_streams_are_volcanos() -> None:
    code, out, err = call(["vcctl", "vjobs", "--nope"], "/nonexistent")
    assert code == 254 and out.startswith("Failed to execute vjobs: ") and "unknown flag: --nope" in err


def test_installed_programs_run_and_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    into = tmp_path / "new" / "my bin"
    monkeypatch.setenv("PATH", f"{into}:/usr/bin:/bin")
    for _ in range(2):  # the second replaces what the first wrote
        assert call(["vcctl", "--install", str(into)], "/nonexistent")[::2] == (0, "")
    assert {path.name for path in into.iterdir()} == set(PROGRAMS)
    done = subprocess.run([into / "vsub", "--help"], capture_output=True, text=True, check=True, timeout=60)
    assert "vsub [flags]" in done.stdout
    own = into / "mine"
    own.write_text("")
    assert call(["vcctl", "--uninstall", str(into)], "/nonexistent")[0] == 0
    assert list(into.iterdir()) == [own]


def test_a_program_of_another_is_not_replaced(tmp_path: Path) -> None:
    other = volcanos(tmp_path / "bin")
    code, out, err = call(["vcctl", "--install", str(other.parent)], "/nonexistent")
    assert (code, out) == (1, "")
    assert f"error: {other} exists and is not one of vcbatch's" in err
    assert [path.name for path in other.parent.iterdir()] == ["vcctl"] and "volcano" in other.read_text()
    assert "no programs of vcbatch" in call(["vcctl", "--uninstall", str(other.parent)], "/nonexistent")[1]
    assert other.exists()


@pytest.mark.parametrize("ours_first", [True, False])
def test_a_hidden_program_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ours_first: bool) -> None:
    other, ours = volcanos(tmp_path / "volcano"), tmp_path / "ours"
    order = [ours, other.parent] if ours_first else [other.parent, ours]
    monkeypatch.setenv("PATH", ":".join(map(str, order)))
    code, _, err = call(["vcctl", "--install", str(ours)], "/nonexistent")
    assert code == 0
    first, second = (ours / "vcctl", other) if ours_first else (other, ours / "vcctl")
    assert err == f"warning: {first} hides {second}\n"


def test_a_directory_off_the_path_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert call(["vcctl", "--install", str(tmp_path)], "/nonexistent")[2].startswith(
        f"{tmp_path} is not on the PATH: export PATH="
    )
