"""Errors of small values inside pods: ports, paths, environment names, addresses, references to fields.

Source: k8s.io/apimachinery `pkg/util/validation`, kubernetes `pkg/apis/core/validation`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from typing import Any

from vcbatch.api import field_errors, name_rules, quantities
from vcbatch.api.field_errors import FieldError
from vcbatch.api.model import Json

PORT_RANGE = field_errors.between(1, 65535)
FILE_MODE = "must be a number between 0 and 0777 (octal), both inclusive"

_SUBSCRIPT = re.compile(r"(.*)\['(.*)'\]")
_FIELDS = frozenset(
    [
        "metadata.annotations",
        "metadata.labels",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.serviceAccountName",
        "spec.schedulerName",
        "status.phase",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ]
)
ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_BYTES = ("1", *(f"1{unit}" for unit in ["k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]))


def label_errors(path: str, value: str) -> list[FieldError]:
    return field_errors.invalid_each(path, value, name_rules.dns_label(value))


def subdomain_errors(path: str, value: str) -> list[FieldError]:
    return field_errors.invalid_each(path, value, name_rules.dns_subdomain(value))


def port_number_errors(path: str, value: Any) -> list[FieldError]:
    return [] if 1 <= value <= 65535 else [field_errors.invalid(path, value, PORT_RANGE)]


def port_name_errors(path: str, value: str) -> list[FieldError]:
    """Errors of an IANA service name."""
    found: list[str] = []
    if len(value) > 15:
        found.append(name_rules.too_long(15))
    if not re.fullmatch("[-a-z0-9]+", value):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", value):
        found.append("must contain at least one letter (a-z)")
    if "--" in value:
        found.append("must not contain consecutive hyphens")
    if value and (value[0] == "-" or value[-1] == "-"):
        found.append("must not begin or end with a hyphen")
    return field_errors.invalid_each(path, value, found)


def port_errors(path: str, value: Any) -> list[FieldError]:
    """Errors of a port, which is a number or the name of one."""
    return port_name_errors(path, value) if isinstance(value, str) else port_number_errors(path, value or 0)


def env_name_errors(path: str, value: str) -> list[FieldError]:
    if value and all(" " <= char <= "~" and char != "=" for char in value):
        return []
    detail = "a valid environment variable name must consist only of printable ASCII characters other than '='"
    return [field_errors.invalid(path, value, detail)]


def ip_errors(path: str, value: str) -> list[FieldError]:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return [field_errors.invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    return []


def backstep_errors(path: str, value: str) -> list[FieldError]:
    return [field_errors.invalid(path, value, "must not contain '..'")] if ".." in value.split("/") else []


def relative_path_errors(path: str, value: str) -> list[FieldError]:
    found = [field_errors.invalid(path, value, "must be a relative path")] if value.startswith("/") else []
    return found + backstep_errors(path, value)


def file_path_errors(path: str, value: str) -> list[FieldError]:
    """Errors of the path of a file within a volume."""
    found = relative_path_errors(path, value)
    if value.startswith("..") and not value.startswith("../"):
        found.append(field_errors.invalid(path, value, "must not start with '..'"))
    return found


def mode_errors(path: str, value: Any) -> list[FieldError]:
    return [] if value is None or 0 <= value <= 0o777 else [field_errors.invalid(path, value, FILE_MODE)]


def field_ref_errors(reference: Json, path: str, allowed: Collection[str]) -> list[FieldError]:
    """Errors of an `ObjectFieldSelector`."""
    version, field = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    if not version:
        return [field_errors.required(f"{path}.apiVersion")]
    place = f"{path}.fieldPath"
    if not field:
        return [field_errors.required(place)]
    if version != "v1":
        return [field_errors.invalid(place, field, f"error converting fieldPath: unsupported pod version: {version}")]
    subscript = _SUBSCRIPT.fullmatch(field)
    base = subscript[1] if subscript else "spec.nodeName" if field == "spec.host" else field
    if base not in _FIELDS or (subscript and base not in ("metadata.annotations", "metadata.labels")):
        return [field_errors.invalid(place, field, f"error converting fieldPath: field label not supported: {field}")]
    if subscript:
        key = subscript[2].lower() if base == "metadata.annotations" else subscript[2]
        return field_errors.invalid_each(path, key, name_rules.qualified_name(key))
    return [] if base in allowed else [field_errors.unsupported(place, base, sorted(allowed))]


def resource_ref_errors(reference: Json, path: str, *, volume: bool) -> list[FieldError]:
    """Errors of a `ResourceFieldSelector`; in a volume it must name its container."""
    found: list[FieldError] = []
    resource = reference.get("resource", "")
    if volume and not reference.get("containerName"):
        found.append(field_errors.required(f"{path}.containerName"))
    elif not resource:
        found.append(field_errors.required(f"{path}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(("requests.hugepages-", "limits.hugepages-")):
        found.append(field_errors.unsupported(f"{path}.resource", resource, _RESOURCES))
    return found + _divisor_errors(resource, reference.get("divisor"), f"{path}.divisor")


def _divisor_errors(resource: str, divisor: Any, path: str) -> list[FieldError]:
    if divisor is None or not quantities.read(divisor):
        return []
    _, _, name = resource.partition(".")
    text = quantities.text(divisor)
    if name == "cpu":
        allowed, what = ("1m", "1"), "1m and 1 are supported with the cpu resource"
    elif name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        shown = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(name, "hugepages")
        allowed, what = _BYTES, f"{', '.join(_BYTES)} are supported with the {shown} resource"
    else:
        return []
    return [] if text in allowed else [field_errors.invalid(path, resource, f"only divisor's values {what}")]
