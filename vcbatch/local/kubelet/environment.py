"""A container's environment, command and arguments from its specification.

Source of the rules: Kubernetes `pkg/kubelet/kubelet_pods.go` (makeEnvironmentVariables) and
`third_party/forked/golang/expansion`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from vcbatch.api.quantity import MalformedQuantity, parse_quantity

Json = dict[str, Any]
Lookup = Callable[[str], Mapping[str, str] | None]

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class ConfigError(Exception):
    """A container can't be created as specified; the text says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """The values of the downward API that aren't in the pod object."""

    node_name: str
    host_ip: str
    pod_ip: str
    allocatable: Mapping[str, str]


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)`. An unknown name stays as it is, `$$` is one dollar sign."""
    out: list[str] = []
    position = 0
    while True:
        dollar = text.find("$", position)
        if dollar < 0 or dollar + 1 >= len(text):
            out.append(text[position:])
            return "".join(out)
        out.append(text[position:dollar])
        following = text[dollar + 1]
        position = dollar + 2
        if following == "(":
            end = text.find(")", position)
            if end < 0:
                out.append("$(")
                continue
            name = text[position:end]
            out.append(variables.get(name, f"$({name})"))
            position = end + 1
        elif following == "$":
            out.append("$")
        else:
            out.append("$" + following)


def build(
    *,
    pod: Json,
    container: Json,
    facts: PodFacts,
    config_map: Lookup,
    secret: Lookup,
    instead: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """The variables of the specification, in its order; raises `ConfigError`.

    A variable named in `instead` gets that value in place of its own, before other variables refer to it."""
    variables = _asked_for(
        pod=pod, container=container, facts=facts, config_map=config_map, secret=secret, instead=instead
    )
    for name, value in variables.items():
        if "\0" in value:
            raise ConfigError(
                f"the value of the environment variable {name} has a NUL byte; mount it as a file instead"
            )
    return variables


def _asked_for(
    *, pod: Json, container: Json, facts: PodFacts, config_map: Lookup, secret: Lookup, instead: Mapping[str, str]
) -> dict[str, str]:
    variables: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        given = _from_source(source, config_map=config_map, secret=secret)
        variables |= {name: instead.get(name, value) for name, value in given.items()}
    for entry in container.get("env") or ():
        name = entry["name"]
        source = entry.get("valueFrom")
        if not source:
            variables[name] = instead.get(name, expand(entry.get("value") or "", variables))
            continue
        value = _from_reference(source, pod=pod, container=container, facts=facts, config_map=config_map, secret=secret)
        if value is not None:
            variables[name] = instead.get(name, value)
    return variables


def _from_source(source: Json, *, config_map: Lookup, secret: Lookup) -> dict[str, str]:
    prefix = source.get("prefix") or ""
    for key, kind, lookup in (("configMapRef", "configmap", config_map), ("secretRef", "secret", secret)):
        reference = source.get(key)
        if reference is None:
            continue
        data = lookup(reference.get("name", ""))
        if data is None:
            if reference.get("optional"):
                continue
            raise ConfigError(f'{kind} "{reference.get("name", "")}" not found')
        return {prefix + name: value for name, value in data.items()}
    return {}


def _from_reference(
    source: Json, *, pod: Json, container: Json, facts: PodFacts, config_map: Lookup, secret: Lookup
) -> str | None:
    if "fieldRef" in source:
        return field_value(pod, source["fieldRef"].get("fieldPath", ""), facts)
    if "resourceFieldRef" in source:
        return resource_value(pod, source["resourceFieldRef"], facts, container=container)
    for key, kind, lookup in (("configMapKeyRef", "configmap", config_map), ("secretKeyRef", "secret", secret)):
        reference = source.get(key)
        if reference is None:
            continue
        data = lookup(reference.get("name", ""))
        optional = bool(reference.get("optional"))
        if data is None and not optional:
            raise ConfigError(f'{kind} "{reference.get("name", "")}" not found')
        value = (data or {}).get(reference["key"])
        if value is None and not optional:
            place = f"{pod['metadata']['namespace']}/{reference.get('name', '')}"
            kind_name = "ConfigMap" if kind == "configmap" else "Secret"
            raise ConfigError(f"couldn't find key {reference['key']} in {kind_name} {place}")
        return value
    raise ConfigError(
        f"env valueFrom {sorted(source)} is not one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef"
    )


def field_value(pod: Json, path: str, facts: PodFacts) -> str:
    """The text of a downward-API field; raises `ConfigError` for a path that Kubernetes doesn't know."""
    metadata, spec = pod["metadata"], pod["spec"]
    simple = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": facts.node_name,
        "spec.serviceAccountName": spec.get("serviceAccountName") or "default",
        "status.hostIP": facts.host_ip,
        "status.hostIPs": facts.host_ip,
        "status.podIP": facts.pod_ip,
        "status.podIPs": facts.pod_ip,
    }
    if path in simple:
        return simple[path]
    if path in ("metadata.labels", "metadata.annotations"):
        return format_map(metadata.get(path.removeprefix("metadata.")) or {})
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript:
        return (metadata.get(subscript[1]) or {}).get(subscript[2], "")
    raise ConfigError(f"fieldRef: unsupported fieldPath {path!r}")


