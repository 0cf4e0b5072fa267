"""ConfigMaps and Secrets. Source of the rules: kubernetes `pkg/apis/core/validation`."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any

from vcbatch.api import field_errors, name_rules
from vcbatch.api.resources import CONFIGMAPS, SECRETS
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.gojson import syntax_error
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.tables import AGE, NAME, at, column, dig

LARGEST = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"


def _size(text: str) -> int:
    return len(text.encode())


def _decoded(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=False) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return b""


def _map_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    found: list[FieldError] = []
    total = 0
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    for key in sorted(data):
        found += field_errors.invalid_each(f"data[{key}]", key, name_rules.config_key(key))
        if key in binary:
            detail = "duplicate of key present in binaryData"
            found.append(field_errors.invalid(f"data[{key}]", key, detail))
        total += _size(data[key])
    for key in sorted(binary):
        found += field_errors.invalid_each(f"binaryData[{key}]", key, name_rules.config_key(key))
        total += len(_decoded(binary[key]))
    if total > LARGEST:
        found.append(field_errors.too_long("", LARGEST))
    return found


def _frozen_errors(obj: Json, old: Json | None, *keys: str) -> list[FieldError]:
    """Errors of a change of an immutable object: of its data, or of `immutable` itself."""
    if old is None or not old.get("immutable"):
        return []
    found: list[FieldError] = []
    if not obj.get("immutable"):
        found.append(field_errors.forbidden("immutable", _FROZEN))
    changed = [key for key in keys if (obj.get(key) or {}) != (old.get(key) or {})]
    return found + [field_errors.forbidden(key, _FROZEN) for key in changed]


def _map_change(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    return _frozen_errors(obj, old, "data", "binaryData")


def _secret_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    given = obj.pop("stringData", None)
    if isinstance(given, dict) and given:
        data = obj.setdefault("data", {})
        for key, text in given.items():  # pyright: ignore[reportUnknownVariableType]
            data[key] = base64.b64encode(str(text).encode()).decode()  # pyright: ignore[reportUnknownArgumentType]
    if not obj.get("type"):
        obj["type"] = "Opaque"


def _secret_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    data = obj.get("data") or {}
    found: list[FieldError] = []
    for key in sorted(data):
        found += field_errors.invalid_each(f"data[{key}]", key, name_rules.config_key(key))
    if sum(len(_decoded(value)) for value in data.values()) > LARGEST:
        found.append(field_errors.too_long("data", LARGEST))
    return found + _typed_errors(obj, data)


def _typed_errors(obj: Json, data: Json) -> list[FieldError]:
    """Errors of the data that the well-known types of Secrets require."""
    found: list[FieldError] = []
    match obj.get("type"):
        case "kubernetes.io/service-account-token":
            annotations = dig(obj, "metadata", "annotations") or {}
            if not annotations.get("kubernetes.io/service-account.name"):
                found.append(field_errors.required("metadata.annotations[kubernetes.io/service-account.name]"))
        case "kubernetes.io/dockercfg":
            found += _json_key_errors(data, ".dockercfg")
        case "kubernetes.io/dockerconfigjson":
            found += _json_key_errors(data, ".dockerconfigjson")
        case "kubernetes.io/basic-auth":
            if "username" not in data and "password" not in data:
                found.append(field_errors.required("data[username]"))
                found.append(field_errors.required("data[password]"))
        case "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                found.append(field_errors.required("data[ssh-privatekey]"))
        case "kubernetes.io/tls":
            found += [field_errors.required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
        case _:
            pass
    return found


def _json_key_errors(data: Json, key: str) -> list[FieldError]:
    if key not in data:
        return [field_errors.required(f"data[{key}]")]
    error = syntax_error(_decoded(data[key]))
    return [field_errors.invalid(f"data[{key}]", "<secret contents redacted>", error)] if error else []


def _secret_warnings(obj: Json) -> Iterator[str]:
    """Warns of a TLS certificate or key that isn't PEM. Source: kubernetes `pkg/registry/core/secret`."""
    if obj.get("type") != "kubernetes.io/tls":
        return
    data = obj.get("data") or {}
    for key, what in (("tls.crt", "certificate"), ("tls.key", "key")):
        if b"-----BEGIN " not in _decoded(data.get(key, "")):
            yield f"tls: failed to find any PEM data in {what} input"
            return


def _secret_change(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    found = field_errors.immutable("type", obj.get("type"), (old or {}).get("type"))
    return found + _frozen_errors(obj, old, "data")


def served() -> list[Served]:
    return [
        Served(
            resource=CONFIGMAPS,
            singular="configmap",
            short_names=("cm",),
            strategy=BuiltIn(type_name="ConfigMap", check=_map_errors, check_update=_map_change),
            columns=(
                NAME,
                column("Data", lambda obj, _now: len(obj.get("data") or ()) + len(obj.get("binaryData") or ())),
                AGE,
            ),
        ),
        Served(
            resource=SECRETS,
            singular="secret",
            strategy=BuiltIn(
                type_name="Secret",
                defaults=_secret_defaults,
                check=_secret_errors,
                check_update=_secret_change,
                warn=_secret_warnings,
            ),
            columns=(
                NAME,
                column("Type", at("type")),
                column("Data", lambda obj, _now: len(obj.get("data") or ())),
                AGE,
            ),
            selectable_fields=("type",),
        ),
    ]
