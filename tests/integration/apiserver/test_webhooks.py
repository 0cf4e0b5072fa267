"""Webhooks by URL, asked over TLS: what an answer may not be, and how long and how large."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fidelity.webhooks.asked import WebhookServer
from vcbatch.api.resources import CONFIGMAPS
from vcbatch.interfaces.api import ApiError
from vcbatch.local.apiserver.admission.remote import LARGEST_ANSWER
from vcbatch.local.apiserver.kinds.admission import VALIDATING
from vcbatch.local.apiserver.server import EmbeddedServer
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

HOOKS: dict[str, Any] = {
    "fine": {},
    "deny": {"response": {"allowed": False, "status": {"message": "no such colour", "code": 403}}},
    "huge": {"raw": "x" * (LARGEST_ANSWER + 1)},
    "endless": {"raw": "[" * 200_000},
    "hang": {"does": "hang"},
}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    server = EmbeddedServer(state_dir=tmp_path / "state", clock=SystemClock(), random=SystemRandom())
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def create(server: EmbeddedServer, hook: str) -> str:
    """What a create of a config map labelled for the hook is refused with, or "" where it is made."""
    labels = {"hook": hook}
    try:
        await server.api.create(CONFIGMAPS, {"metadata": {"name": hook.lower(), "labels": labels}}, namespace="default")
    except ApiError as error:
        return error.message
    return ""


async def test_what_is_no_answer_fails_the_request_or_not_as_the_policy_says(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    with WebhookServer(tmp_path / "webhooks") as webhooks:
        webhooks.hooks = HOOKS
        made = [
            {
                "name": f"{hook}.{policy.lower()}.example.com",
                "clientConfig": {
                    "url": f"{webhooks.url}/{hook}",
                    "caBundle": base64.b64encode(webhooks.ca).decode(),
                },
                "rules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
                ],
                "objectSelector": {"matchLabels": {"hook": f"{hook}-{policy}"}},
                "failurePolicy": policy,
                "timeoutSeconds": 1 if hook == "hang" else 30,
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
            for hook in HOOKS
            for policy in ("Fail", "Ignore")
        ]
        await server.api.create(VALIDATING, {"metadata": {"name": "all"}, "webhooks": made})

        asked = [f"{hook}-{policy}" for hook in HOOKS for policy in ("Fail", "Ignore")]
        reported = dict(zip(asked, await asyncio.gather(*(create(server, one) for one in asked)), strict=True))

    denied = 'admission webhook "deny.{}.example.com" denied the request: no such colour'
    assert {one: text for one, text in reported.items() if text == ""}.keys() == {
        *("fine-Fail", "fine-Ignore"),
        *("huge-Ignore", "endless-Ignore", "hang-Ignore"),
    }
    assert (reported["deny-Fail"], reported["deny-Ignore"]) == (denied.format("fail"), denied.format("ignore"))
    assert reported["huge-Fail"].endswith(f"its answer is larger than {LARGEST_ANSWER} bytes")
    assert "couldn't get version/kind" in reported["endless-Fail"]
    assert reported["hang-Fail"].endswith('/hang?timeout=1s": context deadline exceeded')
