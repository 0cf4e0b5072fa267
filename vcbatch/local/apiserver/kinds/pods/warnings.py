"""Warnings for accepted pods: fields without effect, and values that are probably mistakes.

Source of rules and texts: kubernetes `pkg/api/pod/warnings.go`, `pkg/api/node` and `pkg/api/persistentvolumeclaim`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from vcbatch.api import name_rules, quantities
from vcbatch.api.field_errors import go_quote
from vcbatch.api.loose import listed, part
from vcbatch.local.apiserver.registry import Json

_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SHOWN_VOLUMES = {"storageos": "storageOS"}
_IN_BYTES = ("memory", "ephemeral-storage")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NULL_SELECTOR = "a null labelSelector results in matching no pod"


def pod_warnings(obj: Json, path: str = "") -> list[str]:
    """Warnings for a pod or, with its `path` (`spec.template`), for a template in another object."""
    head = f"{path}." if path else ""
    spec = part(obj, "spec")
    return [
        *_node_warnings(spec, f"{head}spec"),
        *_annotation_warnings(obj, head),
        *_volume_warnings(listed(spec, "volumes"), f"{head}spec.volumes"),
        *_reference_warnings(spec, f"{head}spec"),
        *_container_warnings(spec, f"{head}spec"),
        *_port_warnings(spec, f"{head}spec"),
        *_late_warnings(spec, f"{head}spec"),
    ]


def _node_warnings(spec: Json, path: str) -> Iterator[str]:
    for key in part(spec, "nodeSelector"):
        if key in _NODE_LABELS:
            yield f"{path}.nodeSelector[{key}]: {_NODE_LABELS[key]}"
    node = part(part(spec, "affinity"), "nodeAffinity")
    place = f"{path}.affinity.nodeAffinity"
    for index, term in enumerate(listed(part(node, _REQUIRED), "nodeSelectorTerms")):
        yield from _term_warnings(term, f"{place}.{_REQUIRED}.nodeSelectorTerms[{index}]", check_values=False)
    for index, weighted in enumerate(listed(node, _PREFERRED)):
        term = part(weighted, "preference")
        yield from _term_warnings(term, f"{place}.{_PREFERRED}[{index}].preference", check_values=True)
    for index, constraint in enumerate(listed(spec, "topologySpreadConstraints")):
        place = f"{path}.topologySpreadConstraints[{index}]"
        key = constraint.get("topologyKey", "")
        if key in _NODE_LABELS:
            yield f"{place}.topologyKey: {key} is {_NODE_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{place}.labelSelector: {_NULL_SELECTOR}"


def _term_warnings(term: Json, path: str, *, check_values: bool) -> Iterator[str]:
    for index, requirement in enumerate(listed(term, "matchExpressions")):
        place, key = f"{path}.matchExpressions[{index}]", requirement.get("key", "")
        if key in _NODE_LABELS:
            yield f"{place}.key: {key} is {_NODE_LABELS[key]}"
        if check_values:
            for at, value in enumerate(listed(requirement, "values")):
                for error in name_rules.label_value(value):
                    yield f"{place}.values[{at}]: {value} is invalid, {error}"


def _annotation_warnings(obj: Json, head: str) -> Iterator[str]:
    annotations = part(part(obj, "metadata"), "annotations")
    for key, text in _ANNOTATIONS.items():
        if key in annotations:
            yield f"{head}metadata.annotations[{key}]: {text}"


def _volume_warnings(volumes: Sequence[Json], path: str) -> Iterator[str]:
    for index, volume in enumerate(volumes):
        place = f"{path}[{index}]"
        for kind, text in _VOLUMES.items():
            if volume.get(kind) is not None:
                yield f"{place}.{_SHOWN_VOLUMES.get(kind, kind)}: {text}"
        template = part(part(volume, "ephemeral"), "volumeClaimTemplate")
        yield from claim_warnings(part(template, "spec"), f"{place}.ephemeral.volumeClaimTemplate.spec")
    for volume in volumes:
        yield from _overlaps(volume)


def claim_warnings(spec: Json, path: str) -> Iterator[str]:
    """Warnings for the spec of a PersistentVolumeClaim."""
    for kind in ("requests", "limits"):
        amounts = part(part(spec, "resources"), kind)
        yield from _fractional(amounts, f"{path}.resources.{kind}", ("storage",))


def _fractional(amounts: Json, path: str, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if name in amounts and quantities.read(amounts[name]).milli() % 1000:
            shown = go_quote(quantities.text(amounts[name]))
            yield f"{path}[{name}]: fractional byte value {shown} is invalid, must be an integer"


def _overlaps(volume: Json) -> Iterator[str]:
    """Files of one volume with the same path, or one below another."""
    name = go_quote(volume.get("name", ""))
    for kind, shown, key in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
        source = part(volume, kind)
        files = [(item.get("path", ""), "") for item in listed(source, "items")]
        yield from _collisions(files, f"volume {name} ({shown} {go_quote(source.get(key, ''))})")
    files = [(item.get("path", ""), "") for item in listed(part(volume, "downwardAPI"), "items")]
    yield from _collisions(files, f"volume {name} (DownwardAPI)")
    projected: list[tuple[str, str]] = []
    for source in listed(part(volume, "projected"), "sources"):
        if not any(value is not None for value in source.values()):
            yield f"volume {name} (Projected) has no sources provided"
        projected += _projected_files(source)
    yield from _collisions(projected, f"volume {name} (Projected)")


def _projected_files(source: Json) -> list[tuple[str, str]]:
    for kind, shown in (("configMap", "ConfigMap"), ("secret", "Secret")):
        items = listed(part(source, kind), "items")
        if items:
            named = f"{shown} {go_quote(part(source, kind).get('name', ''))}"
            return [(item.get("path", ""), named) for item in items]
    items = listed(part(source, "downwardAPI"), "items")
    if items:
        return [(item.get("path", ""), "DownwardAPI") for item in items]
    token = source.get("serviceAccountToken")
    return [] if token is None else [(token.get("path", ""), "ServiceAccountToken")]


_MOST_FILES = 500
"""The number of files of a volume that are compared with each other."""


def _collisions(files: Sequence[tuple[str, str]], head: str) -> Iterator[str]:
    seen: list[tuple[str, str]] = []
    for file, source in files[:_MOST_FILES]:
        file = file.rstrip("/")
        for other, its_source in seen:
            if file and other and (f"{other}/".startswith(f"{file}/") or f"{file}/".startswith(f"{other}/")):
                yield f"{head}: overlapping paths: {_file(file, source)} with {_file(other, its_source)}"
        seen.append((file, source))


def _file(path: str, source: str) -> str:
    return f"{go_quote(path)} ({source})" if source else go_quote(path)


def _reference_warnings(spec: Json, path: str) -> Iterator[str]:
    for field, key, what in (("hostAliases", "ip", "ip"), ("imagePullSecrets", "name", "name")):
        seen: set[str] = set()
        for index, item in enumerate(listed(spec, field)):
            value = item.get(key, "")
            if value in seen:
                yield f"{path}.{field}[{index}].{key}: duplicate {what} {go_quote(value)}"
            seen.add(value)
    for index, item in enumerate(listed(spec, "imagePullSecrets")):
        if not item.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'
    yield from _fractional(part(spec, "overhead"), f"{path}.overhead", _IN_BYTES)


def _containers(spec: Json, path: str) -> Iterator[tuple[Json, str]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(listed(spec, kind)):
            yield container, f"{path}.{kind}[{index}]"


def _container_warnings(spec: Json, path: str) -> Iterator[str]:
    for container, place in _containers(spec, path):
        resources = part(container, "resources")
        for name in _IN_BYTES:
            for kind in ("limits", "requests"):
                yield from _fractional(part(resources, kind), f"{place}.resources.{kind}", (name,))
        seen: set[str] = set()
        for index, variable in enumerate(listed(container, "env")):
            name, value = variable.get("name", ""), variable.get("value", "")
            old = f"$({name})"
            hides = variable.get("valueFrom") is not None or value == old or old not in value
            if name in seen and hides:
                what = f"hides previous definition of {go_quote(name)}, which may be dropped when using apply"
                yield f"{place}.env[{index}]: {what}"
            seen.add(name)


def _port_warnings(spec: Json, path: str) -> Iterator[str]:
    taken: dict[tuple[int, str], list[tuple[str, Json]]] = {}
    for container, place in _containers(spec, path):
        for index, port in enumerate(listed(container, "ports")):
            here = f"{place}.ports[{index}]"
            if port.get("hostIP") and not port.get("hostPort"):
                yield f"{here}: hostIP set without hostPort: {_go_port(port)}"
            others = taken.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
            for there, other in others:
                error = _port_overlap(port, other)
                if error:
                    yield f"{here}: {error} port definition with {there}"
            others.append((here, port))
    names: dict[str, str] = {}
    for container, place in _containers(spec, path):
        for index, port in enumerate(listed(container, "ports")):
            name, here = port.get("name"), f"{place}.ports[{index}]"
            if name in names:
                there = names[name]
                users = f"services and probes that select ports by name will use {there}"
                yield f"{here}: duplicate port name {go_quote(name)} with {there}, {users}"
            elif name:
                names[name] = here


def _go_port(port: Json) -> str:
    fields = (("Name", "name", ""), ("HostPort", "hostPort", 0), ("ContainerPort", "containerPort", 0),
              ("Protocol", "protocol", ""), ("HostIP", "hostIP", ""))  # fmt: skip
    return "{" + " ".join(f"{shown}:{port.get(key, zero)}" for shown, key, zero in fields) + "}"


def _port_overlap(port: Json, other: Json) -> str:
    mine, theirs = port.get("hostPort", 0), other.get("hostPort", 0)
    address, its_address = port.get("hostIP", ""), other.get("hostIP", "")
    if mine == theirs and address == its_address:
        return "duplicate"
    if not mine or not theirs:
        return "overlapping"
    return "dangerously ambiguous" if mine == theirs and bool(address) != bool(its_address) else ""


def _late_warnings(spec: Json, path: str) -> Iterator[str]:
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        what = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{path}.terminationGracePeriodSeconds: {what}"
    affinity = part(spec, "affinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        terms, place = part(affinity, kind), f"{path}.affinity.{kind}"
        for index, term in enumerate(listed(terms, _REQUIRED)):
            if term.get("labelSelector") is None:
                yield f"{place}.{_REQUIRED}[{index}].labelSelector: {_NULL_SELECTOR}"
        for index, weighted in enumerate(listed(terms, _PREFERRED)):
            if part(weighted, "podAffinityTerm").get("labelSelector") is None:
                yield f"{place}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NULL_SELECTOR}"
    for index, server in enumerate(listed(part(spec, "dnsConfig"), "nameservers")):
        yield from address_warnings(f"{path}.dnsConfig.nameservers[{index}]", server)
    for index, alias in enumerate(listed(spec, "hostAliases")):
        yield from address_warnings(f"{path}.hostAliases[{index}].ip", alias.get("ip", ""))


def address_warnings(path: str, text: str) -> Iterator[str]:
    """Warnings for an IP address that isn't in canonical form."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return
    mapped = getattr(address, "ipv4_mapped", None)
    if mapped is not None:
        yield f"{path}: non-standard IP address {go_quote(text)} is invalid: use {go_quote(str(mapped))}"
    elif str(address) != text:
        what = f"should be in RFC 5952 canonical format ({go_quote(str(address))})"
        yield f"{path}: IPv6 address {go_quote(text)} {what}"
