"""What `vcbatch up` passes on when it goes into the background."""

from __future__ import annotations

import sys
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pytest

from vcbatch.cli.base.output import CliError
from vcbatch.cli.base.state import StateDir
from vcbatch.cli.local import process, up
from vcbatch.cli.local.options import LocalOptions
from vcbatch.runtime.serving import Address


def taken(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> LocalOptions:
    """What a server is run with that is started by this command line."""
    ran: list[LocalOptions] = []

    def run(options: LocalOptions, **_: Any) -> int:
        ran.append(options)
        return 0

    monkeypatch.setattr(process, "run", run)
    assert up.command.main(arguments, standalone_mode=False) == 0
    return ran[0]


def written(options: LocalOptions) -> dict[str, Any]:
    """The fields, of which the state directory is known by its path."""
    return {field.name: getattr(options, field.name) for field in fields(options)} | {"state": options.state.path}


def all_said(folder: Path) -> LocalOptions:
    """Options of which none is what it is when it isn't given."""
    for name in ("policy.yaml", "mine.py", "yours.py", "controller.yaml"):
        (folder / name).touch()
    return LocalOptions(
        state=StateDir(folder / "state"),
        port=0,
        virtual_nodes=7,
        virtual_node_size={"cpu": "8", "nvidia.com/gpu": "0"},
        kubelet_mode="none",
        webhooks="external",
        scheduler_conf=folder / "policy.yaml",
        plugins=(folder / "mine.py", folder / "yours.py"),
        queue_gates=True,
        controller_conf=folder / "controller.yaml",
        inherit_owner_annotations=False,
        record_cycles=folder / "cycles",
        listen_address=Address("::1", 9100),
        log_retention=timedelta(hours=12),
        log_retention_size=5 * 1024**2,
    )


def test_a_detached_server_gets_every_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = all_said(tmp_path)
    plain = written(LocalOptions(state=StateDir(tmp_path)))
    assert [name for name, value in written(options).items() if value == plain[name]] == [], "as if they weren't given"
    assert written(taken(options.arguments(), monkeypatch)) == written(options)


def test_a_detached_server_that_is_asked_for_nothing_is_the_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = taken(["--state-dir", str(tmp_path)], monkeypatch)
    assert written(usual) == written(LocalOptions(state=StateDir(tmp_path)))
    assert written(taken(usual.arguments(), monkeypatch)) == written(usual)


def test_files_are_found_from_wherever_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = all_said(tmp_path)
    monkeypatch.chdir(tmp_path)
    near = taken(["--state-dir", "state", "--plugin", "mine.py", "--scheduler-conf", "policy.yaml"], monkeypatch)
    (tmp_path / "elsewhere").mkdir()
    arguments = near.arguments()
    monkeypatch.chdir(tmp_path / "elsewhere")
    far = taken(arguments, monkeypatch)
    assert (far.state.path, far.scheduler_conf) == (options.state.path, options.scheduler_conf)
    assert far.plugins == options.plugins[:1]


@pytest.mark.parametrize(
    ("size", "error"),
    [
        ("cpu", "must be NAME=QUANTITY, got 'cpu'"),
        ("cpu=", "'' is no quantity"),
        ("cpu=much", "'much' has the unknown suffix"),
        ("cpu=0", "'cpu=0': must be positive"),
        ("memory=-1Gi", "'memory=-1Gi': must be positive"),
        ("pods=1.5", "'pods=1.5': must be a whole number"),
        ("nvidia.com/gpu=-1", "'nvidia.com/gpu=-1': must be zero or more"),
        (
            "gpu=1",
            "unknown node resource 'gpu': must be cpu, memory, pods, ephemeral-storage or",
        ),
        ("a//b=1", "unknown node resource 'a//b'"),
        ("cpu=1,cpu=2", "duplicate resource cpu"),
    ],
)
def test_a_size_no_node_can_have_is_refused(size: str, error: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        up.command.main(["--virtual-nodes", "1", "--virtual-node-size", size], standalone_mode=False)
    assert error in refused.value.format_message()


def test_a_size_without_virtual_nodes_is_refused() -> None:
    with pytest.raises(click.UsageError, match="--virtual-node-size requires --virtual-nodes"):
        up.command.main(["--virtual-node-size", "cpu=1"], standalone_mode=False)


def test_another_system_than_linux_is_refused_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(CliError, match="pods run as processes on Linux only, and this is macOS") as refused:
        up.command.main(["--state-dir", str(tmp_path / "state")], standalone_mode=False)
    assert "docker run" in refused.value.hint
    assert not (tmp_path / "state").exists()
