"""Faults of a pod spec, in the order in which Kubernetes reports them.

Source: kubernetes `pkg/apis/core/validation`, `ValidatePodSpec`.
"""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.api import faults, name_rules, selectors
from vcbatch.api.faults import FieldError
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json
from vcbatch.api.podspec import internal, scheduling, security, values
from vcbatch.api.podspec.amounts import requirements_faults
from vcbatch.api.podspec.containers import containers_faults
from vcbatch.api.podspec.volumes import volumes_faults

_LARGEST_INT32 = 2**31 - 1
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MAX_NAMESERVERS, _MAX_SEARCHES, _MAX_SEARCH_CHARACTERS = 3, 32, 2048


def spec_faults(spec: Json, path: str, *, pod_name: str, is_pod: bool = False) -> list[FieldError]:
    """Faults of a PodSpec at `path`. `pod_name` is "" where there is no pod yet, as in templates."""
    volumes, found = volumes_faults(listed(spec, "volumes"), f"{path}.volumes", pod_name=pod_name)
    found += _claims_faults(listed(spec, "resourceClaims"), f"{path}.resourceClaims")
    found += containers_faults(spec, volumes, path)
    if spec.get("resources") is not None:
        found += _pod_resources_faults(spec["resources"], f"{path}.resources")
    found += _host_network_faults(spec, f"{path}.containers", is_pod=is_pod)
    found += _choice(spec, path, "restartPolicy", _RESTART_POLICIES)
    found += _choice(spec, path, "dnsPolicy", _DNS_POLICIES)
    found += selectors.label_faults(spec.get("nodeSelector"), f"{path}.nodeSelector")
    found += security.pod_faults(spec.get("securityContext"), spec, f"{path}.securityContext")
    found += scheduling.affinity_faults(spec.get("affinity"), f"{path}.affinity")
    found += _dns_faults(spec, f"{path}.dnsConfig")
    for index, gate in enumerate(listed(spec, "readinessGates")):
        kind = gate.get("conditionType", "")
        place = f"{path}.readinessGates[{index}].conditionType"
        found += faults.invalid_each(place, kind, name_rules.qualified_name(kind))
    found += scheduling.gates_faults(listed(spec, "schedulingGates"), f"{path}.schedulingGates")
    found += scheduling.spread_faults(listed(spec, "topologySpreadConstraints"), f"{path}.topologySpreadConstraints")
    found += _host_users_faults(spec, path)
    found += _names_faults(spec, path)
    found += _late_faults(spec, path)
    return found


def _choice(spec: Json, path: str, key: str, allowed: Sequence[str]) -> list[FieldError]:
    value = spec.get(key, "")
    if not value:
        return [faults.required(f"{path}.{key}")]
    return [] if value in allowed else [faults.unsupported(f"{path}.{key}", value, allowed)]


def _claims_faults(claims: Sequence[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        place, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            found.append(faults.required(f"{place}.name"))
        elif name in seen:
            found.append(faults.duplicate(f"{place}.name", name))
        else:
            found += values.label_faults(f"{place}.name", name)
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
                found += values.subdomain_faults(f"{place}.{key}", claim[key])
    return found


def _pod_resources_faults(resources: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if resources.get("claims"):
        found.append(faults.forbidden(f"{path}.claims", "claims cannot be set for Resources at pod-level"))
    return found + requirements_faults({**resources, "claims": None}, path, claims=())


def _host_network_faults(spec: Json, path: str, *, is_pod: bool) -> list[FieldError]:
    if not spec.get("hostNetwork"):
        return []
    found: list[FieldError] = []
    for index, container in enumerate(listed(spec, "containers")):
        for at, port in enumerate(listed(container, "ports")):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port.get("containerPort", 0):
                detail = "must match `containerPort` when `hostNetwork` is true"
                found.append(faults.invalid(f"{path}[{index}].ports[{at}].hostPort", host, detail))
    return found


def _dns_faults(spec: Json, path: str) -> list[FieldError]:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [faults.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [faults.required(f"{path}.nameservers", detail)]
    if config is None:
        return []
    found: list[FieldError] = []
    servers, searches = listed(config, "nameservers"), listed(config, "searches")
    if len(servers) > _MAX_NAMESERVERS:
        detail = f"must not have more than {_MAX_NAMESERVERS} nameservers"
        found.append(faults.invalid(f"{path}.nameservers", servers, detail))
    for index, server in enumerate(servers):
        found += values.ip_faults(f"{path}.nameservers[{index}]", server)
    if len(searches) > _MAX_SEARCHES:
        detail = f"must not have more than {_MAX_SEARCHES} search paths"
        found.append(faults.invalid(f"{path}.searches", searches, detail))
    if len(" ".join(searches)) > _MAX_SEARCH_CHARACTERS:
        detail = f"must not have more than {_MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list"
        found.append(faults.invalid(f"{path}.searches", searches, detail))
    for index, search in enumerate(searches):
        if search != ".":
            plain = search.removesuffix(".")
            found += faults.invalid_each(f"{path}.searches[{index}]", search, name_rules.dns_search(plain))
    for index, option in enumerate(listed(config, "options")):
        if not option.get("name"):
            found.append(faults.required(f"{path}.options[{index}]", "must not be empty"))
    return found


def _host_users_faults(spec: Json, path: str) -> list[FieldError]:
    if spec.get("hostUsers") is not False:
        return []
    shared = (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC"))
    detail = "when `pod.Spec.HostUsers` is false"
    return [faults.forbidden(f"{path}.{shown}", detail) for key, shown in shared if spec.get(key)]


def _names_faults(spec: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for key in ("serviceAccountName", "nodeName"):
        if spec.get(key):
            found += values.subdomain_faults(f"{path}.{key}", spec[key])
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LARGEST_INT32:
        found.append(faults.invalid(f"{path}.activeDeadlineSeconds", deadline, faults.between(1, _LARGEST_INT32)))
    for key in ("hostname", "subdomain"):
        if spec.get(key):
            found += values.label_faults(f"{path}.{key}", spec[key])
    return found


def _late_faults(spec: Json, path: str) -> list[FieldError]:
    found = scheduling.tolerations_faults(listed(spec, "tolerations"), f"{path}.tolerations")
    for index, alias in enumerate(listed(spec, "hostAliases")):
        place = f"{path}.hostAliases[{index}]"
        found += values.ip_faults(f"{place}.ip", alias.get("ip", ""))
        for at, hostname in enumerate(listed(alias, "hostnames")):
            found += values.subdomain_faults(f"{place}.hostnames[{at}]", hostname)
    if spec.get("priorityClassName"):
        found += values.subdomain_faults(f"{path}.priorityClassName", spec["priorityClassName"])
    if spec.get("runtimeClassName") is not None:
        found += values.subdomain_faults(f"{path}.runtimeClassName", spec["runtimeClassName"])
    policy = spec.get("preemptionPolicy")
    if policy is not None and policy not in ("PreemptLowerPriority", "Never"):
        found.append(faults.unsupported(f"{path}.preemptionPolicy", policy, ["PreemptLowerPriority", "Never"]))
    if spec.get("overhead"):
        found += requirements_faults({"limits": spec["overhead"]}, f"{path}.overhead", claims=())
    system = part(spec, "os").get("name")
    if spec.get("os") is not None:
        if not system:
            found.append(faults.required(f"{path}.os.name"))
        elif system not in ("linux", "windows"):
            found.append(faults.unsupported(f"{path}.os", system, ["linux", "windows"]))
    return found
