"""Servers that answer nonsense, slowly or not at all, and configurations that are broken: a command says what is wrong
in one sentence, with its exit code, and never shows its inside."""

from __future__ import annotations

import json
import os
import shlex
import socket
import unicodedata
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.cli.transcripts import call, captured, objects, quiet_world
from tests.fuzz.mutations import mutated
from tests.support.scripted_http import Answer, Asked, refused, scripted
from vcbatch.cli.vcctl.commands import PROGRAMS
from vcbatch.cli.vcctl.main import run

READING = [
    "vcctl job list --all-namespaces",
    "vcctl job view -N held",
    "vcctl queue list",
    "vcctl queue get -n default",
    "vqueues",
    "vcctl jobflow list",
    "vcctl jobflow describe",
    "vcctl jobtemplate describe -o json",
    "vcctl jobtemplate list",
    "vcctl pod list --all-namespaces",
    "vcctl pod list -q default",
]
CHANGING = [
    "vcctl job run -N x",
    "vcctl job suspend -N held",
    "vcctl job delete -N held",
    "vcctl queue create -S Closed",
    "vcctl queue operate -n default -a update -w 3",
    "vcctl jobflow delete -N f",
]
_ALL = objects()
_POOL = [{"items": [one]} for one in _ALL]

lightly = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def _spoiled(asked: Asked, random: Random) -> Answer:
    """What would have been right, spoiled."""
    plural = asked.path.rstrip("/").split("/")
    alike = [one for one in _ALL if f"{one['kind'].lower()}s" in plural] or _ALL
    whole: dict[str, Any] = {"metadata": {"resourceVersion": "1"}, "items": alike}
    named = f"{random.choice(alike)['kind'].lower()}s" != plural[-1]
    return Answer(body=mutated(random, random.choice(alike) if named else whole, _POOL))


@lightly
@given(st.sampled_from(READING + CHANGING), st.integers(0, 2**32))
def test_whatever_a_server_answers_a_command_ends_well(line: str, seed: int) -> None:
    random = Random(seed)
    with (
        quiet_world(),
        mock.patch("time.sleep", lambda _: None),
        scripted(lambda asked: _spoiled(asked, random)) as served,
    ):
        code, out, _ = call(shlex.split(line), served.url)
    assert code in (0, 255)
    if code:
        assert out.splitlines()[-1].startswith("Failed to")
    assert not any(unicodedata.category(letter) == "Cc" for letter in out if letter not in "\n\t")


@pytest.mark.parametrize("line", READING + CHANGING)
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(raw=b""), "can't be reached"),
        (Answer(body=b"<html>please log in</html>"), ""),
        (refused(401, "Unauthorized", "Unauthorized"), "rejected the credentials"),
        (refused(403, "Forbidden", "eve may not"), "eve may not"),
        (refused(500, "InternalError", "etcd is gone"), "etcd is gone"),
        (refused(503, "ServiceUnavailable", "starting", Retry_After="3600"), "starting"),
        (refused(404, "NotFound", "the server could not find the requested resource"), "doesn't serve this kind"),
    ],
    ids=["nothing", "html", "401", "403", "500", "503", "404"],
)
def test_a_server_in_trouble_is_told_in_one_sentence(line: str, answer: Answer, said: str) -> None:
    with quiet_world(), mock.patch("time.sleep", lambda _: None), scripted(lambda _: answer) as served:
        code, out, _ = call(shlex.split(line), served.url)
    assert code == 255
    assert out.startswith("Failed to") and out.count("\n") == 1
    assert said in out


def test_a_server_that_isnt_there_is_named() -> None:
    with quiet_world(), socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with mock.patch("time.sleep", lambda _: None):
            code, out, err = call(["vcctl", "job", "list"], url)
    assert code == 255
    assert out.startswith(f"Failed to list job: {url} can't be reached")
    assert "reachable" in err


GOOD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": "Zm9v"}}],
    "users": [{"name": "u", "user": {"token": "very-secret", "as": "eve", "as-groups": ["g"]}}],
}


@lightly
@given(st.integers(0, 2**32))
def test_whatever_a_kubeconfig_says_a_command_ends_well(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    random = Random(seed)
    _configured(tmp_path_factory.getbasetemp() / "spoiled", mutated(random, GOOD, [GOOD]))


@lightly
@given(st.binary(max_size=200) | st.text("-: \n\t[]{}&*!|>'\"%@`#,?ab", max_size=60).map(str.encode))
def test_whatever_a_kubeconfig_is_a_command_ends_well(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    _configured(tmp_path_factory.getbasetemp() / "spoiled", data)


@pytest.mark.parametrize("end", ["", "[", "\x00", '"', "\n\t- &", "{" * 20_000, "\nday: 2026-13-32"])
def test_no_secret_of_a_broken_kubeconfig_is_told(tmp_path: Path, end: str) -> None:
    text = yaml.safe_dump(GOOD)
    for length in range(len(text) // 2, len(text), 23):
        assert "very-secret" not in _configured(tmp_path / "config", (text[:length] + end).encode())


def _configured(file: Path, data: bytes) -> str:
    """What is said of it."""
    file.write_bytes(data)
    with quiet_world(), mock.patch("time.sleep", lambda _: None):
        code, out, err = captured(lambda: run(PROGRAMS["vcctl"], ["job", "list", "-k", str(file)]))
    assert code == 255
    assert out.startswith("Failed to list job: ") and out.count("\n") == 1
    return out + err


def test_a_good_kubeconfig_is_good(tmp_path: Path) -> None:
    """So that the two tests above begin with one that works."""
    with quiet_world(), scripted(lambda _: Answer(body={"items": []})) as served:
        good = json.loads(json.dumps(GOOD).replace("https://127.0.0.1:1", served.url))
        (tmp_path / "config").write_text(yaml.safe_dump(good))
        with mock.patch.dict(os.environ, {"KUBECONFIG": str(tmp_path / "config")}):
            assert run(PROGRAMS["vcctl"], ["job", "list"]) == 0
    assert served.asked[0].headers["Authorization"] == "Bearer very-secret"
