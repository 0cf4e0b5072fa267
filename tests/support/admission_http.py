"""The admission service over plain data, called as an API server calls it."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from tests.support.admission_world import World
from tests.support.asgi import ask
from tests.support.virtual_time import VirtualClock
from vcbatch.api.admission import DEFAULT_SETTINGS, Lookup, Request, Settings
from vcbatch.api.model import Json
from vcbatch.api.resources import Resource
from vcbatch.hosting.checks import Checks
from vcbatch.runtime.metrics.meter import Meter, NoMeter
from webhooks.app import MOST_AT_ONCE, build
from webhooks.service import AdmissionService


@dataclass(kw_only=True)
class KnownWorld(World):
    """A cluster state that needs no refresh."""

    complete: bool = True
    version: int = 0

    def needed(self, resource: Resource) -> bool:
        return True

    def changes_tree(self, request: Request) -> bool:
        return False

    def lacks(self, request: Request) -> bool:
        return False

    async def refresh(self, request: Request) -> Lookup:
        return self


def app_over(
    world: World,
    settings: Settings = DEFAULT_SETTINGS,
    *,
    most_at_once: int = MOST_AT_ONCE,
    error: str = "",
    meter: Meter | None = None,
    ready: Checks | None = None,
) -> Any:
    """The application. A plain `World` counts as complete; `error` is the error that its background tasks report,
    `ready` replaces that one check by others."""
    known = world if isinstance(world, KnownWorld) else KnownWorld(**vars(world))
    meter = meter or NoMeter()
    service = AdmissionService(world=known, clock=VirtualClock(), meter=meter, settings=lambda: settings)
    return build(
        service,
        meter=meter,
        exposition=lambda: ("text/plain", b""),
        most_at_once=most_at_once,
        ready=ready or Checks("readyz", {"tasks": lambda: error}),
    )


async def answer_of(app: Any, path: str, review: Json) -> Json:
    """The `response` of the review, with its uid checked and its patch decoded."""
    reply = await ask(app, "POST", path, review)
    assert reply.code == 200, (path, reply.code, reply.body)
    answered = reply.json
    assert (answered["apiVersion"], answered["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: Json = answered["response"]
    assert response["uid"] == review["request"]["uid"]
    if "patch" in response:
        assert response["patchType"] == "JSONPatch"
        response["patch"] = json.loads(base64.b64decode(response["patch"]))
        assert response["patch"], "an empty patch is none"
    return response


def review_of(request: Request, uid: str = "u") -> Json:
    """The AdmissionReview of a request."""
    resource = request.resource
    asked: Json = {
        "uid": uid,
        "kind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "resource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
        "operation": str(request.operation),
        "name": request.name,
        "namespace": request.namespace,
        "object": request.object,
        "oldObject": request.old,
        "dryRun": False,
        **({"subResource": request.subresource} if request.subresource else {}),
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
