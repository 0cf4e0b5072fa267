"""The rules of `metadata`, which all kinds share: validation, immutable fields, fields that the server sets.

Source: k8s.io/apimachinery `pkg/api/validation` (objectmeta) and k8s.io/apiserver `pkg/registry/rest`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from vcbatch.api.name_rules import dns_label, label_value, qualified_name
from vcbatch.local.apiserver import gojson
from vcbatch.local.apiserver.apierrors import (
    DecodeError,
    FieldError,
    forbidden_field,
    go_value,
    invalid_value,
    required,
    too_many_bytes,
)

Json = dict[str, Any]
NameRule = Callable[[str, bool], Sequence[str]]

ANNOTATIONS_LIMIT = 256 * 1024
FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_STANDARD_FINALIZERS = ("kubernetes", ORPHAN, FOREGROUND)
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_GENERATED_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED_BASE_LIMIT = 63 - 5


def timestamp(now: datetime) -> str:
    """RFC 3339 in whole seconds, as `metav1.Time` prints it."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def generated_name(base: str, draw: Callable[[], float]) -> str:
    """`base` truncated to its limit and five random letters, without vowels so that no words appear."""
    letters = (_GENERATED_NAME_ALPHABET[int(draw() * len(_GENERATED_NAME_ALPHABET))] for _ in range(5))
    return base[:_GENERATED_BASE_LIMIT] + "".join(letters)


_TYPES: Mapping[str, tuple[type, str]] = {
    "name": (str, "string"),
    "generateName": (str, "string"),
    "namespace": (str, "string"),
    "uid": (str, "types.UID"),
    "resourceVersion": (str, "string"),
    "creationTimestamp": (str, "string"),
    "deletionTimestamp": (str, "string"),
    "generation": (int, "int64"),
    "deletionGracePeriodSeconds": (int, "int64"),
    "labels": (dict, "map[string]string"),
    "annotations": (dict, "map[string]string"),
    "finalizers": (list, "[]string"),
    "ownerReferences": (list, "[]v1.OwnerReference"),
}


def check_types(obj: Json, *, built_in: bool = True) -> None:
    """Raise `DecodeError` where metadata has values of types that all code below relies on; drop nulls."""
    metadata = obj.get("metadata")
    if metadata is None:
        obj["metadata"] = {}
        return
    if not isinstance(metadata, dict):
        if not built_in:
            kind = gojson.kind_of(metadata)
            raise DecodeError(f"json: cannot unmarshal {kind} into Go value of type v1.ObjectMeta")
        raise _mismatch(metadata, "ObjectMeta.metadata", "v1.ObjectMeta")
    for key in [key for key, value in metadata.items() if value is None]:
        del metadata[key]
    for key, (wanted, name) in _TYPES.items():
        value = metadata.get(key)
        if value is None:
            continue
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is int):
            raise _mismatch(value, f"ObjectMeta.metadata.{key}", name)
    for key in ("labels", "annotations"):
        for value in metadata.get(key, {}).values():
            if not isinstance(value, str) and value is not None:
                raise _mismatch(value, f"ObjectMeta.metadata.{key}", "string")
        if key in metadata:
            metadata[key] = {name: value or "" for name, value in metadata[key].items()}
    for finalizer in metadata.get("finalizers", ()):
        if not isinstance(finalizer, str):
            raise _mismatch(finalizer, "ObjectMeta.metadata.finalizers", "string")
    for owner in metadata.get("ownerReferences", ()):
        if not isinstance(owner, dict):
            raise _mismatch(owner, "ObjectMeta.metadata.ownerReferences", "v1.OwnerReference")
        for key in ("apiVersion", "kind", "name", "uid"):
            if not isinstance(owner.get(key, ""), str):
                raise _mismatch(owner[key], f"OwnerReference.metadata.ownerReferences.{key}", "string")


def _mismatch(value: Any, field: str, wanted: str) -> DecodeError:
    return DecodeError(f"json: cannot unmarshal {gojson.kind_of(value)} into Go struct field {field} of type {wanted}")


def tidy(metadata: Json) -> None:
    """Drop fields that aren't stored: managed fields (no server-side apply), self links, and empty collections."""
    metadata.pop("managedFields", None)
    metadata.pop("selfLink", None)
    for key in ("labels", "annotations", "finalizers", "ownerReferences"):
        if key in metadata and not metadata[key]:
            del metadata[key]
    for key in ("generateName", "namespace", "resourceVersion", "uid"):
        if metadata.get(key) == "":
            del metadata[key]


