"""Admission in process: rules that change or refuse a request, between defaulting and storing.

Rules are plain functions, called without waiting, so that nothing happens between what they saw and what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.errors import StatusError
from vcbatch.local.apiserver.registry import RequestContext

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """What is about to happen. `operation` is CREATE, UPDATE or DELETE; `object` is None for DELETE, `old` for CREATE.

    The objects are the server's own copies: a mutation changes `object` in place, a validation changes nothing.
    """

    operation: str
    resource: Resource
    subresource: str
    namespace: str
    name: str
    object: Json | None
    old: Json | None
    ctx: RequestContext


class Admission(Protocol):
    """A chain of rules. Both methods raise `Denied` or another `StatusError` to refuse the request."""

    def mutate(self, request: AdmissionRequest) -> None: ...

    def validate(self, request: AdmissionRequest) -> None: ...


class Denied(StatusError):
    """A refusal in the words of a denying webhook, so that tools that look for them find them."""

    def __init__(self, webhook: str, message: str, *, code: int = 403, reason: str = "Forbidden") -> None:
        text = f'admission webhook "{webhook}" denied the request'
        text += f": {message}" if message else " without explanation"
        super().__init__(code, reason if code == 403 else "", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: for which resources and operations, under which webhook's name, and what it does.

    `mutate` changes `request.object` in place; `validate` answers "" or why the request is denied. Either may be None.
    """

    webhook: str
    resources: Sequence[Resource]
    operations: Sequence[str]
    mutate: Callable[[AdmissionRequest], None] | None = None
    validate: Callable[[AdmissionRequest], str] | None = None

    def concerns(self, request: AdmissionRequest) -> bool:
        return not request.subresource and request.operation in self.operations and request.resource in self.resources


class Rules:
    """An `Admission` of `Rule`s, in their order."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._rules = tuple(rules)

    def mutate(self, request: AdmissionRequest) -> None:
        for rule in self._rules:
            if rule.mutate and rule.concerns(request):
                rule.mutate(request)

    def validate(self, request: AdmissionRequest) -> None:
        for rule in self._rules:
            if rule.validate and rule.concerns(request):
                message = rule.validate(request)
                if message:
                    raise Denied(rule.webhook, message)
