"""rbac.authorization.k8s.io: roles and bindings are stored and printed. Local mode has one account, which has all
permissions, so that they have no effect."""

from __future__ import annotations

from datetime import datetime

from vcbatch.api import field_errors, name_rules, selectors
from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.kinds.define import path_segment_name
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.tables import AGE, NAME, Cell, column, created_cell, dig

_GROUP = "rbac.authorization.k8s.io"


def _resource(plural: str, kind: str, *, namespaced: bool) -> Resource:
    return Resource(group=_GROUP, version="v1", plural=plural, kind=kind, namespaced=namespaced)


ROLES = _resource("roles", "Role", namespaced=True)
CLUSTER_ROLES = _resource("clusterroles", "ClusterRole", namespaced=False)
ROLE_BINDINGS = _resource("rolebindings", "RoleBinding", namespaced=True)
CLUSTER_ROLE_BINDINGS = _resource("clusterrolebindings", "ClusterRoleBinding", namespaced=False)


def _binding_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    reference = obj.setdefault("roleRef", {})
    if not reference.get("apiGroup"):
        reference["apiGroup"] = _GROUP
    for subject in obj.get("subjects") or ():
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = _GROUP


def _role_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    cluster = obj.get("kind") == CLUSTER_ROLES.kind
    found: list[FieldError] = []
    if obj.get("aggregationRule") is not None:
        found += _aggregation_errors(obj["aggregationRule"])
    for index, rule in enumerate(obj.get("rules") or ()):
        path = f"rules[{index}]"
        if not rule.get("verbs"):
            found.append(field_errors.required(f"{path}.verbs", "verbs must contain at least one value"))
        if rule.get("nonResourceURLs"):
            if not cluster:
                found.append(
                    field_errors.invalid(
                        f"{path}.nonResourceURLs",
                        rule["nonResourceURLs"],
                        "namespaced rules cannot apply to non-resource URLs",
                    )
                )
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                found.append(
                    field_errors.invalid(
                        f"{path}.nonResourceURLs",
                        rule["nonResourceURLs"],
                        "rules cannot apply to both regular resources and non-resource URLs",
                    )
                )
            continue
        if not rule.get("apiGroups"):
            found.append(
                field_errors.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
            )
        if not rule.get("resources"):
            found.append(field_errors.required(f"{path}.resources", "resource rules must supply at least one resource"))
    return found


def _aggregation_errors(rule: Json) -> list[FieldError]:
    chosen = rule.get("clusterRoleSelectors") or []
    path = "aggregationRule.clusterRoleSelectors"
    if not chosen:
        return [field_errors.required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")]
    return [error for index, one in enumerate(chosen) for error in selectors.selector_errors(one, f"{path}[{index}]")]


def _binding_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    cluster = obj.get("kind") == CLUSTER_ROLE_BINDINGS.kind
    reference = obj.get("roleRef") or {}
    found: list[FieldError] = []
    if reference.get("apiGroup") != _GROUP:
        found.append(field_errors.unsupported("roleRef.apiGroup", reference.get("apiGroup", ""), [_GROUP]))
    kinds = ["ClusterRole"] if cluster else ["Role", "ClusterRole"]
    if reference.get("kind") not in kinds:
        found.append(field_errors.unsupported("roleRef.kind", reference.get("kind", ""), kinds))
    name = reference.get("name", "")
    if not name:
        found.append(field_errors.required("roleRef.name"))
    else:
        found += field_errors.invalid_each("roleRef.name", name, name_rules.path_segment(name))
    for index, subject in enumerate(obj.get("subjects") or ()):
        found += _subject_errors(subject, f"subjects[{index}]", cluster=cluster)
    return found


def _subject_errors(subject: Json, path: str, *, cluster: bool) -> list[FieldError]:
    found: list[FieldError] = []
    name, group, kind = subject.get("name", ""), subject.get("apiGroup", ""), subject.get("kind", "")
    if not name:
        found.append(field_errors.required(f"{path}.name"))
    if kind == "ServiceAccount":
        if name:
            found += field_errors.invalid_each(f"{path}.name", name, name_rules.dns_subdomain(name))
        if group:
            found.append(field_errors.unsupported(f"{path}.apiGroup", group, [""]))
        if cluster and not subject.get("namespace"):
            found.append(field_errors.required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != _GROUP:
            found.append(field_errors.unsupported(f"{path}.apiGroup", group, [_GROUP]))
    else:
        found.append(field_errors.unsupported(f"{path}.kind", kind, ["ServiceAccount", "User", "Group"]))
    return found


def _binding_change(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    if old is None or obj.get("roleRef") == old.get("roleRef"):
        return []
    reference: Json = obj.get("roleRef") or {}
    # In Kubernetes' internal form, whose fields have no JSON names.
    shown = {
        key: reference.get(name, "") for key, name in (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
    }
    return [field_errors.invalid("roleRef", shown, "cannot change roleRef")]


def _role_cell(obj: Json, _now: datetime) -> str:
    return f"{dig(obj, 'roleRef', 'kind') or ''}/{dig(obj, 'roleRef', 'name') or ''}"


def _subjects(kind: str) -> Cell:
    def cell(obj: Json, _now: datetime) -> str:
        shown: list[str] = []
        for subject in obj.get("subjects") or ():
            if subject.get("kind") == kind:
                namespace = f"{subject.get('namespace', '')}/" if kind == "ServiceAccount" else ""
                shown.append(f"{namespace}{subject.get('name', '')}")
        return ", ".join(shown)

    return cell


_BINDING_COLUMNS = (
    NAME,
    column("Role", _role_cell),
    AGE,
    column("Users", _subjects("User"), wide=True),
    column("Groups", _subjects("Group"), wide=True),
    column("ServiceAccounts", _subjects("ServiceAccount"), wide=True),
)
_ROLE_COLUMNS = (NAME, column("Created At", created_cell, kind="date"))


def served() -> list[Served]:
    roles = [
        Served(
            resource=resource,
            singular=resource.kind.lower(),
            strategy=BuiltIn(type_name=resource.kind, check=_role_errors),
            columns=_ROLE_COLUMNS,
            name_rule=path_segment_name,
            create_on_update=True,
        )
        for resource in (ROLES, CLUSTER_ROLES)
    ]
    bindings = [
        Served(
            resource=resource,
            singular=resource.kind.lower(),
            strategy=BuiltIn(
                type_name=resource.kind,
                defaults=_binding_defaults,
                check=_binding_errors,
                check_update=_binding_change,
                update_first=False,
            ),
            columns=_BINDING_COLUMNS,
            name_rule=path_segment_name,
            create_on_update=True,
        )
        for resource in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)
    ]
    return roles + bindings
