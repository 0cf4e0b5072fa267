"""The kinds of an installation, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vcbatch.api.resources import (
    CONFIGMAPS,
    CRDS,
    DEPLOYMENTS,
    NAMESPACES,
    NETWORKPOLICIES,
    PODDISRUPTIONBUDGETS,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    VALIDATING_WEBHOOKS,
    Resource,
)
from vcbatch.cli.base.output import CliError
from vcbatch.cli.inventory.read import ADMISSION_POLICIES, MUTATING_WEBHOOKS

Json = dict[str, Any]


def _rbac(plural: str, kind: str, *, namespaced: bool) -> Resource:
    group = "rbac.authorization.k8s.io"
    return Resource(group=group, version="v1", plural=plural, kind=kind, namespaced=namespaced)


CLUSTER_ROLES: Final = _rbac("clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS: Final = _rbac("clusterrolebindings", "ClusterRoleBinding", namespaced=False)
ROLES: Final = _rbac("roles", "Role", namespaced=True)
ROLE_BINDINGS: Final = _rbac("rolebindings", "RoleBinding", namespaced=True)

ORDER: Final = (
    NAMESPACES,
    CRDS,
    SERVICEACCOUNTS,
    CLUSTER_ROLES,
    ROLES,
    CLUSTER_ROLE_BINDINGS,
    ROLE_BINDINGS,
    SECRETS,
    CONFIGMAPS,
    SERVICES,
    NETWORKPOLICIES,
    PODDISRUPTIONBUDGETS,
    DEPLOYMENTS,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    *ADMISSION_POLICIES,
)
"""Permissions before the programs that use them; admission of other objects last, once its server responds."""
KEPT: Final = frozenset({NAMESPACES, CRDS})
"""Kinds that `vcbatch uninstall` leaves: deleting a CRD deletes all objects of its kind."""
_BY_KIND: Final[Mapping[tuple[str, str], Resource]] = {(one.api_version, one.kind): one for one in ORDER}


def resource_of(obj: Json) -> Resource:
    """The resource of an object. Raises `CliError` for a kind that no installation has."""
    kind, version = str(obj.get("kind")), str(obj.get("apiVersion"))
    resource = _BY_KIND.get((version, kind))
    if resource is None and kind.startswith("MutatingAdmissionPolicy") and version.endswith("/v1beta1"):
        found = next(one for one in ADMISSION_POLICIES if one.kind == kind)
        return Resource(group=found.group, version="v1beta1", plural=found.plural, kind=kind, namespaced=False)
    if resource is None:
        raise CliError(f"unexpected {kind} of {version} in the manifest")
    return resource


def title_of(obj: Json) -> str:
    """The title in kubectl's form: `deployment.apps/vcbatch-scheduler`."""
    resource = resource_of(obj)
    kind = resource.kind.lower()
    return (
        f"{kind}.{resource.group}/{obj['metadata']['name']}" if resource.group else f"{kind}/{obj['metadata']['name']}"
    )


def ordered(objects: list[Json]) -> list[Json]:
    """The objects in the order in which they are applied."""
    places = {one.kind: number for number, one in enumerate(ORDER)}
    return sorted(objects, key=lambda one: places[resource_of(one).kind])
