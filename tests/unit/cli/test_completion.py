"""What shells are offered."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete

from vcbatch.cli.base import names
from vcbatch.cli.completion import kubectl
from vcbatch.cli.main import cli


def offered(*words: str) -> list[str]:
    *before, typed = words
    return [item.value for item in ShellComplete(cli, {}, "vcbatch", "X").get_completions(list(before), typed)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """One with a few names; what it was asked for, and with which options."""
    asked: list[tuple[str, dict[str, Any]]] = []

    def known(resource: Any, ctx: click.Context) -> list[str]:
        asked.append((resource.kind, {key: value for key, value in ctx.params.items() if value}))
        return {"Job": ["train-a", "train-b", "other"], "Queue": ["research", "default"]}[resource.kind]

    monkeypatch.setattr(names, "_names", known)
    return asked


def test_commands_and_options() -> None:
    assert "logs" in offered("job", "lo")
    assert offered("completion", "z") == ["zsh"]
    assert "--framework" in offered("run", "--fr")
    assert offered("run", "--framework", "py") == ["pytorch"]


def test_names_of_the_server(server: list[tuple[str, dict[str, Any]]]) -> None:
    assert offered("job", "logs", "train") == ["train-a", "train-b"]
    assert offered("run", "--queue", "r") == ["research"]
    assert offered("-n", "early", "job", "logs", "o") == ["other"]
    assert server[-1][1]["namespace"] == "early"
    assert offered("wait", "train-a", "train") == ["train-b"]
    assert offered("job", "logs", "-n", "team", "--context", "west", "o") == ["other"]
    assert (
        server[-1] == ("Job", {"chosen_namespace": "team", "context": "west"}) or server[-1][1]["namespace"] == "team"
    )


NEW = {("queue create", "name"), ("cronjob trigger", "job_name")}
"""What isn't there yet."""
OTHERS = ("context", "containers", "container", "tasks", "task", "resource")
"""What is no name of an object."""


def commands(group: click.Group, *path: str) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        else:
            yield " ".join((*path, name)), command


@pytest.mark.parametrize("group", ["job", "queue", "jobflow", "jobtemplate", "cronjob", "pod", "hypernode"])
def test_every_name_of_an_object_can_be_completed(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(names, "_names", lambda resource, _: asked.append(resource) or ["there"])
    at = cli.get_command(click.Context(cli), group)
    assert isinstance(at, click.Group)
    for path, command in commands(at, group):
        for parameter in command.params:
            title = (parameter.metavar or parameter.name or "").strip(".").lower()
            if title in ("name", "job", "queue") and (path, parameter.name) not in NEW and parameter.name not in OTHERS:
                found = parameter.shell_complete(click.Context(command), "th")
                assert [item.value for item in found] == ["there"], f"{path}: {parameter.name}"
    assert asked


def test_without_a_server_nothing_is_offered_and_nothing_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for broken in ("nothing", "kubeconfig"):
        (tmp_path / "kubeconfig").write_text("clusters: [")
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / broken))
        assert offered("job", "logs", "") == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_such_as_the_shell_takes(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "vcbatch", "completion", shell], capture_output=True, text=True, check=True, timeout=60
    )
    assert "_VCBATCH_COMPLETE" in done.stdout
    assert done.stderr == ""
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n"], input=done.stdout, text=True, check=True, timeout=60)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes(tmp_path: Path) -> None:
    """As a person has it: the script is sourced, and the function that it names is asked."""
    program = tmp_path / "vcbatch"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m vcbatch "$@"\n')
    program.chmod(0o755)
    script = """
        source <(vcbatch completion bash)
        COMP_WORDS=(vcbatch job l) COMP_CWORD=2
        _vcbatch_completion vcbatch
        echo "${COMPREPLY[@]}"
    """
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["list", "logs"]


def test_kubectl_gets_names_and_a_directive(
    server: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-vcbatch", "job", "logs", "train"])
    kubectl.main()
    assert capsys.readouterr().out == "train-a\ntrain-b\n:4\n"
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-vcbatch", "lint", "-f", ""])
    kubectl.main()
    assert capsys.readouterr().out == ":0\n"
