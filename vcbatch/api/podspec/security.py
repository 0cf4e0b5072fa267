"""Errors of security contexts. Source: kubernetes `pkg/apis/core/validation`."""

from __future__ import annotations

import re
from typing import Any

from vcbatch.api import field_errors
from vcbatch.api.field_errors import FieldError
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json
from vcbatch.api.podspec import internal, values

_LARGEST_ID = 2**31 - 1
_ID_RANGE = field_errors.between(0, _LARGEST_ID)
_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"({_SEGMENT}[\./])*{_SEGMENT}"
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")


def _id_errors(path: str, value: Any) -> list[FieldError]:
    return [] if value is None or 0 <= value <= _LARGEST_ID else [field_errors.invalid(path, value, _ID_RANGE)]


def pod_errors(context: Json | None, spec: Json, path: str) -> list[FieldError]:
    """Errors of a pod's security context."""
    context = context or {}
    found: list[FieldError] = []
    for key in ("fsGroup", "runAsUser", "runAsGroup"):
        found += _id_errors(f"{path}.{key}", context.get(key))
    for index, group in enumerate(listed(context, "supplementalGroups")):
        found += _id_errors(f"{path}.supplementalGroups[{index}]", group)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        found.append(field_errors.invalid(f"{path}.shareProcessNamespace", True, detail))
    found += _sysctl_errors(listed(context, "sysctls"), f"{path}.sysctls")
    change = context.get("fsGroupChangePolicy")
    if change is not None and change not in ("Always", "OnRootMismatch"):
        found.append(field_errors.unsupported(f"{path}.fsGroupChangePolicy", change, ["Always", "OnRootMismatch"]))
    found += _seccomp_errors(context.get("seccompProfile"), f"{path}.seccompProfile")
    found += _app_armor_errors(context.get("appArmorProfile"), f"{path}.appArmorProfile")
    groups = context.get("supplementalGroupsPolicy")
    if groups is not None and groups not in ("Merge", "Strict"):
        found.append(field_errors.unsupported(f"{path}.supplementalGroupsPolicy", groups, ["Merge", "Strict"]))
    labels = context.get("seLinuxChangePolicy")
    if labels is not None and labels != "Recursive":
        found.append(field_errors.unsupported(f"{path}.seLinuxChangePolicy", labels, ["Recursive"]))
    return found


def container_errors(context: Json | None, path: str, *, host_users: bool) -> list[FieldError]:
    """Errors of a container's security context."""
    if not context:
        return []
    found: list[FieldError] = []
    for key in ("runAsUser", "runAsGroup"):
        found += _id_errors(f"{path}.{key}", context.get(key))
    mount = context.get("procMount")
    if mount is not None and mount not in ("Default", "Unmasked"):
        found.append(field_errors.unsupported(f"{path}.procMount", mount, ["Default", "Unmasked"]))
    if mount == "Unmasked" and host_users:
        found.append(field_errors.invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    found += _seccomp_errors(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            found.append(internal.invalid(path, context, "Security", detail))
        added = listed(part(context, "capabilities"), "add")
        if "CAP_SYS_ADMIN" in added:
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            found.append(internal.invalid(path, context, "Security", detail))
    return found + _app_armor_errors(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def _sysctl_errors(sysctls: Any, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        place, name = f"{path}[{index}].name", sysctl.get("name", "")
        if not name:
            found.append(field_errors.required(place))
        elif len(name) > 253 or not re.fullmatch(_SYSCTL, name):
            detail = f"must have at most 253 characters and match regex ^{_SYSCTL}$"
            found.append(field_errors.invalid(place, name, detail))
        elif name in seen:
            found.append(field_errors.duplicate(place, name))
        seen.add(name)
    return found


def _seccomp_errors(profile: Json | None, path: str) -> list[FieldError]:
    if profile is None:
        return []
    found: list[FieldError] = []
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        found.append(field_errors.required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in _PROFILES:
        found.append(field_errors.unsupported(f"{path}.type", kind, _PROFILES))
    if kind == "Localhost":
        if local is None:
            detail = "must be set when seccomp type is Localhost"
            found.append(field_errors.required(f"{path}.localhostProfile", detail))
        else:
            found += values.relative_path_errors(f"{path}.localhostProfile", local)
    elif local is not None:
        detail = "can only be set when seccomp type is Localhost"
        found.append(internal.invalid(f"{path}.localhostProfile", profile, "Profile", detail))
    return found


def _app_armor_errors(profile: Json | None, path: str) -> list[FieldError]:
    if profile is None:
        return []
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    place = f"{path}.localhostProfile"
    match kind:
        case "Localhost":
            text = str(local or "")
            if not text.strip():
                return [field_errors.required(place, "must be set when AppArmor type is Localhost")]
            if text.strip() != text:
                return [field_errors.invalid(place, text, "must not be padded with whitespace")]
            return []
        case "RuntimeDefault" | "Unconfined":
            if local is None:
                return []
            return [field_errors.invalid(place, local, "can only be set when AppArmor type is Localhost")]
        case "":
            return [field_errors.required(f"{path}.type", "type is required when appArmorProfile is set")]
        case _:
            return [field_errors.unsupported(f"{path}.type", kind, _PROFILES)]
