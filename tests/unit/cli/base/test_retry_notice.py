"""What commands that go on say of a server that is away."""

from __future__ import annotations

import json
from pathlib import Path

from tests.screens.play import call
from tests.support.kubeconfigs import kubeconfig
from tests.support.scripted_http import Answer, Asked, refused, scripted
from vcbatch.cli.base.retry_notice import RetryNotice
from vcbatch.interfaces.api import ApiError

AWAY = ApiError(0, "ConnectionLost", "refused\x1b[31m\nby it")


def test_trouble_is_told_once_in_a_while_and_in_one_harmless_line() -> None:
    times = [100.0, 130.0, 159.0, 160.0, 161.0]
    said: list[str] = []
    notice = RetryNotice("https://there", said.append, clock=lambda: times.pop(0))
    while times:
        notice(AWAY)
    assert said == ["https://there can't be reached: refused\N{REPLACEMENT CHARACTER}[31m by it. Retrying ..."] * 2
    RetryNotice("https://there", said.append)(ApiError(503, "ServiceUnavailable", "busy"))
    assert said[2] == "https://there is unavailable (503 ServiceUnavailable): busy. Retrying ..."


def test_a_list_that_is_followed_fails_at_once_where_nobody_ever_answered(tmp_path: Path) -> None:
    with scripted(lambda _: refused(503, "ServiceUnavailable", "busy")) as served:
        code, out, err = call(["job", "list", "-w"], kubeconfig(tmp_path, served.url))
    assert (code, out) == (1, "")
    assert f"error: {served.url} is unavailable (503 ServiceUnavailable): busy\n" in err


def test_a_list_that_is_followed_goes_on_where_its_server_comes_back(tmp_path: Path) -> None:
    """It lists, the watch is cut, some tries fail, and then what has changed is shown, until a refusal ends it."""
    lists = 0

    def job(name: str, version: str) -> dict[str, object]:
        metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": version}
        return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata}

    watches = 0

    def answer(asked: Asked) -> Answer:
        nonlocal lists, watches
        if "watch" not in asked.query:
            lists += 1
            return Answer(body={"kind": "JobList", "metadata": {"resourceVersion": "5"}, "items": [job("a", "4")]})
        watches += 1
        if watches <= 3:
            return refused(503, "ServiceUnavailable", "busy")
        if watches == 4:
            line = json.dumps({"type": "ADDED", "object": job("b", "6")}).encode() + b"\n"
            return Answer(body=line)
        return refused(403, "Forbidden", "no more")

    with scripted(answer) as served:
        code, out, err = call(["job", "list", "-w", "-o", "name"], kubeconfig(tmp_path, served.url))
    assert (code, out) == (1, "job.batch.volcano.sh/a\njob.batch.volcano.sh/b\n")
    assert err.count("Retrying ...") == 1
    assert lists == 1
