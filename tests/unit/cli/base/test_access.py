"""Which server a command speaks to, and what it says where that can't be."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from tests.support.scripted_http import Answer, refused, scripted
from vcbatch.api.resources import JOBS
from vcbatch.cli.base.access import Access, TimeoutType, access_options
from vcbatch.cli.base.output import CliError
from vcbatch.cli.base.state import StateDir, start_time_of


def config(path: Path, server: str, *, namespace: str = "team") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "current-context": "a",
        "contexts": [
            {"name": "a", "context": {"cluster": "c", "user": "u", "namespace": namespace}},
            {"name": "b", "context": {"cluster": "c", "user": "u", "namespace": "other"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture(autouse=True)
def nothing_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def local_server(tmp_path: Path, url: str) -> None:
    """What `vcbatch up` leaves in its state directory while it runs; this process stands for it."""
    state = StateDir(tmp_path / "state" / "vcbatch")
    config(state.kubeconfig, url, namespace="default")
    (state.path / "pid").write_text(f"{os.getpid()} {start_time_of(os.getpid())}")


def get(name: str = "x") -> Any:
    return lambda api: api.get(JOBS, name, namespace="n")


def test_the_namespace_is_the_given_one_else_that_of_the_context(tmp_path: Path):
    file = config(tmp_path / "config", "http://x")
    assert Access(kubeconfig=file).namespace == "team"
    assert Access(kubeconfig=file, context="b").namespace == "other"
    assert Access(kubeconfig=file, chosen_namespace="mine").namespace == "mine"


def test_a_local_server_is_found_where_nothing_else_is_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    local_server(tmp_path, "http://local")
    assert Access().connection().server == "http://local"
    monkeypatch.setenv("KUBECONFIG", str(config(tmp_path / "config", "http://cluster")))
    assert Access().connection().server == "http://cluster"


def test_without_any_server_the_ways_to_one_are_named():
    with pytest.raises(CliError) as caught:
        Access().once(get())
    assert "no cluster is configured" in str(caught.value)
    assert "vcbatch up" in caught.value.hint


def test_a_state_directory_whose_server_is_gone_is_no_server(tmp_path: Path):
    local_server(tmp_path, "http://local")
    (tmp_path / "state" / "vcbatch" / "pid").write_text(f"{os.getpid()} 1")
    with pytest.raises(CliError, match="no cluster is configured"):
        Access().connection()


def test_a_named_context_is_never_looked_for_in_the_local_server(tmp_path: Path):
    local_server(tmp_path, "http://local")
    with pytest.raises(CliError, match="no cluster is configured"):
        Access(context="a").connection()


@pytest.mark.parametrize(
    ("given", "url"),
    [("http://h:1/", "http://h:1"), ("https://h/p", "https://h/p"), ("h:8080", "http://h:8080")],
)
def test_another_address_replaces_the_configured_one(tmp_path: Path, given: str, url: str):
    assert Access(server=given).connection().server == url
    assert Access(server=given, kubeconfig=config(tmp_path / "config", "http://x")).connection().server == url


def test_an_address_of_another_kind_is_refused():
    with pytest.raises(CliError, match="must be http:// or https://"):
        Access(server="ftp://x").connection()


DENIED = (
    'jobs.batch.volcano.sh is forbidden: User "eve" cannot list resource "jobs" in API group "batch.volcano.sh" '
    "at the cluster scope"
)


@pytest.mark.parametrize(
    ("answer", "said", "hint"),
    [
        (
            refused(404, "NotFound", "the server could not find the requested resource"),
            "doesn't serve this kind",
            "vcbatch crds",
        ),
        (
            Answer(status=404, body={"kind": "Status", "message": 'jobs "x" not found', "details": {"name": "x"}}),
            'jobs "x" not found',
            "namespace (--namespace)",
        ),
        (refused(401, "Unauthorized", "Unauthorized"), "rejected the credentials", "Log in"),
        (
            refused(403, "Forbidden", DENIED),
            "eve cannot list jobs.batch.volcano.sh at the cluster scope",
            "ClusterRole",
        ),
        (refused(403, "Forbidden", DENIED), "eve cannot list jobs", "\n  To limit the request to one namespace"),
        (
            refused(403, "Forbidden", DENIED.replace("eve", "system:anonymous")),
            "anonymous users can't list jobs.batch.volcano.sh at the cluster scope",
            "kubeconfig context",
        ),
        (refused(403, "Forbidden", 'forbidden: User "eve" cannot get path "/x"'), 'cannot get path "/x"', "can-i"),
        (refused(403, "Forbidden", "exceeded quota: q, requested: pods=1"), "exceeded quota: q", "admission rule"),
        (refused(409, "Conflict", "changed"), "changed", "try again"),
        (refused(400, "BadRequest", "field label not supported: spec.queue"), "spec.queue", "use -l"),
        (refused(409, "AlreadyExists", "there"), "there", "another name"),
        (refused(422, "Invalid", "spec.x: no"), "spec.x: no", ""),
        (refused(503, "ServiceUnavailable", "overloaded"), "503 ServiceUnavailable", "in a minute"),
        (Answer(raw=b""), "can't be reached", "reachable"),
    ],
)
def test_a_refusal_says_what_to_do_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any, said: str, hint: str
):
    monkeypatch.setattr("time.sleep", lambda _: None)
    with scripted(lambda _: answer) as served:
        access = Access(kubeconfig=config(tmp_path / "config", served.url))
        with pytest.raises(CliError) as caught:
            access.once(get())
    assert said in str(caught.value)
    assert hint in caught.value.hint


def test_both_ways_reach_the_same_server(tmp_path: Path):
    with scripted(lambda _: Answer(body={"metadata": {"name": "x"}})) as served:
        access = Access(kubeconfig=config(tmp_path / "config", served.url))
        assert access.once(get()) == access.streaming(get()) == {"metadata": {"name": "x"}}


def test_a_silent_server_is_waited_for_as_long_as_asked(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        file = config(tmp_path / "config", f"http://127.0.0.1:{silent.getsockname()[1]}")
        access = Access(kubeconfig=file, request_timeout=timedelta(seconds=0.05))
        with pytest.raises(CliError, match=r"took too long|timed out"):
            access.once(get())


@pytest.mark.parametrize(("text", "seconds"), [("30", 30), ("1m30s", 90), ("0", 0), ("0s", 0), ("250ms", 0.25)])
def test_times_are_given_as_to_kubectl(text: str, seconds: float):
    assert TimeoutType().convert(text, None, None) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "-1s", "soon", "1.5", "٣", "3 s", "9" * 30, "9" * 5000])
def test_what_is_no_time_is_refused(text: str):
    with pytest.raises(click.BadParameter, match="invalid duration"):
        TimeoutType().convert(text, None, None)


def test_the_options_make_an_access():
    seen: list[Access] = []

    @click.command()
    @click.argument("name")
    @access_options
    def command(name: str, access: Access) -> None:
        assert name == "it"
        seen.append(access)

    arguments = ["it", "-n", "ns", "--kubeconfig", "f", "--context", "c", "--request-timeout", "5s"]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    assert seen == [
        Access(
            kubeconfig=Path("f"), context="c", chosen_namespace="ns", request_timeout=timedelta(seconds=5), server=None
        )
    ]
