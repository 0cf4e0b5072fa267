"""The webhook configurations by which an API server asks the service: the shipped YAML, pointed at where it runs."""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from vcbatch.api.resources import Resource
from vcbatch.api.yaml_reader import documents
from webhooks.paths import PATHS

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
"""The Service by which an API server reaches us, as Volcano's; the configurations are named after it."""
INJECT_FROM: Final = "cert-manager.io/inject-ca-from"
"""By this annotation cert-manager writes the authority of a Certificate (`NAMESPACE/NAME`) into a configuration."""


def name_of(url_path: str) -> str:
    """The configuration for a path of the service, under Volcano's name."""
    return f"{SERVICE}{url_path.replace('/', '-')}"


NAMES: Final = MappingProxyType(
    {
        resource: tuple(name_of(path.url) for path in PATHS.values() if path.mutates is (resource is MUTATING))
        for resource in (MUTATING, VALIDATING)
    }
)
"""The configurations that are ours, by kind."""


def read(folder: Path) -> list[Json]:
    """The configurations in a folder of YAML files, in the order of the files' names."""
    return [
        document.value
        for file in sorted(folder.glob("*.yaml"))
        for document in documents(file.read_bytes())
        if document.value
    ]


def pointed(
    configurations: Sequence[Mapping[str, Any]], *, ca_bundle: bytes = b"", inject_from: str = "", url: str = ""
) -> list[Json]:
    """Copies for one cluster. With `url` (`https://HOST:PORT`) the API server asks there, in the place of a Service of
    the cluster; the path stays. Whom it trusts: `ca_bundle` (PEM), or what cert-manager knows of the Certificate
    `inject_from` (`NAMESPACE/NAME`); with neither, what the service itself writes there."""
    made = [copy.deepcopy(dict(configuration)) for configuration in configurations]
    for configuration in made:
        if inject_from:
            configuration["metadata"].setdefault("annotations", {})[INJECT_FROM] = inject_from
        for webhook in configuration["webhooks"]:
            client = webhook["clientConfig"]
            if url:
                path = client["service"]["path"]
                client = webhook["clientConfig"] = {"url": f"{url.rstrip('/')}{path}"}
            if ca_bundle:
                client["caBundle"] = base64.b64encode(ca_bundle).decode()
    return made
