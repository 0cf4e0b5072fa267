"""Errors of a pod spec, in the order in which Kubernetes reports them.

Source: kubernetes `pkg/apis/core/validation`, `ValidatePodSpec`.
"""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.api import field_errors, name_rules, selectors
from vcbatch.api.field_errors import FieldError
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json
from vcbatch.api.podspec import internal, scheduling, security, values
from vcbatch.api.podspec.amounts import requirements_errors
from vcbatch.api.podspec.containers import containers_errors
from vcbatch.api.podspec.volumes import volumes_errors

_LARGEST_INT32 = 2**31 - 1
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MAX_NAMESERVERS, _MAX_SEARCHES, _MAX_SEARCH_CHARACTERS = 3, 32, 2048


def spec_errors(spec: Json, path: str, *, pod_name: str, is_pod: bool = False) -> list[FieldError]:
    """Errors of a PodSpec at `path`. `pod_name` is "" where there is no pod yet, as in templates."""
    volumes, found = volumes_errors(listed(spec, "volumes"), f"{path}.volumes", pod_name=pod_name)
    found += _claims_errors(listed(spec, "resourceClaims"), f"{path}.resourceClaims")
    found += containers_errors(spec, volumes, path)
    if spec.get("resources") is not None:
        found += _pod_resources_errors(spec["resources"], f"{path}.resources")
    found += _host_network_errors(spec, f"{path}.containers", is_pod=is_pod)
    found += _choice(spec, path, "restartPolicy", _RESTART_POLICIES)
    found += _choice(spec, path, "dnsPolicy", _DNS_POLICIES)
    found += selectors.label_errors(spec.get("nodeSelector"), f"{path}.nodeSelector")
    found += security.pod_errors(spec.get("securityContext"), spec, f"{path}.securityContext")
    found += scheduling.affinity_errors(spec.get("affinity"), f"{path}.affinity")
    found += _dns_errors(spec, f"{path}.dnsConfig")
    for index, gate in enumerate(listed(spec, "readinessGates")):
        kind = gate.get("conditionType", "")
        place = f"{path}.readinessGates[{index}].conditionType"
        found += field_errors.invalid_each(place, kind, name_rules.qualified_name(kind))
    found += scheduling.gates_errors(listed(spec, "schedulingGates"), f"{path}.schedulingGates")
    found += scheduling.spread_errors(listed(spec, "topologySpreadConstraints"), f"{path}.topologySpreadConstraints")
    found += _host_users_errors(spec, path)
    found += _names_errors(spec, path)
    found += _late_errors(spec, path)
    return found


def _choice(spec: Json, path: str, key: str, allowed: Sequence[str]) -> list[FieldError]:
    value = spec.get(key, "")
    if not value:
        return [field_errors.required(f"{path}.{key}")]
    return [] if value in allowed else [field_errors.unsupported(f"{path}.{key}", value, allowed)]


