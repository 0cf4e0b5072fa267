"""`serviceaccounts/token`. Source: kubernetes `pkg/registry/core/serviceaccount/storage/token.go`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from vcbatch.api import field_errors
from vcbatch.api.resources import NODES, PODS, SECRETS, SERVICEACCOUNTS
from vcbatch.api.timestamps import format_time
from vcbatch.local.apiserver.apierrors import DecodeError, FieldError, StatusError, bad_request, conflict, invalid
from vcbatch.local.apiserver.registry import Handler, HandlerRequest, Json, Reply
from vcbatch.local.apiserver.schema.builtin import decode
from vcbatch.local.apiserver.tables import dig
from vcbatch.local.apiserver.tokens import ISSUER, ServiceAccountTokens

KIND: Final = ("authentication.k8s.io", "v1", "TokenRequest")
_GROUP, _VERSION, _NAME = KIND
_DEFAULT_SECONDS, _FEWEST_SECONDS, _MOST_SECONDS = 3600, 600, 1 << 32


def token_handler(tokens: ServiceAccountTokens) -> Handler:
    """A handler that answers a TokenRequest with a token of the service account."""

    async def handle(request: HandlerRequest) -> Reply:
        body = _decoded(request)
        namespace, now = request.ctx.namespace or "", request.operations.now()
        metadata, spec = _metadata(body, request, namespace), body.setdefault("spec", {})
        account = request.operations.get(SERVICEACCOUNTS, namespace, request.name)
        uid: str = account["metadata"]["uid"]
        if metadata.setdefault("uid", uid) != uid:
            message = f"the UID in the token request ({metadata['uid']}) does not match the UID of the service account "
            raise conflict(group=_GROUP, plural=_NAME, name=request.name, message=f"{message}({uid})")
        metadata["creationTimestamp"] = format_time(now)
        spec["audiences"] = spec.get("audiences") or [ISSUER]
        spec.setdefault("boundObjectRef", None)
        if spec.get("expirationSeconds") is None:
            spec["expirationSeconds"] = _DEFAULT_SECONDS
        seconds: int = spec["expirationSeconds"]
        if found := _seconds_errors(seconds):
            raise invalid(group=_GROUP, kind=_NAME, name="", errors=found)
        bound = _bound(request, spec["boundObjectRef"])
        token = tokens.issue(account, audiences=spec["audiences"], seconds=seconds, now=now, bound=bound)
        body["status"] = {"token": token, "expirationTimestamp": format_time(now + timedelta(seconds=seconds))}
        return Reply(body=body, code=201)

    return handle


def _decoded(request: HandlerRequest) -> Json:
    given = request.body or {}
    body: Json = {"kind": _NAME, "apiVersion": f"{_GROUP}/{_VERSION}", **given}
    for key, want in (("kind", _NAME), ("apiVersion", f"{_GROUP}/{_VERSION}")):
        if body[key] != want:
            raise bad_request(f"the {key} in the data ({body[key]}) does not match the expected {key} ({want})")
    try:
        unknown = decode("authentication/v1.TokenRequest", body)
    except DecodeError as error:
        raise bad_request(f'{_NAME} in version "{_VERSION}" cannot be handled as a {_NAME}: {error}') from None
    if unknown and request.ctx.field_validation == "Strict":
        raise bad_request(
            f'{_NAME} in version "{_VERSION}" cannot be handled as a {_NAME}: strict decoding error: '
            f"{', '.join(unknown)}"
        )
    if request.ctx.field_validation == "Warn":
        request.ctx.warnings.extend(error for error in unknown if error not in request.ctx.warnings)
    return body


def _metadata(body: Json, request: HandlerRequest, namespace: str) -> Json:
    metadata: Json = body.setdefault("metadata", {}) or {}
    body["metadata"] = metadata
    for key, want, what in (("name", request.name, "name"), ("namespace", namespace, "namespace")):
        if (metadata.get(key) or want) != want:
            detail = f"must match the service account {what} if specified"
            errors = [field_errors.invalid(f"metadata.{key}", metadata[key], detail)]
            raise invalid(group=_GROUP, kind=_NAME, name=request.name, errors=errors)
        metadata[key] = want
    if not metadata.get("uid"):
        metadata.pop("uid", None)
    return metadata


def _seconds_errors(seconds: int) -> list[FieldError]:
    if seconds < _FEWEST_SECONDS:
        detail = "may not specify a duration less than 10 minutes"
    elif seconds > _MOST_SECONDS:
        detail = "may not specify a duration larger than 2^32 seconds"
    else:
        return []
    return [field_errors.invalid("spec.expirationSeconds", seconds, detail)]


def _bound(request: HandlerRequest, reference: Json | None) -> dict[str, Json]:
    """The object that the token is bound to, by its kind in the token, and the node of a pod."""
    if reference is None:
        return {}
    operations, namespace = request.operations, request.ctx.namespace
    kind, name = str(reference.get("kind") or ""), str(reference.get("name") or "")
    group, _, version = str(reference.get("apiVersion") or "").rpartition("/")
    found: dict[str, Json] = {}
    match kind if not group else "":
        case "Pod":
            pod = found["pod"] = operations.get(PODS, namespace, name)
            if dig(pod, "spec", "serviceAccountName") != request.name:
                raise bad_request(
                    f"cannot bind token for serviceaccount {field_errors.go_quote(request.name)} to pod running with "
                    "different serviceaccount name."
                )
            if node := dig(pod, "spec", "nodeName"):
                found["node"] = _node_of_pod(request, node)
        case "Node":
            found["node"] = operations.get(NODES, None, name)
        case "Secret":
            found["secret"] = operations.get(SECRETS, namespace, name)
        case _:
            raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    uid = reference.get("uid")
    if uid and uid != found[kind.lower()]["metadata"]["uid"]:
        message = f"the UID in the bound object reference ({uid}) does not match the UID in record. The object might "
        raise conflict(group="", plural=kind, name=name, message=f"{message}have been deleted and then recreated")
    return found


def _node_of_pod(request: HandlerRequest, name: str) -> Json:
    try:
        return request.operations.get(NODES, None, name)
    except StatusError:
        unknown: dict[str, Any] = {"name": name, "uid": ""}
        return {"metadata": unknown}
