"""Whether the local server of a command has ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vcbatch.cli.base.local_end import GRACE_SECONDS, LocalEnd, local_state
from vcbatch.cli.base.output import CliError
from vcbatch.cli.base.state import StateDir, start_time_of
from vcbatch.interfaces.api import ApiError

SERVER = "https://127.0.0.1:6443"
LOST = ApiError(0, "ConnectionLost", "refused")


def state_directory(path: Path) -> StateDir:
    state = StateDir(path / "state")
    state.create()
    state.kubeconfig.write_text(f"server: {SERVER}\n")
    return state


def running(state: StateDir, *, now: bool) -> None:
    pid = os.getpid()
    (state.path / "pid").write_text(f"{pid} {start_time_of(pid)}\n" if now else f"{pid} 1\n")


def test_a_server_that_does_not_run_for_a_while_has_ended(tmp_path: Path) -> None:
    state, now = state_directory(tmp_path), 0.0
    check = LocalEnd(state, follow_up="vcbatch job logs -f train", clock=lambda: now)
    running(state, now=False)
    check(LOST)
    now = GRACE_SECONDS - 0.1
    check(LOST)
    now = GRACE_SECONDS
    with pytest.raises(CliError, match="has ended") as error:
        check(LOST)
    assert error.value.hint.endswith(
        f"--state-dir {state.path}`, then follow the job with `vcbatch job logs -f train`."
    )


def test_a_server_that_is_restarted_or_only_slow_has_not(tmp_path: Path) -> None:
    state, now = state_directory(tmp_path), 0.0
    check = LocalEnd(state, follow_up="", clock=lambda: now)
    for up in (False, True, False):
        running(state, now=up)
        check(LOST)
        now += GRACE_SECONDS
        check(ApiError(503, "ServiceUnavailable", "busy"))
        running(state, now=True)
        check(LOST)
    LocalEnd(None, follow_up="", clock=lambda: now)(LOST)


def test_only_the_kubeconfig_of_a_state_directory_is_that_of_a_local_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "none"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    state = state_directory(tmp_path)
    found = local_state(state.kubeconfig, SERVER)
    assert found is not None
    assert found.path == state.path
    assert local_state(state.kubeconfig, "https://cluster:6443") is None
    other = tmp_path / "kubeconfig"
    other.write_text(f"server: {SERVER}\n")
    assert local_state(other, SERVER) is None
    assert local_state(None, SERVER) is None
    monkeypatch.setenv("KUBECONFIG", f"{other}{os.pathsep}{state.kubeconfig}")
    assert local_state(None, SERVER) is not None
