"""What a server asks of webhooks, and what it makes of their answers, case by case, against both servers.

`cases/*.yaml` are the cases, each in a namespace of its own:

* `about`: the idea.
* `hooks`: what the webhook server says at `/NAME`: `response` (laid over `{allowed: true}`), `patch` (operations),
  `review` (laid over the whole answer), or instead `code`, `headers`, `raw` (a body as it stands), `does: hang|close`.
* `configurations`: `{mutating|validating: NAME, webhooks: […]}`. A webhook has its hook's name in `hook`; what it
  leaves out is there as in `_WEBHOOK`, and it is asked about the case's namespace only.
* `steps` as in `tests.fidelity.exchanges`.

An answer is kept with the reviews that came before it, `reviews`, by the hook.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.fidelity import exchanges
from tests.fidelity.exchanges import ABSENT, Step, overlaid
from tests.fidelity.golden import Answers
from tests.fidelity.play import Player
from tests.fidelity.servers import Server
from tests.fidelity.waiting import until
from tests.fidelity.webhooks.asked import Asked, WebhookServer

Json = dict[str, Any]

CASES = Path(__file__).parent / "cases"
_API = "/apis/admissionregistration.k8s.io/v1"
_WEBHOOK: Json = {
    "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "timeoutSeconds": 20,
}
_MARKER = "marker"


def names() -> list[str]:
    return sorted(path.stem for path in CASES.glob("*.yaml"))


def play(server: Server, chosen: Sequence[str], settled: Callable[[], None] = lambda: None) -> dict[str, Answers]:
    """The answers of the chosen cases, or of all, one after the other: configurations are the whole server's."""
    with tempfile.TemporaryDirectory() as folder, WebhookServer(Path(folder)) as webhooks:
        cases = {name: _Case(server, name, webhooks) for name in names() if not chosen or name in chosen}
        for case in cases.values():
            case.make_namespace()
        settled()
        return {name: case.play() for name, case in cases.items()}


class _Case(Player):
    """One case; the groups of the exchanges are played in the same way, but for what a webhook server sees."""

    def __init__(self, server: Server, name: str, webhooks: WebhookServer) -> None:
        path = CASES / f"{name}.yaml"
        super().__init__(server, exchanges.load(path))
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        self._webhooks = webhooks
        self._hooks: Json = content.get("hooks", {})
        self._configurations: list[Json] = content.get("configurations", [])
        self._made: list[str] = []
        self._names |= {"hooks": webhooks.url, "ca": base64.b64encode(webhooks.ca).decode()}

    def play(self) -> Answers:
        try:
            return [(f"{number}: {ask}", answer) for number, (ask, answer) in enumerate(super().play())]
        finally:
            self._remove()

    def make_namespace(self) -> None:
        super()._prepare()

    def _prepare(self) -> None:
        self._webhooks.hooks = {**self._hooks, _MARKER: {}}
        for configuration in self._configurations:
            kind = next(kind for kind in ("mutating", "validating") if kind in configuration)
            self._configure(kind, configuration[kind], [self._webhook(one) for one in configuration["webhooks"]])
        # Each kind's configurations come into effect in the order in which they were made.
        marked = {"objectSelector": {"matchLabels": {_MARKER: "yes"}}, "hook": _MARKER}
        for kind in ("mutating", "validating"):
            self._configure(kind, f"zz-{kind}", [self._webhook({"name": f"{kind}.marker.example.com", **marked})])
        until("the configurations are in effect", self._in_effect)

    def _webhook(self, given: Json) -> Json:
        webhook = overlaid({**_WEBHOOK}, {key: value for key, value in given.items() if key != "hook"})
        if "hook" in given:
            client: Json = webhook.setdefault("clientConfig", {})
            client.setdefault("url", f"<hooks>/{given['hook']}")
            if client.setdefault("caBundle", "<ca>") == ABSENT:
                del client["caBundle"]
        webhook.setdefault("namespaceSelector", {"matchLabels": {"kubernetes.io/metadata.name": "<ns>"}})
        return webhook

    def _configure(self, kind: str, name: str, webhooks: list[Json]) -> None:
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind.capitalize()}WebhookConfiguration",
            "metadata": {"name": f"{name}-<ns>"},
            "webhooks": webhooks,
        }
        path = f"{_API}/{kind}webhookconfigurations"
        answer = self._send(Step(method="POST", path=path, body=body))
        assert answer.code == 201, answer.body
        self._made.append(f"{path}/{name}-<ns>")

    def _in_effect(self) -> bool:
        self._webhooks.take()
        labels = {"name": "marker", "labels": {_MARKER: "yes"}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": labels}
        self._send(Step(method="POST", path="/api/v1/namespaces/<ns>/configmaps?dryRun=All", body=body))
        return [asked.hook for asked in self._webhooks.take()].count(_MARKER) == 2

    def _answer(self, step: Step) -> Any:
        self._webhooks.take()
        answer = super()._answer(step)
        asked = sorted(self._webhooks.take(), key=lambda one: (one.mutating_order, one.hook))
        if asked:
            answer["reviews"] = [self._shown(one) for one in asked]
        return answer

    def _shown(self, asked: Asked) -> Json:
        # Of a certificate, which not every server's administrator has.
        asked.review["request"]["userInfo"].pop("extra", None)
        return {"hook": asked.hook, "query": asked.query, "review": self._normaliser.value(asked.review)}

    def _remove(self) -> None:
        for path in self._made:
            self._send(Step(method="DELETE", path=path))
        self._client.close()
