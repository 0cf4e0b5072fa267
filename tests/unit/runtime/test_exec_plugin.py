"""Credential plugins as clouds have them, and those that don't work."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from vcbatch.runtime.client import exec_plugin
from vcbatch.runtime.client.credentials import ExecPlugin
from vcbatch.runtime.client.exec_plugin import ExecPluginError, run

V1 = "client.authentication.k8s.io/v1"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
CREDENTIAL = {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "t"}}


def plugin(folder: Path, code: str, **config: Any) -> dict[str, Any]:
    """The exec entry of a plugin that does what the Python code says."""
    program = folder / "bin" / "plugin"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!{sys.executable}\nimport json, os, sys\n{code}\n")
    program.chmod(0o700)
    return {"apiVersion": V1, "command": "./bin/plugin", "interactiveMode": "Never", **config}


def printing(folder: Path, value: Any, **config: Any) -> dict[str, Any]:
    return plugin(folder, f"print({json.dumps(value)!r})", **config)


def test_a_plugin_is_told_what_it_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "kept")
    seen = tmp_path / "seen"
    code = (
        "told = {'argv': sys.argv[1:], 'env': dict(os.environ), 'in': sys.stdin.read()}\n"
        f"json.dump(told, open({str(seen)!r}, 'w'))"
        f"\nprint({json.dumps(CREDENTIAL)!r})"
    )
    config = plugin(
        tmp_path,
        code,
        args=["get-token", "--cluster", 7],
        env=[{"name": "PROFILE", "value": "research"}],
        provideClusterInfo=True,
    )
    cluster = {
        "server": "https://x",
        "certificate-authority-data": "Zm9v",
        "certificate-authority": "/not/told",
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}}],
    }
    assert run(config, folder=tmp_path, cluster=cluster) == {"token": "t"}
    reported = json.loads(seen.read_text())
    assert reported["argv"] == ["get-token", "--cluster", "7"]
    assert (reported["env"]["PROFILE"], reported["env"]["KEPT"], reported["in"]) == ("research", "kept", "")
    assert json.loads(reported["env"]["KUBERNETES_EXEC_INFO"]) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {"server": "https://x", "certificate-authority-data": "Zm9v", "config": {"audience": "me"}},
        },
    }


def test_a_command_without_a_slash_is_looked_for_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = printing(tmp_path, CREDENTIAL) | {"command": "plugin"}
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert run(config, folder=Path("/nowhere"), cluster={}) == {"token": "t"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"command": ""}, "has no command"),
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "known: client.authentication.k8s.io/v1, "),
        ({"command": "./nothing", "installHint": "Install it with: get nothing"}, "Install it with: get nothing"),
        ({"command": "no-such-plugin"}, "'no-such-plugin' can't be run: No such file"),
        ({"interactiveMode": "Sometimes"}, "interactiveMode 'Sometimes'"),
        ({"interactiveMode": "Always"}, "standard input is no terminal"),
    ],
)
def test_what_keeps_a_plugin_from_running_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ExecPluginError) as caught:
        run(printing(tmp_path, CREDENTIAL) | change, folder=tmp_path, cluster={})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("sys.exit(3)", "failed with exit code 3"),
        ("print('a secret')", "printed no ExecCredential"),
        ("print('[]')", "printed no ExecCredential"),
        ("print('[' * 100_000)", "printed no ExecCredential"),
        ('print(\'{"kind": "ExecCredential", "x": "\' + \'a secret\' * 1_000_000 + \'"}\')', "printed no ExecCred"),
        ("sys.stdout.buffer.write(bytes([255]))", "printed no ExecCredential"),
        ('print(\'{"kind": "ExecCredential", "apiVersion": "v2"}\')', "answers in 'v2'"),
    ],
)
def test_what_is_wrong_with_its_answer_is_said_but_not_what_it_printed(tmp_path: Path, code: str, message: str) -> None:
    with pytest.raises(ExecPluginError) as caught:
        run(plugin(tmp_path, code), folder=tmp_path, cluster={})
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_plugin_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_plugin, "_SECONDS", 0.2)
    config = {"apiVersion": V1, "command": "sleep", "args": ["1000"], "interactiveMode": "Never"}
    with pytest.raises(ExecPluginError, match=r"didn't end in 0 s"):
        run(config, folder=tmp_path, cluster={})


@pytest.mark.parametrize("status", [{}, {"token": ""}, {"clientCertificateData": "x", "clientKeyData": "y"}])
def test_an_answer_without_a_token_is_refused(tmp_path: Path, status: dict[str, str]) -> None:
    credentials = ExecPlugin(config=printing(tmp_path, {**CREDENTIAL, "status": status}), folder=tmp_path, cluster={})
    with pytest.raises(PermissionError, match="gave no token"):
        credentials.header(now=NOW)


async def test_both_ways_share_one_token_and_a_refused_one_is_got_anew(tmp_path: Path) -> None:
    count = tmp_path / "count"
    code = f"open({str(count)!r}, 'a').write('x')\nprint({json.dumps(CREDENTIAL)!r})"
    credentials = ExecPlugin(config=plugin(tmp_path, code), folder=tmp_path, cluster={})
    assert credentials.header(now=NOW) == await credentials.authorization(now=NOW) == "Bearer t"
    assert count.read_text() == "x"
    credentials.refused()
    assert credentials.header(now=NOW) == "Bearer t"
    assert count.read_text() == "xx"
