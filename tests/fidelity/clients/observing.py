"""Keeps what a client returned or raised."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from tests.fidelity.golden import Answers
from tests.fidelity.normalise import Normaliser
from tests.fidelity.servers import Server

Session = Callable[[Server, str], Answers]
"""(server, namespace) -> answers"""


class Observer:
    """Collects the answers of a session; `shown` makes JSON of what a client returns."""

    def __init__(self, namespace: str, shown: Callable[[Any], Any]) -> None:
        self.answers: list[tuple[str, Any]] = []
        self._namespace = namespace
        self._shown = shown
        self._normaliser = Normaliser()

    def ask(self, what: str, call: Callable[[], Any]) -> Any:
        """Call, and keep what came of it under that name. Returns the client's value; None where it raised."""
        try:
            value = call()
        except Exception as error:
            self._keep(what, _raised(error))
            return None
        self._keep(what, {"returned": self._shown(value)})
        return value

    async def wait(self, what: str, call: Callable[[], Awaitable[Any]]) -> Any:
        """`ask`, for what is awaited."""
        try:
            value = await call()
        except Exception as error:
            self._keep(what, _raised(error))
            return None
        self._keep(what, {"returned": self._shown(value)})
        return value

    def _keep(self, what: str, answer: Any) -> None:
        text = json.dumps(answer, default=str).replace(self._namespace, "NS")
        self.answers.append((what, self._normaliser.value(json.loads(text))))


def _raised(error: Exception) -> Any:
    body = getattr(error, "body", None)
    if isinstance(body, (bytes, bytearray)):
        body = body.decode()
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            pass
    reported = {"raised": type(error).__name__}
    if body is None:
        return {**reported, "text": str(error)[:200]}
    return {
        **reported,
        "status": getattr(error, "status", None),
        "reason": getattr(error, "reason", None),
        "body": body,
    }
