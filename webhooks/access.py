"""Whether a user may submit to a queue, or open or close it, by the cluster's own authorization.

To submit: `create` of `queues/submit` of that queue, in the namespace of the object. A Role with `resourceNames` grants
it for some queues, in some namespaces. To open or close by a Command: `update` of the queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from vcbatch.api.admission import Request, User
from vcbatch.api.resources import QUEUES, Resource
from vcbatch.interfaces.api import Api

VERB: Final = "create"
SUBRESOURCE: Final = "submit"
UPDATE: Final = "update"
REVIEWS: Final = Resource(
    group="authorization.k8s.io", version="v1", plural="subjectaccessreviews", kind="SubjectAccessReview",
    namespaced=False,
)  # fmt: skip


class SubmitAccess(Protocol):
    """Checks whether a user may submit to a queue."""

    async def refusal(self, request: Request, queue: str) -> str:
        """Why the request's user may not submit to the queue; empty where they may. Raises `ApiError`."""
        ...


class UpdateAccess(Protocol):
    """Checks whether a user may update a queue."""

    async def update_refusal(self, request: Request, queue: str) -> str:
        """Why the request's user may not update the queue; empty where they may. Raises `ApiError`."""
        ...


class SubjectAccess:
    """Sends a SubjectAccessReview to the API server for each check, so that changed permissions take effect at once."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def refusal(self, request: Request, queue: str) -> str:
        asked = {"subresource": SUBRESOURCE, "verb": VERB, "name": queue, "namespace": request.namespace}
        place = f"{VERB} {QUEUES.plural}/{SUBRESOURCE}.{QUEUES.group}"
        text = f"user `{request.user.name}` may not submit to queue `{queue}` in namespace `{request.namespace}`"
        return await self._refusal(request.user, asked, f"{text}: want the right to {place} named {queue}")

    async def update_refusal(self, request: Request, queue: str) -> str:
        return await self._refusal(request.user, {"verb": UPDATE, "name": queue}, not_updating(request.user, queue))

    async def _refusal(self, user: User, asked: Mapping[str, str], text: str) -> str:
        status = (await self._api.create(REVIEWS, _review(user, asked))).get("status") or {}
        if status.get("allowed") is True and not status.get("denied"):
            return ""
        reason = str(status.get("reason") or "")[:200]
        return f"{text}{f' ({reason})' if reason else ''}"


def not_updating(user: User, queue: str) -> str:
    """The message to a user who may not update the queue."""
    right = f"{UPDATE} {QUEUES.plural}.{QUEUES.group} named {queue}"
    return f"user `{user.name}` may not open or close queue `{queue}`: want the right to {right}"


def _review(user: User, asked: Mapping[str, str]) -> dict[str, Any]:
    asked = {"group": QUEUES.group, "version": QUEUES.version, "resource": QUEUES.plural, **asked}
    spec: dict[str, Any] = {"user": user.name, "uid": user.uid, "groups": list(user.groups)}
    spec |= {"extra": {key: list(values) for key, values in user.extra.items()}, "resourceAttributes": asked}
    return {"apiVersion": REVIEWS.api_version, "kind": REVIEWS.kind, "spec": spec}
