"""The stored webhook configurations, reduced to the data for calls."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vcbatch.local.apiserver.kinds.webhook_errors import REVIEW_VERSIONS

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The requests that a rule matches; `*` stands for all. Resources are `pods`, `pods/status`, `pods/*`, `*/*`."""

    groups: Sequence[str]
    versions: Sequence[str]
    resources: Sequence[str]
    operations: Sequence[str]
    scope: str = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The address of a webhook: a URL, or a service of the cluster."""

    url: str = ""
    namespace: str = ""
    name: str = ""
    port: int = 443
    path: str = ""
    ca_bundle: bytes = b""

    @property
    def address(self) -> str:
        """The URL in the form of a real API server's messages."""
        return self.url or f"https://{self.name}.{self.namespace}.svc:{self.port}{self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A match condition: an expression that must be true."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One webhook of a configuration, with its defaults."""

    configuration: str
    index: int
    name: str
    client: Client
    rules: Sequence[Rule]
    equivalent: bool
    """Whether requests for another version of the same resource match."""
    namespace_selector: Mapping[str, Any]
    object_selector: Mapping[str, Any]
    conditions: Sequence[Condition]
    ignores_failure: bool
    seconds: int
    side_effects: str
    reinvoked: bool
    review_version: str


def hooks_of(configuration: Json) -> list[Hook]:
    """The webhooks of a validated Mutating- or ValidatingWebhookConfiguration, in their order."""
    name = configuration["metadata"]["name"]
    return [_hook(name, index, webhook) for index, webhook in enumerate(configuration.get("webhooks") or ())]


def _hook(configuration: str, index: int, webhook: Json) -> Hook:
    versions = webhook.get("admissionReviewVersions") or ()
    return Hook(
        configuration=configuration,
        index=index,
        name=webhook["name"],
        client=_client(webhook.get("clientConfig") or {}),
        rules=[rule_of(rule) for rule in webhook.get("rules") or ()],
        equivalent=webhook.get("matchPolicy") != "Exact",
        namespace_selector=webhook.get("namespaceSelector") or {},
        object_selector=webhook.get("objectSelector") or {},
        conditions=conditions_of(webhook),
        ignores_failure=webhook.get("failurePolicy") == "Ignore",
        seconds=webhook.get("timeoutSeconds") or 10,
        side_effects=webhook.get("sideEffects") or "",
        reinvoked=webhook.get("reinvocationPolicy") == "IfNeeded",
        review_version=next((version for version in versions if version in REVIEW_VERSIONS), REVIEW_VERSIONS[0]),
    )


def rule_of(rule: Json) -> Rule:
    return Rule(
        groups=rule.get("apiGroups") or (),
        versions=rule.get("apiVersions") or (),
        resources=rule.get("resources") or (),
        operations=rule.get("operations") or (),
        scope=rule.get("scope") or "*",
    )


def conditions_of(source: Json) -> list[Condition]:
    return [
        Condition(name=condition["name"], expression=condition["expression"].strip())
        for condition in source.get("matchConditions") or ()
    ]


def _client(source: Json) -> Client:
    service = source.get("service") or {}
    try:
        ca_bundle = base64.b64decode(source.get("caBundle") or "")
    except binascii.Error:
        ca_bundle = b"\0"  # invalid as PEM too: the call reports it
    path = service.get("path") or ""
    return Client(
        url=source.get("url") or "",
        namespace=service.get("namespace") or "",
        name=service.get("name") or "",
        port=service.get("port") or 443,
        path=path if path.startswith("/") else f"/{path}",
        ca_bundle=ca_bundle,
    )