def format_map(entries: Mapping[str, str]) -> str:
    """Labels or annotations as the downward API writes them: one `key="value"` per line, sorted."""
    return "\n".join(f"{key}={_go_quote(value)}" for key, value in sorted(entries.items()))


def _go_quote(text: str) -> str:
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(c, c if c.isprintable() else f"\\u{ord(c):04x}") for c in text) + '"'


def resource_value(pod: Json, reference: Json, facts: PodFacts, *, container: Json | None = None) -> str:
    """A container's request or limit in units of the divisor, rounded up; without a limit, the node's allocatable
    quantity."""
    name = reference.get("containerName")
    if name:
        everyone = (pod["spec"].get("containers") or []) + (pod["spec"].get("initContainers") or [])
        container = next((c for c in everyone if c["name"] == name), None)
    if container is None:
        raise ConfigError(f'resourceFieldRef: container "{name or ""}" not found')
    kind, _, resource = reference.get("resource", "").partition(".")
    if kind not in ("limits", "requests") or not resource:
        raise ConfigError(f"resourceFieldRef: unsupported resource {reference.get('resource', '')!r}")
    resources = container.get("resources") or {}
    given = (resources.get(kind) or {}).get(resource)
    if given is None and kind == "limits":
        given = facts.allocatable.get(resource)
    try:
        amount = parse_quantity(given if given is not None else "0")
        divisor = parse_quantity(reference.get("divisor") or "1")
    except MalformedQuantity as error:
        raise ConfigError(f"resourceFieldRef: {error}") from error
    if not divisor:
        divisor = parse_quantity("1")
    return str(-(-amount.nano // divisor.nano))


def command_line(container: Json, variables: Mapping[str, str]) -> list[str]:
    """`command` and `args` with the variables replaced; raises `ConfigError` where there is no command."""
    command: Sequence[str] = container.get("command") or ()
    if not command:
        raise ConfigError(
            "no command specified: image entrypoints are not available in local mode;"
            f" set spec.containers[].command of container {container['name']!r}"
        )
    return [expand(part, variables) for part in (*command, *(container.get("args") or ()))]


def thread_count(container: Json) -> int | None:
    """The number of threads for the container's CPU request (else its limit), at least one; None without either."""
    resources = container.get("resources") or {}
    given = (resources.get("requests") or {}).get("cpu", (resources.get("limits") or {}).get("cpu"))
    if given is None:
        return None
    return max(1, math.ceil(parse_quantity(given).milli() / 1000))
