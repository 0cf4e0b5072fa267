"""Built-in kinds, field by field: samples of good objects (`objects/*.yaml`) and systematic variants of them
(`variants`), what a server says to each (`answers`), and the answers of the real server (`golden/*.json`)."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.fidelity.golden import Answers
from tests.fidelity.kinds import answers
from tests.fidelity.kinds.variants import samples
from tests.fidelity.servers import Server
from tests.fidelity.waiting import until
from tests.fidelity.wire import Client

Json = dict[str, Any]

GOLDEN = Path(__file__).parent / "golden"
NAMESPACE = "fidelity-kinds"
_JSON = {"Content-Type": "application/json", "Accept": "application/json"}
_NEEDED = (
    ("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}),
    (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"metadata": {"name": "fidelity-high"}, "value": 1000, "preemptionPolicy": "Never"},
    ),
    (
        "/apis/node.k8s.io/v1/runtimeclasses",
        {
            "metadata": {"name": "fidelity"},
            "handler": "runc",
            "overhead": {"podFixed": {"cpu": "10m", "memory": "16Mi"}},
        },
    ),
)


def names() -> list[str]:
    return [sample.name for sample in samples()]


def play(server: Server, chosen: Sequence[str], settled: Callable[[], None] = lambda: None) -> dict[str, Answers]:
    """The answers to the chosen samples, or to all. `settled` is called once everything that they need is there: from
    then on no controller should act."""
    client = Client(server)

    def send(method: str, path: str, body: Json) -> tuple[int, list[str], Any]:
        try:
            answer = client.send(method, path, _JSON, json.dumps(body).encode())
        except http.client.HTTPException:
            return 0, [], "the connection was closed"
        try:
            return answer.code, answer.all("warning"), json.loads(answer.body)
        except ValueError:
            return answer.code, answer.all("warning"), answer.body.decode()

    for path, body in _NEEDED:
        code, _, answer = send("POST", path, body)
        assert code in (201, 409), answer
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
    until("the namespace has a service account", lambda: send("GET", account, {})[0] == 200)
    settled()
    result: dict[str, Answers] = {}
    for sample in samples():
        if not chosen or sample.name in chosen:
            reported = list(answers.answers(sample, send, NAMESPACE))
            if "reviews" not in sample.path:
                reported += answers.replacements(sample, send, NAMESPACE)
            result[sample.name] = reported
    client.close()
    return result
