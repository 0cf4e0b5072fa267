"""AdmissionReviews: writing requests and parsing responses.

Source: apiserver `pkg/admission/plugin/webhook/request` and `pkg/admission/plugin/webhook/errors`.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any

from vcbatch.api.field_errors import go_quote
from vcbatch.local.apiserver.admission.request import AdmissionRequest, Answer, Kind
from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.gojson import kind_of, syntax_error
from vcbatch.local.apiserver.registry import Served

Json = dict[str, Any]

GROUP = "admission.k8s.io"
KIND = "AdmissionReview"
_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
_LOWEST_REFUSAL = 400


class InvalidAnswer(Exception):
    """An invalid response; the message has the reason."""


# -- requests -------------------------------------------------------------------------------------------------------


def review_request(request: AdmissionRequest, uid: str, entry: Served, obj: Json | None, old: Json | None) -> Json:
    """`request` of a review: `obj` and `old` are the objects in the version of `entry`."""
    resource, asked = request.resource, entry.resource
    kind = request.kind
    if request.kind == _own_kind(request):
        kind = (asked.group, asked.version, asked.kind)
    shown: Json = {
        "uid": uid,
        "kind": _kind(kind),
        "resource": _resource(asked.group, asked.version, asked.plural),
    }
    if request.subresource:
        shown["subResource"] = request.subresource
    shown["requestKind"] = _kind(request.kind)
    shown["requestResource"] = _resource(resource.group, resource.version, resource.plural)
    if request.subresource:
        shown["requestSubResource"] = request.subresource
    if request.name:
        shown["name"] = request.name
    if request.namespace:
        shown["namespace"] = request.namespace
    ctx = request.ctx
    shown["operation"] = request.operation
    shown["userInfo"] = {"username": ctx.user, "groups": list(ctx.groups)}
    shown["object"] = obj
    shown["oldObject"] = old
    shown["dryRun"] = ctx.dry_run
    shown["options"] = _options(request)
    return shown


def _own_kind(request: AdmissionRequest) -> Kind:
    resource = request.resource
    return (resource.group, resource.version, resource.kind)


def _kind(kind: Kind) -> Json:
    group, version, name = kind
    return {"group": group, "version": version, "kind": name}


def _resource(group: str, version: str, plural: str) -> Json:
    return {"group": group, "version": version, "resource": plural}


def _options(request: AdmissionRequest) -> Json | None:
    kind = _OPTIONS.get(request.operation)
    if kind is None:
        return None
    return {"kind": kind, "apiVersion": "meta.k8s.io/v1", **request.ctx.options}


def review(request: Json, version: str) -> Json:
    """The review document with a `request`."""
    return {"kind": KIND, "apiVersion": f"{GROUP}/{version}", "request": request}


# -- responses ------------------------------------------------------------------------------------------------------


def read_answer(document: Any, *, uid: str, version: str, mutating: bool) -> Answer:
    """The response in a decoded document. Raises `InvalidAnswer` with a real API server's message."""
    if wrong := _undecodable(document, version):
        raise InvalidAnswer(f"failed to call webhook: {wrong}")
    response = document.get("response")
    try:
        if response is None:
            raise _Wrong("webhook response was absent")
        if version == "v1":
            _check_identity(document, response, uid)
        return Answer(
            allowed=bool(response.get("allowed")),
            status=response.get("status") or {},
            patch=_patch(response, version) if mutating else _no_patch(response),
            warnings=[str(text) for text in response.get("warnings") or ()],
        )
    except _Wrong as error:
        raise InvalidAnswer(f"received invalid webhook response: {error}") from error


class _Wrong(Exception):
    """A review that could be parsed and has an invalid value."""


_UNTYPED = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_FIELDS = {
    "allowed": (bool, "bool"),
    "status": (dict, "v1.Status"),
    "warnings": (list, "[]string"),
    "patch": (str, "[]uint8"),
    "patchType": (str, "v1.PatchType"),
    "uid": (str, "types.UID"),
}
_STATUS_FIELDS = {
    "message": (str, "string"),
    "reason": (str, "v1.StatusReason"),
    "code": (int, "int32"),
    "details": (dict, "v1.StatusDetails"),
    "metadata": (dict, "v1.ListMeta"),
}


