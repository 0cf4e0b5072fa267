"""The strategy of a custom resource: pruned, defaulted and validated by the schema of its version.

Source: apiextensions-apiserver `pkg/registry/customresource`.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from vcbatch.api import field_errors
from vcbatch.local.apiserver.apierrors import FieldError, StatusError
from vcbatch.local.apiserver.registry import Json, RequestContext
from vcbatch.local.apiserver.schema import cel, pruning, validation
from vcbatch.local.apiserver.schema.compare import ABSENT
from vcbatch.local.apiserver.schema.embedded import validate_embedded
from vcbatch.local.apiserver.schema.lists import validate_lists
from vcbatch.local.apiserver.schema.structural import Node, compile_schema

_BLOCKING = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
"""Errors after which rules aren't evaluated, as the rules may rely on the schema."""

_RULES_SKIPPED = field_errors.invalid(
    "<nil>",
    None,
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)

_MAX_REPLICAS = 2**31 - 1


@functools.lru_cache(maxsize=32)
def _compiled(encoded: bytes) -> Node:
    """The compiled schema, shared by all servers of a process, and by all versions of a kind with the same schema."""
    return compile_schema(msgspec.json.decode(encoded))


class CustomStrategy:
    """A `Strategy` for one version of a custom kind."""

    def __init__(
        self,
        *,
        api_version: str,
        kind: str,
        schema: Json,
        status: bool,
        scale: Mapping[str, str] | None,
        terminating: bool = False,
    ) -> None:
        self._api_version = api_version
        self._kind = kind
        self._declared = schema
        self._status = status
        self._scale = scale
        # Kubernetes' accessor for numbers of replicas refuses 3.0 (unstructured.NestedInt64).
        self._counts = frozenset(
            path.removeprefix(".") for which, path in (scale or {}).items() if which.endswith("ReplicasPath")
        )
        self._terminating = terminating

    @functools.cached_property
    def schema(self) -> Node:
        """Compiled on first use: most kinds of a server are never used."""
        return _compiled(msgspec.json.encode(self._declared))

    def fields(self, obj: Json, ctx: RequestContext) -> list[str]:
        given = obj.get("apiVersion")
        if isinstance(given, str) and given and given != self._api_version:
            # The schema of another version isn't known: all fields but the type and metadata are unknown.
            unknown = sorted(name for name in obj if name not in ("apiVersion", "kind", "metadata"))
            for name in unknown:
                del obj[name]
        else:
            unknown = pruning.prune(obj, self.schema, unchanged=self._counts)
        return [f'unknown field "{path}"' for path in unknown]

    def default(self, obj: Json, old: Json | None, ctx: RequestContext) -> None:
        if old is None and self._terminating:
            message = "create not allowed while custom resource definition is terminating"
            raise StatusError(405, "MethodNotAllowed", message)
        if ctx.subresource == "status" and old is not None:
            self._keep_all_but_status(obj, old)
        elif self._status:
            _set(obj, "status", None if old is None else old.get("status"))
        pruning.apply_defaults(obj, self.schema)

    def validate(self, obj: Json, old: Json | None, ctx: RequestContext) -> list[FieldError]:
        if obj.get("kind") != self._kind:
            return [field_errors.invalid("kind", obj.get("kind"), f"must be {self._kind}")]
        if obj.get("apiVersion") != self._api_version:
            return [field_errors.invalid("apiVersion", obj.get("apiVersion"), f"must be {self._api_version}")]
        given = old if old is not None else ABSENT
        if ctx.subresource == "status" and old is not None:
            errors = self._status_errors(obj, old)
        else:
            errors = validation.validate_schema(obj, self.schema, old=given)
            errors += _replica_errors(obj, self._scale, "specReplicasPath")
            errors += _scale_status_errors(obj, self._scale)
        errors += validate_embedded(obj, self.schema)
        if old is None or not validate_lists(old, self.schema):
            errors += validate_lists(obj, self.schema)
        if self.schema.has_rules:
            if any(error.reason in _BLOCKING for error in errors):
                errors.append(_RULES_SKIPPED)
            else:
                errors += cel.validate_rules(obj, self.schema, old=given, patient=ctx.patient)
        return errors

    def admit_create(self, obj: Json, ctx: RequestContext) -> None:
        return None

    def changes_generation(self, obj: Json, old: Json | None) -> bool:
        if old is None:
            return True
        outside = {"metadata", "status"} if self._status else {"metadata"}
        return {k: v for k, v in obj.items() if k not in outside} != {k: v for k, v in old.items() if k not in outside}

    def as_served(self, obj: Json) -> Json:
        """A stored object in this version, with this version's current schema: fields that the schema no longer has are
        removed, and new defaults are set."""
        obj["apiVersion"] = self._api_version
        pruning.prune_stored(obj, self.schema)
        pruning.apply_defaults(obj, self.schema)
        return obj

    def _status_errors(self, obj: Json, old: Json) -> list[FieldError]:
        errors: list[FieldError] = []
        node = self.schema.properties.get("status")
        if node is not None and "status" in obj:
            before = old.get("status", ABSENT)
            errors += validation.validate_schema(obj["status"], node, base="status", old=before)
        return errors + _scale_status_errors(obj, self._scale)

    def _keep_all_but_status(self, obj: Json, old: Json) -> None:
        metadata = copy.deepcopy(old.get("metadata") or {})
        for key in ("resourceVersion", "managedFields"):
            _set(metadata, key, (obj.get("metadata") or {}).get(key))
        status = obj.get("status")
        given = {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
        obj.clear()
        obj.update(copy.deepcopy({name: value for name, value in old.items() if name != "status"}))
        obj.update(given, metadata=metadata)
        _set(obj, "status", status)


def _set(obj: Json, name: str, value: Any) -> None:
    if value is None:
        obj.pop(name, None)
    else:
        obj[name] = copy.deepcopy(value)


def _scale_status_errors(obj: Json, scale: Mapping[str, str] | None) -> list[FieldError]:
    return [*_replica_errors(obj, scale, "statusReplicasPath"), *_selector_errors(obj, scale)]


def _replica_errors(obj: Json, scale: Mapping[str, str] | None, which: str) -> Iterator[FieldError]:
    path = (scale or {}).get(which)
    if not path:
        return
    value, error = _nested(obj, path, int, "int64")
    if error:
        yield field_errors.invalid(path, 0, error)
    elif isinstance(value, int) and value < 0:
        yield field_errors.invalid(path, value, "should be a non-negative integer")
    elif isinstance(value, int) and value > _MAX_REPLICAS:
        yield field_errors.invalid(path, value, f"should be less than or equal to {_MAX_REPLICAS}")


def _selector_errors(obj: Json, scale: Mapping[str, str] | None) -> Iterator[FieldError]:
    path = (scale or {}).get("labelSelectorPath")
    if path:
        _value, error = _nested(obj, path, str, "string")
        if error:
            yield field_errors.invalid(path, "", error)


def _nested(obj: Json, path: str, expected: type, go_type: str) -> tuple[Any, str]:
    """The value at a dotted path, and the error of Go's accessor where it has another type."""
    value: Any = obj
    names = path.removeprefix(".").split(".")
    for index, name in enumerate(names):
        if not isinstance(value, dict):
            at = ".".join(["", *names[:index]])
            return None, f"{at} accessor error: {_go_value(value)}, expected map[string]interface {{}}"
        if name not in value:
            return None, ""
        value = value[name]
    small = not isinstance(value, int) or -(2**63) <= value < 2**63
    if isinstance(value, expected) and not isinstance(value, bool) and small:
        return value, ""
    return None, f".{'.'.join(names)} accessor error: {_go_value(value)}, expected {go_type}"


def _go_value(value: Any) -> str:
    match value:
        case None:
            return "<nil> is of the type <nil>"
        case bool():
            return f"{str(value).lower()} is of the type bool"
        case int() if -(2**63) <= value < 2**63:
            return f"{value} is of the type int64"
        case int() | float():
            return f"{validation.go_float(float(value))} is of the type float64"
        case str():
            return f"{value} is of the type string"
        case list():
            inner = " ".join(_go_plain(item) for item in value)
            return f"[{inner}] is of the type []interface {{}}"
        case _:
            return f"{_go_plain(value)} is of the type map[string]interface {{}}"


def _go_plain(value: Any) -> str:
    """A value as Go's `%v` prints it."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return str(value).lower()
        case float():
            return validation.go_float(value)
        case list():
            return f"[{' '.join(map(_go_plain, value))}]"
        case dict():
            return f"map[{' '.join(f'{key}:{_go_plain(value[key])}' for key in sorted(value))}]"
        case _:
            return str(value)