def validate(metadata: Json, *, namespaced: bool, rule: NameRule, built_in: bool) -> list[FieldError]:
    """The errors of an object's metadata by itself, in Kubernetes' order."""
    errors: list[FieldError] = []
    prefix = metadata.get("generateName", "")
    if prefix:
        errors += [invalid_value("metadata.generateName", prefix, error) for error in rule(prefix, True)]
    name = metadata.get("name", "")
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    else:
        errors += [invalid_value("metadata.name", name, error) for error in rule(name, False)]
    namespace = metadata.get("namespace", "")
    if namespaced and not namespace:
        errors.append(required("metadata.namespace"))
    elif namespaced:
        errors += [invalid_value("metadata.namespace", namespace, error) for error in dns_label(namespace)]
    elif namespace:
        errors.append(forbidden_field("metadata.namespace", "not allowed on this type"))
    generation = metadata.get("generation", 0)
    if generation < 0:
        errors.append(invalid_value("metadata.generation", generation, "must be greater than or equal to 0"))
    errors += _labels(metadata) + _annotations(metadata) + _owners(metadata) + _finalizers(metadata, built_in)
    return errors


def _labels(metadata: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in metadata.get("labels", {}).items():
        errors += [invalid_value("metadata.labels", key, error) for error in qualified_name(key)]
        errors += [invalid_value("metadata.labels", value, error) for error in label_value(value)]
    return errors


def _annotations(metadata: Json) -> list[FieldError]:
    annotations = metadata.get("annotations", {})
    errors = [
        invalid_value("metadata.annotations", key, error)
        for key in annotations
        for error in qualified_name(key.lower())
    ]
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_LIMIT:
        errors.append(too_many_bytes("metadata.annotations", ANNOTATIONS_LIMIT))
    return errors


def _owners(metadata: Json) -> list[FieldError]:
    path = "metadata.ownerReferences"
    errors: list[FieldError] = []
    controller = ""
    for owner in metadata.get("ownerReferences", ()):
        if not owner.get("apiVersion") or owner["apiVersion"].count("/") > 1:
            errors.append(invalid_value(f"{path}.apiVersion", owner.get("apiVersion", ""), "version must not be empty"))
        errors += [
            invalid_value(f"{path}.{key}", "", "must not be empty")
            for key in ("kind", "name", "uid")
            if not owner.get(key)
        ]
        if owner.get("apiVersion") == "v1" and owner.get("kind") == "Event":
            errors.append(invalid_value(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            this = f"{owner.get('kind')}/{owner.get('name')}"
            if controller:
                errors.append(
                    invalid_value(
                        path,
                        metadata["ownerReferences"],
                        'Only one reference can have Controller set to true. Found "true" in references for '
                        f"{controller} and {this}",
                    )
                )
            else:
                controller = this
    return errors


def _finalizers(metadata: Json, built_in: bool) -> list[FieldError]:
    path = "metadata.finalizers"
    finalizers: list[str] = metadata.get("finalizers", [])
    errors: list[FieldError] = []
    for name in finalizers:
        errors += [invalid_value(path, name, error) for error in qualified_name(name)]
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        detail = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        errors.append(invalid_value(path, finalizers, detail))
    if built_in:
        for index, name in enumerate(finalizers):
            if "/" not in name and name not in _STANDARD_FINALIZERS:
                detail = "name is neither a standard finalizer name nor is it fully qualified"
                errors.append(invalid_value(f"{path}[{index}]", name, detail))
    return errors


def validate_update(metadata: Json, old: Json) -> list[FieldError]:
    """The errors of a change of metadata, in Kubernetes' order."""
    errors: list[FieldError] = []
    if "deletionTimestamp" in old:
        added = sorted(set(metadata.get("finalizers", ())) - set(old.get("finalizers", ())))
        if added:
            names = ", ".join(go_value(name) for name in added)
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{names}}}"
            )
            errors.append(forbidden_field("metadata.finalizers", detail))
    errors += [
        invalid_value(f"metadata.{key}", metadata.get(key), "field is immutable")
        for key in _IMMUTABLE
        if metadata.get(key) != old.get(key)
    ]
    return errors + _labels(metadata) + _annotations(metadata) + _owners(metadata)


def keep_system_fields(metadata: Json, old: Json) -> None:
    """Copy the fields that a client may omit or can't change from the stored object."""
    for key in ("creationTimestamp", "generation"):
        if key in old:
            metadata[key] = old[key]
        else:
            metadata.pop(key, None)
    metadata.setdefault("uid", old["uid"])
    if "namespace" in old:
        metadata.setdefault("namespace", old["namespace"])
    if "deletionTimestamp" in old:
        metadata["deletionTimestamp"] = old["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in old:
        metadata.setdefault("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"])