def _claims_errors(claims: Sequence[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        place, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            found.append(field_errors.required(f"{place}.name"))
        elif name in seen:
            found.append(field_errors.duplicate(f"{place}.name", name))
        else:
            found += values.label_errors(f"{place}.name", name)
        seen.add(name)
        direct, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        if direct is not None and template is not None:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            found.append(internal.invalid(place, claim, "Claim", detail))
        elif direct is None and template is None:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            found.append(internal.invalid(place, claim, "Claim", detail))
        for key in ("resourceClaimName", "resourceClaimTemplateName"):
            if claim.get(key) is not None:
                found += values.subdomain_errors(f"{place}.{key}", claim[key])
    return found


def _pod_resources_errors(resources: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if resources.get("claims"):
        found.append(field_errors.forbidden(f"{path}.claims", "claims cannot be set for Resources at pod-level"))
    return found + requirements_errors({**resources, "claims": None}, path, claims=())


def _host_network_errors(spec: Json, path: str, *, is_pod: bool) -> list[FieldError]:
    if not spec.get("hostNetwork"):
        return []
    found: list[FieldError] = []
    for index, container in enumerate(listed(spec, "containers")):
        for at, port in enumerate(listed(container, "ports")):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port.get("containerPort", 0):
                detail = "must match `containerPort` when `hostNetwork` is true"
                found.append(field_errors.invalid(f"{path}[{index}].ports[{at}].hostPort", host, detail))
    return found


def _dns_errors(spec: Json, path: str) -> list[FieldError]:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [field_errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [field_errors.required(f"{path}.nameservers", detail)]
    if config is None:
        return []
    found: list[FieldError] = []
    servers, searches = listed(config, "nameservers"), listed(config, "searches")
    if len(servers) > _MAX_NAMESERVERS:
        detail = f"must not have more than {_MAX_NAMESERVERS} nameservers"
        found.append(field_errors.invalid(f"{path}.nameservers", servers, detail))
    for index, server in enumerate(servers):
        found += values.ip_errors(f"{path}.nameservers[{index}]", server)
    if len(searches) > _MAX_SEARCHES:
        detail = f"must not have more than {_MAX_SEARCHES} search paths"
        found.append(field_errors.invalid(f"{path}.searches", searches, detail))
    if len(" ".join(searches)) > _MAX_SEARCH_CHARACTERS:
        detail = f"must not have more than {_MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list"
        found.append(field_errors.invalid(f"{path}.searches", searches, detail))
    for index, search in enumerate(searches):
        if search != ".":
            plain = search.removesuffix(".")
            found += field_errors.invalid_each(f"{path}.searches[{index}]", search, name_rules.dns_search(plain))
    for index, option in enumerate(listed(config, "options")):
        if not option.get("name"):
            found.append(field_errors.required(f"{path}.options[{index}]", "must not be empty"))
    return found


def _host_users_errors(spec: Json, path: str) -> list[FieldError]:
    if spec.get("hostUsers") is not False:
        return []
    shared = (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC"))
    detail = "when `pod.Spec.HostUsers` is false"
    return [field_errors.forbidden(f"{path}.{shown}", detail) for key, shown in shared if spec.get(key)]


def _names_errors(spec: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for key in ("serviceAccountName", "nodeName"):
        if spec.get(key):
            found += values.subdomain_errors(f"{path}.{key}", spec[key])
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LARGEST_INT32:
        found.append(
            field_errors.invalid(f"{path}.activeDeadlineSeconds", deadline, field_errors.between(1, _LARGEST_INT32))
        )
    for key in ("hostname", "subdomain"):
        if spec.get(key):
            found += values.label_errors(f"{path}.{key}", spec[key])
    return found


def _late_errors(spec: Json, path: str) -> list[FieldError]:
    found = scheduling.tolerations_errors(listed(spec, "tolerations"), f"{path}.tolerations")
    for index, alias in enumerate(listed(spec, "hostAliases")):
        place = f"{path}.hostAliases[{index}]"
        found += values.ip_errors(f"{place}.ip", alias.get("ip", ""))
        for at, hostname in enumerate(listed(alias, "hostnames")):
            found += values.subdomain_errors(f"{place}.hostnames[{at}]", hostname)
    if spec.get("priorityClassName"):
        found += values.subdomain_errors(f"{path}.priorityClassName", spec["priorityClassName"])
    if spec.get("runtimeClassName") is not None:
        found += values.subdomain_errors(f"{path}.runtimeClassName", spec["runtimeClassName"])
    policy = spec.get("preemptionPolicy")
    if policy is not None and policy not in ("PreemptLowerPriority", "Never"):
        found.append(field_errors.unsupported(f"{path}.preemptionPolicy", policy, ["PreemptLowerPriority", "Never"]))
    if spec.get("overhead"):
        found += requirements_errors({"limits": spec["overhead"]}, f"{path}.overhead", claims=())
    system = part(spec, "os").get("name")
    if spec.get("os") is not None:
        if not system:
            found.append(field_errors.required(f"{path}.os.name"))
        elif system not in ("linux", "windows"):
            found.append(field_errors.unsupported(f"{path}.os", system, ["linux", "windows"]))
    return found
