"""The requests that admission gets, and the responses of webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.registry import RequestContext

Json = dict[str, Any]

Kind = tuple[str, str, str]
"""Group, version and kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """A request before it is stored. `operation` is CREATE, UPDATE, DELETE or CONNECT; `object` is None for DELETE,
    `old` for CREATE. The objects must not be changed: a mutation returns a new one."""

    operation: str
    resource: Resource
    kind: Kind
    """The kind of the objects; not the resource's own for some subresources (`Binding`, `Scale`)."""
    subresource: str
    namespace: str
    """For a namespace, its own name."""
    name: str
    object: Json | None
    old: Json | None
    ctx: RequestContext


class Admission(Protocol):
    """The interface of admission. Both methods raise `StatusError` to refuse a request. They may wait: state that was
    read before may have changed when they return."""

    async def mutate(self, request: AdmissionRequest) -> Json | None:
        """The object to store: `request.object` itself where nothing changes it."""
        ...

    async def validate(self, request: AdmissionRequest) -> None: ...


class NoAdmission:
    """Admits everything."""

    async def mutate(self, request: AdmissionRequest) -> Json | None:
        return request.object

    async def validate(self, request: AdmissionRequest) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The response of a webhook. `status` explains a refusal (`code`, `reason`, `message`, `details`); `patch` are JSON
    patch operations; `warnings` are for the user, whether or not the request is admitted."""

    allowed: bool
    status: Json = field(default_factory=dict[str, Any])
    patch: Sequence[Json] = ()
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A review for a service in this process: the URL path, and `request` of the AdmissionReview. Its objects are the
    server's own, which the service must not change."""

    path: str
    request: Json
    ctx: RequestContext
    """The request that is validated, through which the service reads other objects."""


class Service(Protocol):
    """A service in this process that webhook configurations may name. An exception counts as a failed call."""

    async def __call__(self, asked: Asked) -> Answer: ...
