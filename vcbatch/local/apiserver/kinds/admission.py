"""admissionregistration.k8s.io: the webhook configurations that the admission chain reads."""

from __future__ import annotations

from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.kinds.webhook_errors import configuration_errors
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.tables import AGE, NAME, column, count

_GROUP = "admissionregistration.k8s.io"

MUTATING = Resource(
    group=_GROUP,
    version="v1",
    plural="mutatingwebhookconfigurations",
    kind="MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING = Resource(
    group=_GROUP,
    version="v1",
    plural="validatingwebhookconfigurations",
    kind="ValidatingWebhookConfiguration",
    namespaced=False,
)

EXEMPT = frozenset({MUTATING, VALIDATING})
"""Resources for which no webhook is called, so that a failing one can always be deleted."""

_COLUMNS = (NAME, column("Webhooks", count("webhooks")), AGE)


def _defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    mutating = obj.get("kind") == MUTATING.kind
    for webhook in obj.get("webhooks") or ():
        webhook.setdefault("failurePolicy", "Fail")
        webhook.setdefault("matchPolicy", "Equivalent")
        webhook.setdefault("namespaceSelector", {})
        webhook.setdefault("objectSelector", {})
        webhook.setdefault("timeoutSeconds", 10)
        if mutating:
            webhook.setdefault("reinvocationPolicy", "Never")
        service = (webhook.get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)
        for rule in webhook.get("rules") or ():
            rule.setdefault("scope", "*")


def _check(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    return list(configuration_errors(obj, mutating=obj.get("kind") == MUTATING.kind))


def _entry(resource: Resource, singular: str) -> Served:
    return Served(
        resource=resource,
        singular=singular,
        strategy=BuiltIn(type_name=resource.kind, defaults=_defaults, check=_check, generation=True),
        columns=_COLUMNS,
        categories=("api-extensions",),
    )


def served() -> list[Served]:
    return [
        _entry(MUTATING, "mutatingwebhookconfiguration"),
        _entry(VALIDATING, "validatingwebhookconfiguration"),
    ]
