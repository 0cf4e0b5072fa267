"""Plays a group of requests on a server and observes the answers."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import yaml

from tests.fidelity import exchanges
from tests.fidelity.exchanges import Group, Step, at, filled
from tests.fidelity.golden import Answers
from tests.fidelity.normalise import Normaliser
from tests.fidelity.servers import Server
from tests.fidelity.wire import Answer, Client, Stream

Json = dict[str, Any]

_HEADERS = ("allow", "location", "retry-after", "www-authenticate", "vary", "etag")
_PATIENCE = 60.0


class Unplayable(Exception):
    """A request without an answer that could be observed: an event that never came, or no JSON where it should be."""


class Player:
    """Plays one group in the namespace `fid-GROUP`, which it makes."""

    def __init__(self, server: Server, group: Group) -> None:
        self._client = Client(server)
        self._group = group
        self._normaliser = Normaliser()
        self._names: dict[str, Any] = {"ns": f"fid-{group.name}".replace("_", "-")}
        self._streams: dict[str, Stream] = {}

    def play(self) -> Answers:
        """The normalised answers to all requests that are compared."""
        try:
            self._prepare()
            answers = [(step, self._tried(step)) for step in self._group.steps]
            return [(step.ask, answer) for step, answer in answers if not step.setup]
        finally:
            for stream in self._streams.values():
                stream.close()
            self._client.close()

    def _prepare(self) -> None:
        name = self._names["ns"]
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self._send(Step(method="POST", path="/api/v1/namespaces", body=body))
        for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
            self._send(Step(method="GET", path=f"/api/v1/namespaces/{name}/{path}", until={"code": 200}))

    # Sending

    def _send(self, step: Step) -> Answer:
        path = filled(step.path, self._names, escape=True)
        headers, body = self._headers(step), self._body(step)
        deadline = time.monotonic() + _PATIENCE
        while True:
            answer = self._client.send(step.method, path, headers, body, credentials=step.credentials)
            if all(_fulfils(answer, key, want) for key, want in step.until.items()):
                return answer
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._group.name}: {step.ask} never gave {step.until}: {answer}")
            time.sleep(0.03)

    def _headers(self, step: Step) -> dict[str, str]:
        headers = {"Accept": "application/json", **filled(dict(step.headers), self._names)}
        if step.body is not None or step.raw is not None:
            headers = {"Content-Type": step.media_type, **headers}
        return headers

    def _body(self, step: Step) -> bytes | None:
        if step.raw is not None:
            return str(filled(step.raw, self._names)).encode()
        if step.body is None:
            return None
        return json.dumps(filled(step.body, self._names)).encode()

    # Observing

    def _tried(self, step: Step) -> Any:
        try:
            return self._answer(step)
        except Exception as error:
            raise Unplayable(f"{self._group.name}: {step.ask}: {error!r}") from error

    def _answer(self, step: Step) -> Any:
        if step.method == "READ":
            return {"events": self._events(step, self._streams[step.path])}
        if step.events or step.keep:
            return self._watched(step)
        answer = self._send(step)
        self._save(step, answer)
        return self._observed(step, answer)

    def _watched(self, step: Step) -> Json:
        answer, stream = self._client.stream(filled(step.path, self._names, escape=True), self._headers(step))
        observed = self._observed(step, answer)
        if stream is None:
            return observed
        observed["events"] = self._events(step, stream)
        if step.keep:
            self._streams[step.keep] = stream
        else:
            stream.close()
        return observed

    def _events(self, step: Step, stream: Stream) -> list[Any]:
        events = stream.read(step.events) if step.events else []
        return [self._normaliser.value(event, managed=step.managed) for event in events]

    def _save(self, step: Step, answer: Answer) -> None:
        if step.save:
            self._names[step.save] = json.loads(answer.body)

    def _observed(self, step: Step, answer: Answer) -> Json:
        observed: Json = {"code": answer.code}
        media = answer.header("content-type")
        if media != "application/json":
            observed["type"] = media
        if warnings := answer.all("warning"):
            observed["warnings"] = [self._normaliser.text(text) for text in warnings]
        headers = {name: self._normaliser.text(answer.header(name)) for name in _HEADERS if answer.header(name)}
        if headers:
            observed["headers"] = headers
        if answer.body:
            observed["body"] = self._seen(step, answer, media)
        return observed

    def _seen(self, step: Step, answer: Answer, media: str) -> Any:
        if media == "application/yaml":
            body = yaml.safe_load(answer.body)
        elif "json" in media or step.pick:
            body = json.loads(answer.body)
        else:
            return self._normaliser.text(answer.body.decode(errors="replace"))
        if not step.pick:
            return self._normaliser.value(body, managed=step.managed)
        return [self._normaliser.value(picked(body, path), path[-1], managed=step.managed) for path in step.pick]


def _fulfils(answer: Answer, key: str, want: Any) -> bool:
    if key == "code":
        return answer.code == want
    return bool(answer.body) and at(json.loads(answer.body), key) == want


def picked(value: Any, path: Sequence[Any]) -> Any:
    """The part of a value at a path of keys; a mapping in it takes the items of a list that have these values, and
    `(keys)` at the end the sorted keys."""
    for part in path:
        if part == "(keys)":
            value = sorted(value or ())
        elif isinstance(part, dict):
            wanted: Json = part
            value = [item for item in value or () if all(at(item, key) == want for key, want in wanted.items())]
        elif isinstance(value, list):
            value = [item.get(part) for item in value]
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value


def play_all(server: Server, names: Sequence[str] = ()) -> dict[str, Answers | Unplayable]:
    """The answers of these groups, or of all, several groups at a time; what broke a group off stands for its own."""

    def play(name: str) -> Answers | Unplayable:
        try:
            return Player(server, exchanges.group(name)).play()
        except Unplayable as error:
            return error

    chosen = list(names or exchanges.names())
    with ThreadPoolExecutor(6) as pool:
        return dict(zip(chosen, pool.map(play, chosen), strict=True))
