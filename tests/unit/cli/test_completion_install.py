"""Completion is installed on request: in which file, and what happens to the rest of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.screens.play import call

FILES = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/conf.d/vcbatch.fish"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/bash")
    for name in ("ZDOTDIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def install(*words: str) -> tuple[int, str, str]:
    return call(["completion", "install", *words], "none")


@pytest.mark.parametrize("shell", FILES)
def test_the_changed_file_is_named_and_a_second_time_changes_nothing(home: Path, shell: str) -> None:
    file = home / FILES[shell]
    assert install(shell) == (0, f"{file} changed; open a new shell to use it\n", "")
    first = file.read_text()
    assert f"vcbatch completion {shell}" in first
    assert install(shell) == (0, f"{file} unchanged; completion is installed\n", "")
    assert file.read_text() == first
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n", str(file)], check=True, timeout=60)


def test_the_rest_of_the_file_is_kept(home: Path) -> None:
    file = home / "dotfiles" / "bashrc"
    file.parent.mkdir()
    file.write_text("alias a=b\nexport X=1")
    (home / ".bashrc").symlink_to(file)
    install()
    lines = file.read_text().splitlines()
    assert lines[:2] == ["alias a=b", "export X=1"]
    assert (home / ".bashrc").is_symlink()
    file.write_text(file.read_text().replace("source <(", "source <(OLD=1 ") + "alias c=d\n")
    assert install()[1].endswith("changed; open a new shell to use it\n")
    assert file.read_text().splitlines() == [*lines, "alias c=d"]


def test_a_damaged_block_is_left_alone(home: Path) -> None:
    install()
    text = (home / ".bashrc").read_text().replace("# <<< vcbatch completion <<<\n", "alias mine=1\n")
    (home / ".bashrc").write_text(text)
    code, _, err = install()
    assert code == 1
    assert "incomplete block" in err
    assert (home / ".bashrc").read_text() == text


def test_another_shell_has_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/nu")
    code, _, err = install()
    assert code == 1
    assert "nu: no completion for this shell" in err


def test_no_other_command_installs_it(home: Path) -> None:
    for words in (["--help"], ["completion", "bash"], ["completion", "install", "--help"]):
        assert call(words, "none")[0] == 0
    assert list(home.iterdir()) == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_a_new_bash_completes(home: Path) -> None:
    program = home / "bin" / "vcbatch"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m vcbatch "$@"\n')
    program.chmod(0o755)
    install("bash")
    env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-ic", "complete -p vcbatch"], env=env, capture_output=True, text=True, check=False, timeout=120
    )
    assert "vcbatch_completion" in done.stdout, done.stderr