def _undecodable(document: Any, version: str) -> str:
    """Why a document can't be parsed as an AdmissionReview of the version, or ""."""
    if not isinstance(document, dict):
        wrong = f"json: cannot unmarshal {kind_of(document)} into Go value of type {_UNTYPED}"
        return f"couldn't get version/kind; json parse error: {wrong}"
    kind, given = document.get("kind") or "", document.get("apiVersion") or ""
    if kind and given and kind != KIND:
        return f'no kind "{kind}" is registered for version "{given}" in scheme "pkg/runtime/scheme.go:111"'
    if kind and given and given != f"{GROUP}/{version}":
        other = str(given).rpartition("/")[2]
        return f"converting ({other}.{KIND}) to ({version}.{KIND}): unknown conversion"
    response = document.get("response")
    if response is None:
        return ""
    if not isinstance(response, dict):
        return _wrong_type(response, "AdmissionReview.response", f"{version}.AdmissionResponse")
    for key, (wanted, name) in _FIELDS.items():
        if response.get(key) is not None and not isinstance(response[key], wanted):
            return _wrong_type(response[key], f"AdmissionResponse.response.{key}", name)
    status = response.get("status") or {}
    for key, (wanted, name) in _STATUS_FIELDS.items():
        if status.get(key) is not None and not isinstance(status[key], wanted):
            return _wrong_type(status[key], f"Status.response.status.{key}", name)
    return ""


def _wrong_type(value: Any, field: str, wanted: str) -> str:
    return f"json: cannot unmarshal {kind_of(value)} into Go struct field {field} of type {wanted}"


def _check_identity(document: Json, response: Json, uid: str) -> None:
    if response.get("uid", "") != uid:
        raise _Wrong(f"expected response.uid={go_quote(uid)}, got {go_quote(response.get('uid') or '')}")
    given = f"{document.get('apiVersion') or '/'}, Kind={document.get('kind') or ''}"
    if given != f"{GROUP}/v1, Kind={KIND}":
        raise _Wrong(f"expected webhook response of {GROUP}/v1, Kind={KIND}, got {given}")


def _no_patch(response: Json) -> Sequence[Json]:
    if response.get("patch"):
        raise _Wrong("validating webhook may not return response.patch")
    if response.get("patchType") is not None:
        raise _Wrong("validating webhook may not return response.patchType")
    return ()


def _patch(response: Json, version: str) -> Sequence[Json]:
    encoded, kind = response.get("patch"), response.get("patchType")
    if version == "v1" and encoded and kind is None:
        raise _Wrong("webhook returned response.patch but not response.patchType")
    if version == "v1" and not encoded and kind is not None:
        raise _Wrong("webhook returned response.patchType but not response.patch")
    if kind == "":
        raise _Wrong('webhook returned invalid response.patchType of ""')
    if not encoded:
        return ()
    try:
        text = base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise InvalidAnswer(f"failed to call webhook: response.patch: {error}") from error
    operations = _operations(text)
    if operations and kind not in (None, "JSONPatch"):
        raise _Wrong(f"unsupported patch type {go_quote(str(kind))}")
    return operations


def _operations(text: bytes) -> Sequence[Json]:
    head = "received undecodable patch in webhook response"
    try:
        operations = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidAnswer(f"{head}: {syntax_error(text) or error}") from error
    if not isinstance(operations, list):
        wrong = f"json: cannot unmarshal {kind_of(operations)} into Go value of type jsonpatch.Patch"
        raise InvalidAnswer(f"{head}: {wrong}")
    return operations


def refusal(webhook: str, status: Mapping[str, Any]) -> StatusError:
    """The error for the client: the webhook's status with a prefix to its message, and a code of 400 or above."""
    denied = f'admission webhook "{webhook}" denied the request'
    message, reason = str(status.get("message") or ""), str(status.get("reason") or "")
    text = f"{denied}: {message or reason}" if message or reason else f"{denied} without explanation"
    code = status.get("code")
    return StatusError(
        code if isinstance(code, int) and code >= _LOWEST_REFUSAL else _LOWEST_REFUSAL,
        reason,
        text,
        details=status.get("details") or {},
        metadata=status.get("metadata") or {},
    )
