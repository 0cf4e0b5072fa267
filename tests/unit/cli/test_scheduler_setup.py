"""How commands learn how the scheduler is set up: by options, else as `vcbatch up` of this machine left it."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from tests.unit.cli.test_access import config
from vcbatch.cli.access import Access
from vcbatch.cli.local_scheduler import LocalScheduler, leave, local_scheduler, runs_here
from vcbatch.cli.output import CliError
from vcbatch.cli.scheduler_setup import Setup, SetupOptions
from vcbatch.cli.state import StateDir, start_time_of
from vcbatch.runtime.client.oneshot import drive
from vcbatch.scheduler import Policy
from vcbatch.scheduler.simulation.recording import Settings
from vcbatch.seams.api import Api

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DRF = "actions: allocate\ntiers:\n- plugins:\n  - name: drf\n"
OWN = """
from vcbatch.scheduler.plugins.base import Plugin
class Mine(Plugin):
    pass
PLUGINS = {"mine": Mine}
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateDir:
    """Of a server that runs; this process stands for it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "default"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    made = StateDir(tmp_path / "default" / "vcbatch")
    config(made.kubeconfig, "https://127.0.0.1:6443")
    (made.path / "pid").write_text(f"{os.getpid()} {start_time_of(os.getpid())}")
    return made


def left(state: StateDir, *, policy: str | None = None, **more: Any) -> None:
    settings = Settings(taken=NOW, policy=policy, scheduler_names=("volcano", "second"), default_queue="all")
    leave(state, LocalScheduler(settings=settings, **more))


def read(access: Access, **options: Any) -> Setup:
    return drive(SetupOptions(**options).read(cast("Api", None), access, now=NOW))


def names(policy: Policy) -> list[str]:
    return [option.name for tier in policy.tiers for option in tier.plugins]


def test_the_server_of_this_machine_says_what_options_leave_open(state: StateDir, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    left(state, policy=DRF, policy_file=file)
    found = read(Access())
    assert (names(found.policy), found.source) == (["drf"], f"the policy of vcbatch up, {file}")
    assert (found.settings.scheduler_names, found.settings.default_queue) == (("volcano", "second"), "all")
    assert Policy.parse(found.settings.policy or "").actions == ("allocate",)
    over = read(Access(), names=("other",), default_queue="mine")
    assert (over.settings.scheduler_names, over.settings.default_queue) == (("other",), "mine")


def test_a_file_that_is_named_goes_before(state: StateDir, tmp_path: Path) -> None:
    left(state)
    assert read(Access()).source == "the policy of vcbatch up, built in"
    file = tmp_path / "policy.yaml"
    file.write_text(DRF)
    found = read(Access(), policy_file=file)
    assert (names(found.policy), found.source) == (["drf"], f"the policy in {file}")
    assert found.settings.scheduler_names == ("volcano", "second")


def test_plugins_of_ones_own_are_known_again(state: StateDir, tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(OWN)
    left(state, policy=DRF.replace("drf", "mine"), plugins=[plugin])
    assert names(read(Access()).policy) == ["mine"]
    plugin.unlink()
    with pytest.raises(CliError, match=r"mine\.py"):
        read(Access())


def test_another_server_is_not_taken_for_it(state: StateDir, tmp_path: Path) -> None:
    left(state)
    other = config(tmp_path / "other" / "config", "https://cluster:6443")
    assert not runs_here(Access(kubeconfig=other))
    found = read(Access(kubeconfig=other))
    assert (found.source, found.settings) == ("", Settings(taken=NOW))
    assert runs_here(Access(kubeconfig=state.kubeconfig))
    (state.path / "pid").write_text("1 1")
    assert not runs_here(Access(kubeconfig=state.kubeconfig)), "it ended"


def test_a_state_directory_is_found_by_the_kubeconfig_in_it(
    state: StateDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = tmp_path / "elsewhere"
    left(state)
    state.path.rename(moved)
    monkeypatch.setenv("KUBECONFIG", str(moved / "kubeconfig"))
    assert runs_here(Access())
    monkeypatch.delenv("KUBECONFIG")
    assert runs_here(Access(kubeconfig=moved / "kubeconfig"))


def test_what_a_server_of_another_version_left_is_said(state: StateDir) -> None:
    left(state)
    content = json.loads(state.scheduler.read_text())
    content["settings"]["format"] = "vcbatch-snapshot/1"
    state.scheduler.write_text(json.dumps(content))
    with pytest.raises(CliError, match="it is of version 1 of the format, and only") as told:
        local_scheduler(Access())
    assert "vcbatch down" in told.value.hint
