"""Who may submit to a queue, as the cluster's own authorization says: `create` of `queues/submit` of that queue, in the
namespace that the object is in. A Role with `resourceNames` grants it for some queues, in some namespaces."""

from __future__ import annotations

from typing import Any, Final, Protocol

from vcbatch.api.admission import Request, User
from vcbatch.api.resources import QUEUES, Resource
from vcbatch.seams.api import Api

VERB: Final = "create"
SUBRESOURCE: Final = "submit"
REVIEWS: Final = Resource(
    group="authorization.k8s.io", version="v1", plural="subjectaccessreviews", kind="SubjectAccessReview",
    namespaced=False,
)  # fmt: skip


class SubmitAccess(Protocol):
    """Answers whether somebody may submit."""

    async def refusal(self, request: Request, queue: str) -> str:
        """Why the request's user may not submit to the queue; empty where they may. Raises `ApiError`."""
        ...


class SubjectAccess:
    """Asks the API server with a SubjectAccessReview, each time: what is granted or taken away holds at once."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def refusal(self, request: Request, queue: str) -> str:
        body = _review(request.user, queue=queue, namespace=request.namespace)
        status = (await self._api.create(REVIEWS, body)).get("status") or {}
        if status.get("allowed") is True and not status.get("denied"):
            return ""
        place = f"{VERB} {QUEUES.plural}/{SUBRESOURCE}.{QUEUES.group}"
        text = f"user `{request.user.name}` may not submit to queue `{queue}` in namespace `{request.namespace}`"
        reason = str(status.get("reason") or "")[:200]
        return f"{text}: want the right to {place} named {queue}{f' ({reason})' if reason else ''}"


def _review(user: User, *, queue: str, namespace: str) -> dict[str, Any]:
    asked = {
        "group": QUEUES.group,
        "version": QUEUES.version,
        "resource": QUEUES.plural,
        "subresource": SUBRESOURCE,
        "verb": VERB,
        "name": queue,
        "namespace": namespace,
    }
    spec: dict[str, Any] = {"user": user.name, "uid": user.uid, "groups": list(user.groups)}
    spec |= {"extra": {key: list(values) for key, values in user.extra.items()}, "resourceAttributes": asked}
    return {"apiVersion": REVIEWS.api_version, "kind": REVIEWS.kind, "spec": spec}
