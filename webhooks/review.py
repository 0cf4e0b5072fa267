"""AdmissionReview of `admission.k8s.io/v1`: parses requests and renders answers.

All input is bounded: nesting and number of values here, the size before.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from vcbatch.api.messages import shorten
from vcbatch.api.model import Json
from vcbatch.api.validate.errors import MOST_REPORTED, ValidationError

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"

DEEPEST: Final = 64
"""The maximum nesting. The deepest field of a pod template is about twenty levels deep."""
MOST_VALUES: Final = 50_000
"""The maximum of values, including objects and lists, of one object. It bounds the cost of rules to less than a
second."""
_MOST_WARNINGS = 20
_LONGEST_WARNING = 256  # the maximum that an API server returns


class MalformedReview(ValueError):
    """Not an AdmissionReview that can be answered; the message has the reason."""


class ResourceName(msgspec.Struct, frozen=True):
    """`request.resource`."""

    group: str = ""
    version: str = ""
    resource: str = ""

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class UserInfo(msgspec.Struct, frozen=True):
    """`request.userInfo`."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class Asked(msgspec.Struct, frozen=True, rename="camel"):
    """`request` of a review, with the fields that are read."""

    uid: str
    resource: ResourceName
    operation: str
    name: str = ""
    namespace: str = ""
    sub_resource: str = ""
    user_info: UserInfo = UserInfo()
    object: Json | None = None
    old_object: Json | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: Asked | None = None


_decoder: Final = msgspec.json.Decoder(_Review)


def parse(body: bytes) -> Asked:
    """Parse the request in the body. Raises `MalformedReview`."""
    try:
        review = _decoder.decode(body)
    except RecursionError as error:
        raise MalformedReview(f"the review is nested deeper than {DEEPEST} levels") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MalformedReview(f"the body is no {KIND}: {error}") from error
    if review.kind != KIND or review.api_version != API_VERSION:
        given = f"{review.api_version}, kind {review.kind}"[:100]
        raise MalformedReview(f"want {API_VERSION}, kind {KIND}, got {given}")
    if review.request is None:
        raise MalformedReview("the review carries no request")
    if not review.request.uid:
        raise MalformedReview("request.uid: Required value")
    for value in (review.request.object, review.request.old_object):
        _check_bounds(value)
    return review.request


def _check_bounds(value: Any) -> None:
    """Check nesting and number of values level by level, so that no nesting can exhaust the stack."""
    level, counted = [value], 0
    for _ in range(DEEPEST):
        counted += len(level)
        if counted > MOST_VALUES:
            raise MalformedReview(f"the object has more than {MOST_VALUES} values")
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        if not below:
            return
        level = below
    raise MalformedReview(f"the object is nested deeper than {DEEPEST} levels")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a request. A rejection has a `message`, and a `code` and `reason` where it isn't an ordinary one:
    Volcano sends neither, and the API server then answers the client as for any webhook that denies. `errors` name the
    fields for programs; the API server returns them to the client."""

    allowed: bool
    message: str = ""
    code: int = 0
    reason: str = ""
    errors: Sequence[ValidationError] = ()
    patch: Sequence[Json] = ()
    warnings: Sequence[str] = ()


def render(uid: str, answer: Answer) -> bytes:
    """The AdmissionReview that answers the request `uid`."""
    response: Json = {"uid": uid, "allowed": answer.allowed}
    if answer.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(answer.patch)).decode()
    if not answer.allowed:
        status: Json = {"status": "Failure", "message": answer.message}
        if answer.code:
            status |= {"code": answer.code, "reason": answer.reason}
        if answer.errors:
            status["details"] = details_of(answer.errors)
        response["status"] = status
    if answer.warnings:
        response["warnings"] = clipped(answer.warnings)
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def details_of(errors: Sequence[ValidationError]) -> Json:
    """`details` of a Status: the first errors, each as a cause."""
    causes = [
        {"reason": error.cause.value, "message": shorten(error.message), "field": shorten(error.field)}
        for error in errors[:MOST_REPORTED]
    ]
    return {"causes": causes}


def clipped(warnings: Sequence[str]) -> list[str]:
    """As many warnings, and as much of each, as an API server returns; the last has the number of those left out."""
    shown = [_clipped(warning) for warning in warnings[:_MOST_WARNINGS]]
    more = len(warnings) - _MOST_WARNINGS
    return [*shown[:-1], f"and {more + 1} more warnings"] if more > 0 else shown


def _clipped(warning: str) -> str:
    line = " ".join(warning.split())
    return line if len(line) <= _LONGEST_WARNING else f"{line[: _LONGEST_WARNING - 3]}..."
