"""The webhook configurations that make an API server call the service: the shipped YAML with the service's address."""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import vcbatch
from vcbatch.api import names
from vcbatch.api.names import DEFAULT_SCHEDULER
from vcbatch.api.resource_groups import ResourceGroup
from vcbatch.api.resources import Resource
from vcbatch.api.yaml_reader import documents
from webhooks.paths import PATHS
from webhooks.policies.expressions import CONTROLLERS_ACCOUNT, OF_A_JOB, annotation, listed, not_of_a_job, text

Json = dict[str, Any]

_GROUP: Final = "admissionregistration.k8s.io"
MUTATING: Final = Resource(
    group=_GROUP, version="v1", plural="mutatingwebhookconfigurations", kind="MutatingWebhookConfiguration",
    namespaced=False,
)  # fmt: skip
VALIDATING: Final = Resource(
    group=_GROUP, version="v1", plural="validatingwebhookconfigurations", kind="ValidatingWebhookConfiguration",
    namespaced=False,
)  # fmt: skip

SERVICE: Final = "volcano-admission-service"
"""The Service through which an API server calls us, with Volcano's name; the configurations are named after it."""
NAMESPACE: Final = "volcano-system"
"""The namespace of all our objects as shipped."""
RULES: Final = "vcbatch.dev/webhook-rules"
"""The annotation with the version of a configuration's rules."""
RULES_VERSION: Final = 2
"""The version of the shipped rules, which increases whenever they change. A service supports those of all earlier
versions."""
INJECT_FROM: Final = "cert-manager.io/inject-ca-from"
"""The annotation by which cert-manager writes the authority of a Certificate (`NAMESPACE/NAME`) into a
configuration."""

_PACKAGE = Path(vcbatch.__file__).parent
_PLACES = (
    _PACKAGE / "_data" / "webhooks",  # in a wheel
    _PACKAGE.parent / "helm" / "vcbatch" / "files" / "webhooks",  # in a checkout
)


def name_of(url_path: str) -> str:
    """The name of the configuration for a path of the service, as in Volcano."""
    return f"{SERVICE}{url_path.replace('/', '-')}"


NAMES: Final = MappingProxyType(
    {
        resource: tuple(name_of(path.url) for path in PATHS.values() if path.mutates is (resource is MUTATING))
        for resource in (MUTATING, VALIDATING)
    }
)
"""The names of our configurations, by kind."""


def read(folder: Path) -> list[Json]:
    """The configurations in a directory of YAML files, in the order of the files' names."""
    return [
        document.value
        for file in sorted(folder.glob("*.yaml"))
        for document in documents(file.read_bytes())
        if document.value
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The address of the service, and the requests that it is called for; the defaults are as shipped.

    `url` (`https://HOST:PORT`): called instead of a Service; the path is appended. `controllers` is the account
    (`NAMESPACE/NAME`) whose pods and PodGroups of Jobs are excluded, unless `job_pods`. `schedulers` and `groups`
    select the pods that are included.
    """

    service: str = SERVICE
    namespace: str = NAMESPACE
    url: str = ""
    controllers: str = CONTROLLERS_ACCOUNT
    job_pods: bool = False
    schedulers: Sequence[str] = (DEFAULT_SCHEDULER,)
    groups: Sequence[ResourceGroup] = ()


SHIPPED_TARGET: Final = Target()


def pointed(
    configurations: Sequence[Mapping[str, Any]],
    *,
    ca_bundle: bytes = b"",
    inject_from: str = "",
    target: Target = SHIPPED_TARGET,
) -> list[Json]:
    """Copies for one cluster. The API server trusts `ca_bundle` (PEM), or the authority that cert-manager injects from
    the Certificate `inject_from` (`NAMESPACE/NAME`); with neither, the service itself writes the authority."""
    made = [copy.deepcopy(dict(configuration)) for configuration in configurations]
    for configuration in made:
        if inject_from:
            configuration["metadata"].setdefault("annotations", {})[INJECT_FROM] = inject_from
        for webhook in configuration["webhooks"]:
            webhook["clientConfig"] = _client(webhook["clientConfig"]["service"], ca_bundle, target)
            _select(webhook, target)
    return made


def _client(service: Mapping[str, Any], ca_bundle: bytes, target: Target) -> Json:
    client: Json = {"service": {**service, "name": target.service, "namespace": target.namespace}}
    if target.url:
        client = {"url": f"{target.url.rstrip('/')}{service['path']}"}
    if ca_bundle:
        client["caBundle"] = base64.b64encode(ca_bundle).decode()
    return client


def _select(webhook: Json, target: Target) -> None:
    """Set the match conditions of the webhook, where they differ from the shipped ones."""
    for expression in webhook.get("namespaceSelector", {}).get("matchExpressions", ()):
        expression["values"] = [target.namespace if one == NAMESPACE else one for one in expression["values"]]
    conditions: list[Json] = []
    for condition in webhook.get("matchConditions", ()):
        if condition["name"] != OF_A_JOB:
            conditions.append({**condition, "expression": _of_pods(condition["expression"], target)})
        elif not target.job_pods:
            conditions.append({**condition, "expression": not_of_a_job(target.controllers)})
    if "matchConditions" in webhook:
        webhook["matchConditions"] = conditions


def _of_pods(expression: str, target: Target) -> str:
    """The expression for pods of other schedulers, and of groups that take pods by namespace or annotations."""
    if tuple(target.schedulers) != (DEFAULT_SCHEDULER,):
        expression = expression.replace(f"== {text(DEFAULT_SCHEDULER)}", f"in {listed(target.schedulers)}")
    if names.RESOURCE_GROUP not in expression:
        return expression
    namespaces = sorted({name for group in target.groups for name in group.namespaces})
    annotations = sorted({pair for group in target.groups for pair in group.annotations})
    more = [f"request.namespace in {listed(namespaces)}"] if namespaces else []
    more += [f"{annotation(key)}.orValue('') == {text(value)}" for key, value in annotations]
    return " || ".join([expression, *more])


def covers(stored: Any, wanted: Any) -> bool:
    """Whether the stored object has all the wanted values, with any further defaults."""
    if wanted in ({}, [], None):
        return not stored
    if isinstance(wanted, dict) and isinstance(stored, dict):
        return all(covers(stored.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(stored, list):
        return len(stored) == len(wanted) and all(map(covers, stored, wanted))
    return bool(stored == wanted)


def shipped() -> Sequence[Json]:
    """The configurations that are shipped with the program."""
    return read(next(place for place in _PLACES if place.is_dir()))
