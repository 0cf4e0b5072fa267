"""Errors as Kubernetes Status objects, with the texts that kubectl prints.

Source of the texts: k8s.io/apimachinery `pkg/api/errors` and `pkg/util/validation/field`, as recorded responses show
them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vcbatch.api.field_errors import FieldError

Json = dict[str, Any]


@dataclass(eq=False)
class StatusError(Exception):
    """Makes the response a `Status` with this code, reason, message and details."""

    code: int
    reason: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        return self.message

    def body(self) -> Json:
        status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": dict(self.metadata),
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if not self.reason:
            del status["reason"]
        if self.details:
            # An empty key results in `details: {}`, which responses of the router have.
            status["details"] = {key: value for key, value in self.details.items() if key}
        status["code"] = self.code
        return status


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
"""The message of a write conflict."""


class DecodeError(Exception):
    """A built-in object that doesn't decode: the text that follows `… cannot be handled as a ConfigMap: `, such as
    `json: cannot unmarshal number into Go struct field ConfigMap.data of type string`."""


def qualified(*, group: str, plural: str) -> str:
    """`jobs.batch.volcano.sh`, or the bare plural in the core group: the name of a resource in messages."""
    return f"{plural}.{group}" if group else plural


def _object_details(*, group: str, plural: str, name: str) -> Json:
    details: Json = {"name": name, "group": group, "kind": plural}
    return {key: value for key, value in details.items() if value}


def not_found(*, group: str, plural: str, name: str) -> StatusError:
    return StatusError(
        404,
        "NotFound",
        f'{qualified(group=group, plural=plural)} "{name}" not found',
        _object_details(group=group, plural=plural, name=name),
    )


def already_exists(*, group: str, plural: str, name: str) -> StatusError:
    return StatusError(
        409,
        "AlreadyExists",
        f'{qualified(group=group, plural=plural)} "{name}" already exists',
        _object_details(group=group, plural=plural, name=name),
    )


def conflict(*, group: str, plural: str, name: str, message: str) -> StatusError:
    return StatusError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {qualified(group=group, plural=plural)} "{name}": {message}',
        _object_details(group=group, plural=plural, name=name),
    )


def invalid(*, group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """422: `Job.batch.volcano.sh "x" is invalid: …`, one cause for each error."""
    texts = list(dict.fromkeys(map(str, errors)))
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = _object_details(group=group, plural=kind, name=name)
    details["causes"] = [{"reason": e.reason, "message": e.message, "field": e.field} for e in errors]
    return StatusError(422, "Invalid", f'{qualified(group=group, plural=kind)} "{name}" is invalid: {joined}', details)


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def internal(message: str) -> StatusError:
    """500 for an internal error."""
    details = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details)


def forbidden(*, group: str, plural: str, name: str, message: str) -> StatusError:
    return StatusError(
        403,
        "Forbidden",
        f'{qualified(group=group, plural=plural)} "{name}" is forbidden: {message}',
        _object_details(group=group, plural=plural, name=name),
    )


def go_value(value: Any) -> str:
    """A value as Kubernetes prints it in a field error: strings quoted, null for none, the rest as JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def invalid_value(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(reason="FieldValueInvalid", field=path, message=f"Invalid value: {go_value(value)}: {detail}")


def required(path: str, detail: str = "") -> FieldError:
    message = f"Required value: {detail}" if detail else "Required value"
    return FieldError(reason="FieldValueRequired", field=path, message=message)


def forbidden_field(path: str, detail: str) -> FieldError:
    return FieldError(reason="FieldValueForbidden", field=path, message=f"Forbidden: {detail}")


def not_supported(path: str, value: Any, allowed: Sequence[str]) -> FieldError:
    names = ", ".join(f'"{name}"' for name in allowed)
    message = f"Unsupported value: {go_value(value)}: supported values: {names}"
    return FieldError(reason="FieldValueNotSupported", field=path, message=message)


def too_many_bytes(path: str, maximum: int) -> FieldError:
    message = f"Too long: may not be more than {maximum} bytes"
    return FieldError(reason="FieldValueTooLong", field=path, message=message)


def unknown_route() -> StatusError:
    """404 for a path below a served group version that names no resource."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {"": None})


def method_not_allowed() -> StatusError:
    return StatusError(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {"": None}
    )


def unsupported_verb(*, group: str, plural: str, verb: str) -> StatusError:
    """405 for a verb that a custom resource doesn't support."""
    message = f'{verb} is not supported on resources of kind "{qualified(group=group, plural=plural)}"'
    return StatusError(405, "MethodNotAllowed", message, {"group": group, "kind": plural})


def entity_too_large(detail: str) -> StatusError:
    """413 for a request, or the object that results from it, beyond a limit."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {detail}")


def unprocessable() -> StatusError:
    """422 without a cause: a JSON patch that can't be applied."""
    return StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {"": None})


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    return StatusError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted),
    )
