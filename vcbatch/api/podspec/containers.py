"""Errors of a pod's containers. Source: kubernetes `pkg/apis/core/validation`, `validateContainerCommon` and below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vcbatch.api import field_errors, name_rules
from vcbatch.api.field_errors import FieldError
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json
from vcbatch.api.podspec import security, values
from vcbatch.api.podspec.amounts import requirements_errors
from vcbatch.api.podspec.volumes import selector_key_errors

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_ONLY_SIDECARS = "may not be set for init containers without restartPolicy=Always"


def containers_errors(spec: Json, volumes: Mapping[str, Json], path: str) -> list[FieldError]:
    """Errors of the regular containers, then of the init containers, then of the ephemeral ones."""
    regular, initial = listed(spec, "containers"), listed(spec, "initContainers")
    if not regular:
        found = [field_errors.required(f"{path}.containers")]
    else:
        found = _regular_errors(spec, regular, volumes, f"{path}.containers")
    found += _initial_errors(spec, initial, volumes, f"{path}.initContainers")
    return found


def _regular_errors(spec: Json, regular: list[Json], volumes: Mapping[str, Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, container in enumerate(regular):
        place = f"{path}[{index}]"
        found += _common_errors(spec, container, volumes, place)
        name = container.get("name", "")
        if name in seen:
            found.append(field_errors.duplicate(f"{place}.name", name))
        seen.add(name)
        found += _lifecycle_errors(spec, container, place)
        policy = container.get("restartPolicy")
        if policy is not None:
            found += _restart_errors(container, f"{place}.restartPolicy", ("Always", "Never", "OnFailure"))
    return found + _host_port_errors(regular, path)


def _initial_errors(spec: Json, initial: list[Json], volumes: Mapping[str, Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen = {container.get("name", "") for container in listed(spec, "containers")}
    for index, container in enumerate(initial):
        place = f"{path}[{index}]"
        found += _common_errors(spec, container, volumes, place)
        if container.get("restartPolicy") is not None:
            found += _restart_errors(container, f"{place}.restartPolicy", ("Always", "Never", "OnFailure"))
        name = container.get("name", "")
        if name in seen:
            found.append(field_errors.duplicate(f"{place}.name", name))
        elif name:
            seen.add(name)
        found += _host_port_errors([container], path)
        if container.get("restartPolicy") == "Always":
            found += _lifecycle_errors(spec, container, place)
        else:
            for key in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if container.get(key) is not None:
                    found.append(field_errors.forbidden(f"{place}.{key}", _ONLY_SIDECARS))
    return found


def _restart_errors(container: Json, path: str, allowed: Sequence[str]) -> list[FieldError]:
    policy = container["restartPolicy"]
    found: list[FieldError] = []
    if policy not in allowed:
        found.append(field_errors.unsupported(path, policy, allowed))
    if container.get("restartPolicyRules") and not policy:
        found.append(field_errors.required(path, "must specify restartPolicy when restart rules are used"))
    return found


def _common_errors(spec: Json, container: Json, volumes: Mapping[str, Json], path: str) -> list[FieldError]:
    name = container.get("name", "")
    found = values.label_errors(f"{path}.name", name) if name else [field_errors.required(f"{path}.name")]
    if not container.get("image"):
        found.append(field_errors.required(f"{path}.image"))
    found += _message_policy_errors(container, path)
    found += _ports_errors(listed(container, "ports"), f"{path}.ports")
    found += _env_errors(listed(container, "env"), f"{path}.env")
    found += _env_from_errors(listed(container, "envFrom"), f"{path}.envFrom")
    found += _mounts_errors(container, volumes, f"{path}.volumeMounts")
    found += _devices_errors(container, volumes, f"{path}.volumeDevices")
    policy = container.get("imagePullPolicy", "")
    if not policy:
        found.append(field_errors.required(f"{path}.imagePullPolicy"))
    elif policy not in ("Always", "IfNotPresent", "Never"):
        found.append(field_errors.unsupported(f"{path}.imagePullPolicy", policy, ["Always", "IfNotPresent", "Never"]))
    claims = {claim.get("name", "") for claim in listed(spec, "resourceClaims")}
    found += requirements_errors(part(container, "resources"), f"{path}.resources", claims=claims)
    found += _resize_errors(spec, listed(container, "resizePolicy"), f"{path}.resizePolicy")
    host_users = spec.get("hostUsers") is not False
    return found + security.container_errors(
        container.get("securityContext"), f"{path}.securityContext", host_users=host_users
    )


def _message_policy_errors(container: Json, path: str) -> list[FieldError]:
    policy, place = container.get("terminationMessagePolicy", ""), f"{path}.terminationMessagePolicy"
    if not policy:
        return [field_errors.required(place)]
    if policy in ("File", "FallbackToLogsOnError"):
        return []
    return [field_errors.unsupported(place, policy, ["File", "FallbackToLogsOnError"])]


def _ports_errors(ports: Sequence[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        place = f"{path}[{index}]"
        name = port.get("name", "")
        if name:
            faulty = values.port_name_errors(f"{place}.name", name)
            if not faulty and name in seen:
                faulty = [field_errors.duplicate(f"{place}.name", name)]
            found += faulty
            seen.add(name)
        number = port.get("containerPort", 0)
        if not number:
            found.append(field_errors.required(f"{place}.containerPort"))
        else:
            found += values.port_number_errors(f"{place}.containerPort", number)
        if port.get("hostPort"):
            found += values.port_number_errors(f"{place}.hostPort", port["hostPort"])
        protocol = port.get("protocol", "")
        if not protocol:
            found.append(field_errors.required(f"{place}.protocol"))
        elif protocol not in _PROTOCOLS:
            found.append(field_errors.unsupported(f"{place}.protocol", protocol, _PROTOCOLS))
    return found


def _host_port_errors(containers: Sequence[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for at, port in enumerate(listed(container, "ports")):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in taken:
                found.append(field_errors.duplicate(f"{path}[{index}].ports[{at}].hostPort", key))
            taken.add(key)
    return found


def _env_errors(variables: Sequence[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for index, variable in enumerate(variables):
        place = f"{path}[{index}]"
        name = variable.get("name", "")
        found += values.env_name_errors(f"{place}.name", name) if name else [field_errors.required(f"{place}.name")]
        if variable.get("valueFrom") is not None:
            found += _value_from_errors(variable, f"{place}.valueFrom")
    return found


def _value_from_errors(variable: Json, path: str) -> list[FieldError]:
    source = variable["valueFrom"]
    found: list[FieldError] = []
    given = 0
    if source.get("fieldRef") is not None:
        given += 1
        found += values.field_ref_errors(source["fieldRef"], f"{path}.fieldRef", values.ENV_FIELDS)
    if source.get("resourceFieldRef") is not None:
        given += 1
        found += values.resource_ref_errors(source["resourceFieldRef"], f"{path}.resourceFieldRef", volume=False)
    for key in ("configMapKeyRef", "secretKeyRef"):
        if source.get(key) is not None:
            given += 1
            found += selector_key_errors(source[key], f"{path}.{key}")
    if source.get("fileKeyRef") is not None:
        given += 1
    if not given:
        detail = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        )
        found.append(field_errors.invalid(path, "", detail))
    elif variable.get("value"):
        found.append(field_errors.invalid(path, "", "may not be specified when `value` is not empty"))
    elif given > 1:
        found.append(field_errors.invalid(path, "", "may not have more than one field specified at a time"))
    return found


def _env_from_errors(sources: Sequence[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for index, source in enumerate(sources):
        place = f"{path}[{index}]"
        if source.get("prefix"):
            found += values.env_name_errors(f"{place}.prefix", source["prefix"])
        given = 0
        for key in ("configMapRef", "secretRef"):
            reference = source.get(key)
            if reference is None:
                continue
            given += 1
            name = reference.get("name", "")
            if not name:
                found.append(field_errors.required(f"{place}.{key}.name"))
            else:
                found += field_errors.invalid_each(
                    f"{place}.{key}.name", name, name_rules.dns_subdomain(name, prefix=True)
                )
        if not given:
            found.append(field_errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif given > 1:
            found.append(field_errors.invalid(path, "", "may not have more than one field specified at a time"))
    return found


def _mounts_errors(container: Json, volumes: Mapping[str, Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    taken: set[str] = set()
    devices = {item.get("name", ""): item.get("devicePath", "") for item in listed(container, "volumeDevices")}
    for index, mount in enumerate(listed(container, "volumeMounts")):
        place = f"{path}[{index}]"
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            found.append(field_errors.required(f"{place}.name"))
        if name not in volumes:
            found.append(field_errors.missing(f"{place}.name", name))
        if not target:
            found.append(field_errors.required(f"{place}.mountPath"))
        if target in taken:
            found.append(field_errors.invalid(f"{place}.mountPath", target, "must be unique"))
        taken.add(target)
        if name in devices:
            found.append(field_errors.invalid(f"{place}.name", name, "must not already exist in volumeDevices"))
        if target in devices.values():
            detail = "must not already exist as a path in volumeDevices"
            found.append(field_errors.invalid(f"{place}.mountPath", target, detail))
        found += _sub_path_errors(mount, place, path)
        found += _propagation_errors(mount, container, path)
    return found


def _sub_path_errors(mount: Json, place: str, path: str) -> list[FieldError]:
    """Errors of a sub path. Kubernetes reports them at the list and not at its entry."""
    found: list[FieldError] = []
    plain, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if plain:
        found += values.relative_path_errors(f"{path}.subPath", plain)
    if expression:
        if plain:
            detail = "subPathExpr and subPath are mutually exclusive"
            found.append(field_errors.invalid(f"{place}.subPathExpr", expression, detail))
        found += values.relative_path_errors(f"{path}.subPathExpr", expression)
    return found


def _propagation_errors(mount: Json, container: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    mode = mount.get("mountPropagation")
    if mode is not None:
        place = f"{path}.mountPropagation"
        if mode not in _PROPAGATIONS:
            found.append(field_errors.unsupported(place, mode, _PROPAGATIONS))
        if mode == "Bidirectional" and not part(container, "securityContext").get("privileged"):
            detail = "Bidirectional mount propagation is available only to privileged containers"
            found.append(field_errors.forbidden(place, detail))
    recursive, place = mount.get("recursiveReadOnly"), f"{path}.recursiveReadOnly"
    if recursive in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            found.append(field_errors.forbidden(place, "may only be specified when readOnly is true"))
        if mode not in (None, "None"):
            detail = "may only be specified when mountPropagation is None or not specified"
            found.append(field_errors.forbidden(place, detail))
    elif recursive not in (None, "Disabled"):
        found.append(field_errors.unsupported(place, recursive, ["Disabled", "Enabled", "IfPossible"]))
    return found


def _devices_errors(container: Json, volumes: Mapping[str, Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    paths: set[str] = set()
    seen: set[str] = set()
    for index, device in enumerate(listed(container, "volumeDevices")):
        place = f"{path}[{index}]"
        name, target = device.get("name", ""), device.get("devicePath", "")
        if not name:
            found.append(field_errors.required(f"{place}.name"))
        if name in seen:
            found.append(field_errors.invalid(f"{place}.name", name, "must be unique"))
        volume = volumes.get(name)
        if volume is None:
            found.append(field_errors.missing(f"{place}.name", name))
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            found.append(field_errors.invalid(f"{place}.name", name, detail))
        if not target:
            found.append(field_errors.required(f"{place}.devicePath"))
        if target in paths:
            found.append(field_errors.invalid(f"{place}.devicePath", target, "must be unique"))
        if ".." in target.split("/"):
            found.append(field_errors.invalid(f"{place}.devicePath", target, "can not contain backsteps ('..')"))
        paths.add(target)
        seen.add(name)
    return found


def _resize_errors(spec: Json, policies: Sequence[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            found.append(field_errors.duplicate(f"{path}[{index}]", resource))
        seen.add(resource)
        if not resource:
            found.append(field_errors.required(path))
        elif resource not in ("cpu", "memory"):
            found.append(field_errors.unsupported(path, resource, ["cpu", "memory"]))
        if not restart:
            found.append(field_errors.required(path))
        elif restart not in ("NotRequired", "RestartContainer"):
            found.append(field_errors.unsupported(path, restart, ["NotRequired", "RestartContainer"]))
        if spec.get("restartPolicy") == "Never" and restart != "NotRequired":
            detail = "must be 'NotRequired' when `restartPolicy` is 'Never'"
            found.append(field_errors.invalid(path, restart, detail))
    return found


def _lifecycle_errors(spec: Json, container: Json, path: str) -> list[FieldError]:
    """Errors of hooks and probes."""
    found: list[FieldError] = []
    grace = spec.get("terminationGracePeriodSeconds")
    hooks = part(container, "lifecycle")
    for hook in ("postStart", "preStop"):
        if hooks.get(hook) is not None:
            found += _handler_errors(hooks[hook], f"{path}.lifecycle.{hook}", grace=grace)
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe) is not None:
            found += _probe_errors(container[probe], f"{path}.{probe}", probe, grace)
    return found


def _probe_errors(probe: Json, path: str, kind: str, grace: int | None) -> list[FieldError]:
    found = _handler_errors(probe, path, grace=grace)
    for key in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        found += field_errors.not_negative(f"{path}.{key}", probe.get(key))
    own, place = probe.get("terminationGracePeriodSeconds"), f"{path}.terminationGracePeriodSeconds"
    if own is not None and own <= 0:
        found.append(field_errors.invalid(place, own, "must be greater than 0"))
    if kind == "readinessProbe":
        if own is not None:
            found.append(field_errors.invalid(place, own, "must not be set for readinessProbes"))
    elif probe.get("successThreshold", 1) != 1:
        found.append(field_errors.invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1"))
    return found


def _handler_errors(handler: Json, path: str, *, grace: int | None) -> list[FieldError]:
    found: list[FieldError] = []
    chosen = False
    for kind in ("exec", "httpGet", "tcpSocket", "grpc", "sleep"):
        action = handler.get(kind)
        if action is None:
            continue
        if chosen:
            found.append(field_errors.forbidden(f"{path}.{kind}", "may not specify more than 1 handler type"))
            continue
        chosen = True
        found += _action_errors(kind, action, f"{path}.{kind}", grace)
    if not chosen:
        found.append(field_errors.required(path, "must specify a handler type"))
    return found


def _action_errors(kind: str, action: Any, path: str, grace: int | None) -> list[FieldError]:
    match kind:
        case "exec":
            return [] if action.get("command") else [field_errors.required(f"{path}.command")]
        case "httpGet":
            return _http_errors(action, path)
        case "sleep":
            seconds = action.get("seconds", 0)
            if grace is None or 0 <= seconds <= grace:
                return []
            detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            return [field_errors.invalid(path, seconds, detail)]
        case _:
            return values.port_errors(f"{path}.port", action.get("port", 0))


def _http_errors(action: Json, path: str) -> list[FieldError]:
    found = [] if action.get("path") else [field_errors.required(f"{path}.path")]
    found += values.port_errors(f"{path}.port", action.get("port", 0))
    if action.get("scheme") not in ("HTTP", "HTTPS"):
        found.append(field_errors.unsupported(f"{path}.scheme", action.get("scheme", ""), ["HTTP", "HTTPS"]))
    for header in listed(action, "httpHeaders"):
        name = header.get("name", "")
        if not name or not all(char.isascii() and (char.isalnum() or char == "-") for char in name):
            detail = name_rules.regex_error(
                "a valid HTTP header must consist of alphanumeric characters or '-'", "[-A-Za-z0-9]+", "X-Header-Name"
            )
            found.append(field_errors.invalid(f"{path}.httpHeaders", name, detail))
    return found
