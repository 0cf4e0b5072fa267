"""Reviews: the user of a request, its permissions, the user of a token. Created, answered and never stored.

Local mode has one account, which has all permissions; other users, which it may impersonate, have none. Roles and
bindings are stored for the tools that write them and have no effect here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vcbatch.api import field_errors
from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.access import ADMINISTRATORS, User
from vcbatch.local.apiserver.apierrors import FieldError, StatusError, bad_request, invalid
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.registry import Handler, HandlerRequest, Json, Reply, RequestContext, Served
from vcbatch.local.apiserver.tables import DEFAULT_COLUMNS
from vcbatch.local.apiserver.tokens import ISSUER, ServiceAccountTokens, TokenRefused

_AUTHORIZATION, _AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"

TokenCheck = Callable[[str], User | None]
"""Returns the user of a bearer token; None for an invalid one."""


def _review(group: str, plural: str, kind: str, *, namespaced: bool = False) -> Resource:
    return Resource(group=group, version="v1", plural=plural, kind=kind, namespaced=namespaced)


def _allowed(groups: Sequence[str]) -> bool:
    return ADMINISTRATORS in groups


def _answer(body: Json, resource: Resource, status: Json) -> Reply:
    answer: Json = {"kind": resource.kind, "apiVersion": resource.api_version}
    answer["metadata"] = body.get("metadata") or {}
    if "spec" in body:
        answer["spec"] = body["spec"]
    answer["status"] = status
    return Reply(body=answer, code=201)


def _paths_shown(attributes: Json) -> Json:
    """The internal form of NonResourceAttributes, whose fields have no JSON names."""
    return {"Path": attributes.get("path", ""), "Verb": attributes.get("verb", "")}


def _attribute_errors(spec: Json) -> list[FieldError]:
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        return [field_errors.invalid("spec.nonResourceAttributes", _paths_shown(other), detail)]
    if resource is None and other is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [field_errors.invalid("spec.resourceAttributes", None, detail)]
    return []


def _refuse(found: Sequence[FieldError]) -> None:
    if found:
        raise invalid(group=_AUTHORIZATION, kind="", name="", errors=found)


async def _self_access(request: HandlerRequest) -> Reply:
    body = request.body or {}
    spec = body.setdefault("spec", {})
    _refuse(_attribute_errors(spec))
    return _answer(body, request.served.resource, {"allowed": _allowed(request.ctx.groups)})


async def _access(request: HandlerRequest) -> Reply:
    body = request.body or {}
    spec = body.setdefault("spec", {})
    found = _attribute_errors(spec)
    if not spec.get("user") and not spec.get("groups"):
        detail = "at least one of user or group must be specified"
        found.append(field_errors.invalid("spec.user", spec.get("user", ""), detail))
    namespace = request.ctx.namespace
    if request.served.resource.namespaced:
        attributes, paths = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if attributes is not None and attributes.get("namespace", "") != namespace:
            asked, detail = attributes.get("namespace", ""), "must match metadata.namespace"
            found.append(field_errors.invalid("spec.resourceAttributes.namespace", asked, detail))
        if paths is not None:
            found.append(field_errors.invalid("spec.nonResourceAttributes", _paths_shown(paths), _NO_PATHS))
    _refuse(found)
    return _answer(body, request.served.resource, {"allowed": _allowed(spec.get("groups") or ())})


_NO_PATHS = "disallowed on this kind of request"


async def _rules(request: HandlerRequest) -> Reply:
    body = request.body or {}
    spec = body.setdefault("spec", {})
    if not spec.get("namespace"):
        raise bad_request("no namespace on request")
    rules: list[Any] = []
    paths: list[Any] = []
    if _allowed(request.ctx.groups):
        rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        paths = [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
    status = {"resourceRules": rules, "nonResourceRules": paths, "incomplete": False}
    return _answer(body, request.served.resource, status)


async def _self_subject(request: HandlerRequest) -> Reply:
    body = request.body or {}
    moment = request.operations.now().replace(microsecond=0).isoformat().replace("+00:00", "Z")
    body["metadata"] = {**(body.get("metadata") or {}), "creationTimestamp": moment}
    ctx = request.ctx
    user = User(name=ctx.user, groups=ctx.groups, uid=ctx.user_uid, extra=ctx.user_extra)
    return _answer(body, request.served.resource, {"userInfo": _user_info(user)})


def _token_handler(check: TokenCheck, tokens: ServiceAccountTokens) -> Handler:
    async def handle(request: HandlerRequest) -> Reply:
        body = request.body or {}
        token = body.setdefault("spec", {}).get("token", "")
        if not token:
            raise StatusError(400, "BadRequest", "token is required for TokenReview in authentication")
        user = check(token)
        if user is not None:
            return _answer(body, request.served.resource, {"authenticated": True, "user": _user_info(user)})
        audiences = body["spec"].get("audiences") or (ISSUER,)
        try:
            verified = tokens.verify(
                token, audiences=audiences, now=request.operations.now(), lookup=request.ctx.lookup
            )
        except TokenRefused as error:
            return _answer(body, request.served.resource, {"user": {}, "error": str(error)})
        status = {"authenticated": True, "user": _user_info(verified.user), "audiences": list(verified.audiences)}
        return _answer(body, request.served.resource, status)

    return handle


def _user_info(user: User) -> Json:
    info: Json = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": user.extra}
    return {key: value for key, value in info.items() if value or key in ("username", "groups")}


class _ReviewStrategy(BuiltIn):
    """Reviews have no metadata of their own, so nothing is defaulted."""

    def default(self, obj: Json, old: Json | None, ctx: RequestContext) -> None:
        return None


def served(token_user: TokenCheck, tokens: ServiceAccountTokens) -> list[Served]:
    """The review kinds. `token_user` returns the user of a bearer token that isn't one of `tokens`."""
    kinds: list[tuple[Resource, Handler]] = [
        (_review(_AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview"), _self_subject),
        (_review(_AUTHENTICATION, "tokenreviews", "TokenReview"), _token_handler(token_user, tokens)),
        (
            _review(_AUTHORIZATION, "localsubjectaccessreviews", "LocalSubjectAccessReview", namespaced=True),
            _access,
        ),
        (_review(_AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview"), _self_access),
        (_review(_AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview"), _rules),
        (_review(_AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview"), _access),
    ]
    return [
        Served(
            resource=resource,
            singular=resource.kind.lower(),
            strategy=_ReviewStrategy(type_name=resource.kind),
            columns=DEFAULT_COLUMNS,
            verbs=("create",),
            handlers={"": handler},
        )
        for resource, handler in kinds
    ]
