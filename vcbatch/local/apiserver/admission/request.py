"""What is brought before admission, and what a webhook says to it."""

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
    """What is about to happen. `operation` is CREATE, UPDATE, DELETE or CONNECT; `object` is None for DELETE, `old` for
    CREATE. Nobody changes the objects: a mutation answers another one."""

    operation: str
    resource: Resource
    kind: Kind
    """Of the objects; not the resource's own for some subresources (`Binding`, `Scale`)."""
    subresource: str
    namespace: str
    """The name itself for a namespace."""
    name: str
    object: Json | None
    old: Json | None
    ctx: RequestContext


class Admission(Protocol):
    """What requests go through. Both methods raise `StatusError` to refuse one. They may wait: what was read before
    may have changed when they return."""

    async def mutate(self, request: AdmissionRequest) -> Json | None:
        """The object as it shall be: `request.object` itself where nothing changes it."""
        ...

    async def validate(self, request: AdmissionRequest) -> None: ...


class NoAdmission:
    """Lets everything through."""

    async def mutate(self, request: AdmissionRequest) -> Json | None:
        return request.object

    async def validate(self, request: AdmissionRequest) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a webhook says. `status` explains a refusal (`code`, `reason`, `message`, `details`); `patch` are JSON patch
    operations; `warnings` are for the user, whatever the verdict."""

    allowed: bool
    status: Json = field(default_factory=dict[str, Any])
    patch: Sequence[Json] = ()
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A review for a service in this process: the URL path, and `request` of the AdmissionReview. Its objects are the
    server's own, which the service leaves alone."""

    path: str
    request: Json
    ctx: RequestContext
    """The request that is judged, through which the service looks up what it must know."""


class Service(Protocol):
    """A service in this process that webhook configurations may name. An exception counts as a failed call."""

    async def __call__(self, asked: Asked) -> Answer: ...
