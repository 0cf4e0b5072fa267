"""The objects that a pod's specification names and without which the pod, or a container of it, can't start: claims,
ConfigMaps, Secrets, its service account and its priority class.

Works on specifications as on the wire, of any shape: malformed parts name nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, cast

from vcbatch.api.loose import Json, listed, part
from vcbatch.api.resources import (
    CONFIGMAPS,
    PERSISTENTVOLUMECLAIMS,
    PRIORITYCLASSES,
    SECRETS,
    SERVICEACCOUNTS,
    Resource,
)

DEFAULT_ACCOUNT: Final = "default"
"""The service account that every namespace has."""
_OWN_CLASSES: Final = frozenset({"system-cluster-critical", "system-node-critical"})
"""The priority classes that Kubernetes knows without an object."""
_SECRETS_OF_DRIVERS: Final = (
    ("azureFile", "secretName"),
    ("cephfs", "secretRef"),
    ("csi", "nodePublishSecretRef"),
    ("flexVolume", "secretRef"),
    ("iscsi", "secretRef"),
    ("rbd", "secretRef"),
    ("scaleIO", "secretRef"),
    ("storageos", "secretRef"),
)
"""Kinds of volumes whose mounting reads a Secret. Source: VisitPodSecretNames in kubernetes `pkg/api/v1/pod/util.go`.
Image pull secrets aren't included: without them the image may still be pulled."""


class Reference(NamedTuple):
    """An object by its kind and name, in the pod's namespace except for a priority class."""

    resource: Resource
    name: str

    def __str__(self) -> str:
        """`ConfigMap settings`."""
        return f"{self.resource.kind} {self.name}"


def references_of(pod_spec: Json, *, priority_class: str = "") -> list[Reference]:
    """The objects that a pod of this specification needs, each once and in the order of the specification. Those that
    it names as `optional` are left out, and so are those that Kubernetes creates itself. `priority_class` is used where
    the specification names none."""
    found = [
        Reference(PRIORITYCLASSES, _text(pod_spec, "priorityClassName") or priority_class),
        Reference(SERVICEACCOUNTS, _text(pod_spec, "serviceAccountName") or _text(pod_spec, "serviceAccount")),
        *_of_volumes(pod_spec),
        *_of_environments(pod_spec),
    ]
    return [one for one in dict.fromkeys(found) if one.name and not _is_given(one)]


def _is_given(reference: Reference) -> bool:
    resource, name = reference
    return (resource == SERVICEACCOUNTS and name == DEFAULT_ACCOUNT) or (
        resource == PRIORITYCLASSES and name in _OWN_CLASSES
    )


def _of_volumes(pod_spec: Json) -> Iterator[Reference]:
    for volume in _objects(listed(pod_spec, "volumes")):
        yield Reference(PERSISTENTVOLUMECLAIMS, _text(part(volume, "persistentVolumeClaim"), "claimName"))
        yield _unless_optional(SECRETS, part(volume, "secret"), "secretName")
        yield _unless_optional(CONFIGMAPS, part(volume, "configMap"))
        for source in _objects(listed(part(volume, "projected"), "sources")):
            yield _unless_optional(SECRETS, part(source, "secret"))
            yield _unless_optional(CONFIGMAPS, part(source, "configMap"))
        for driver, key in _SECRETS_OF_DRIVERS:
            settings = part(volume, driver)
            yield Reference(SECRETS, _text(settings, key) or _text(part(settings, key), "name"))


def _of_environments(pod_spec: Json) -> Iterator[Reference]:
    for container in _objects([*listed(pod_spec, "initContainers"), *listed(pod_spec, "containers")]):
        for source in _objects(listed(container, "envFrom")):
            yield _unless_optional(CONFIGMAPS, part(source, "configMapRef"))
            yield _unless_optional(SECRETS, part(source, "secretRef"))
        for variable in _objects(listed(container, "env")):
            source = part(variable, "valueFrom")
            yield _unless_optional(CONFIGMAPS, part(source, "configMapKeyRef"))
            yield _unless_optional(SECRETS, part(source, "secretKeyRef"))


def _unless_optional(resource: Resource, source: Json, key: str = "name") -> Reference:
    return Reference(resource, "" if source.get("optional") is True else _text(source, key))


def _text(obj: Json, key: str) -> str:
    value = obj.get(key)
    return value if isinstance(value, str) else ""


def _objects(items: Iterable[Any]) -> Iterator[Json]:
    return (cast(Json, item) for item in items if isinstance(item, dict))
