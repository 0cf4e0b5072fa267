"""Handles one request: routes, verbs, media types. Independent of sockets."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from vcbatch.api.name_rules import path_segment
from vcbatch.hosting.guards import SESSION_STALL_SECONDS
from vcbatch.hosting.health import Health
from vcbatch.interfaces.api import PatchKind
from vcbatch.local.apiserver.access import User, authorize, forbidden_path
from vcbatch.local.apiserver.apierrors import (
    StatusError,
    bad_request,
    forbidden_field,
    invalid,
    method_not_allowed,
    not_found,
    required,
    unknown_route,
    unsupported_verb,
)
from vcbatch.local.apiserver.decoding import Decoder
from vcbatch.local.apiserver.deleting import DeleteOptions, Deleter, parse_delete_options
from vcbatch.local.apiserver.engine import Engine
from vcbatch.local.apiserver.healthz import health_response
from vcbatch.local.apiserver.kept_logs import is_kept_logs, kept_logs_response
from vcbatch.local.apiserver.list_options import ListOptions, parse_list_options
from vcbatch.local.apiserver.offload import LARGE, LARGE_YAML
from vcbatch.local.apiserver.operations import StoreOperations
from vcbatch.local.apiserver.patch.transform import Patch, parse_patch, patch_kind
from vcbatch.local.apiserver.reading import Page, Reader
from vcbatch.local.apiserver.record import Record
from vcbatch.local.apiserver.registry import Documents, HandlerRequest, PodStreams, Reply, RequestContext, Served
from vcbatch.local.apiserver.request import (
    JSON_TYPE,
    YAML_TYPE,
    Accepted,
    Body,
    Target,
    WriteOptions,
    decode_body,
    decode_configuration,
    error_type,
    first,
    flag,
    negotiate,
    parse_path,
    write_options,
)
from vcbatch.local.apiserver.response import (
    EventEncoder,
    Response,
    encode,
    error_event,
    error_response,
    json_response,
    list_kind,
    list_response,
    object_response,
    page_not_found,
    warning_headers,
)
from vcbatch.local.apiserver.scale import read_scale, write_scale
from vcbatch.local.apiserver.writing import Writer
from vcbatch.local.kubelet.kept_logs import KeptLogs

Json = dict[str, Any]
T = TypeVar("T")

log = logging.getLogger(__name__)

_DELETES_IN_A_ROW = 50
_OPTION_KINDS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str
    query: Mapping[str, Sequence[str]]
    headers: Mapping[str, str]
    """Lower-case names."""
    body: bytes
    user: User
    scope: Mapping[str, Any] | None = None
    receive: Callable[[], Awaitable[Any]] | None = None
    send: Callable[[Any], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A request to a served resource, with everything that was parsed from it."""

    request: Request
    target: Target
    entry: Served
    verb: str
    namespace: str | None
    options: WriteOptions
    warnings: list[str] = field(default_factory=list[str])

    @property
    def name(self) -> str:
        return self.target.name


Lists = Callable[[str, Mapping[str, Sequence[str]]], Awaitable[Json]]
"""Answers a list of a namespace ("" for all), with the parameters of its query. Raises `StatusError`."""


class _NoPage(Exception):
    """A path that a real server's router doesn't have."""


class Handler:
    """Answers requests from an `Engine`. `documents` serve discovery and OpenAPI; `protobuf` decodes such bodies;
    /readyz fails while a task isn't healthy by `health`."""

    def __init__(
        self,
        engine: Engine,
        *,
        documents: Sequence[Documents] = (),
        protobuf: Callable[[bytes], Json] | None = None,
        health: Health | None = None,
    ) -> None:
        self._health = health
        self.kubelet: PodStreams | None = None
        self.kept_logs: KeptLogs | None = None
        self.lists: dict[tuple[str, str, str], Lists] = {}
        """Group, version and plural -> what answers lists of it; no objects are stored there."""
        self.engine = engine
        self.reader = Reader(engine)
        self.writer = Writer(engine)
        self.deleter = Deleter(engine, self.writer.store_change)
        self.operations = StoreOperations(engine, self.reader, self.writer, self.deleter)
        self._decoder = Decoder(engine.served)
        self._documents = documents
        self._protobuf = protobuf

    async def handle(self, request: Request) -> Response | None:
        """The response; None where a handler has answered on the ASGI channel itself. Never raises for an invalid
        request; an internal error becomes a 500 for this request only."""
        try:
            return await self._route(request)
        except StatusError as error:
            return error_response(error, media_type=self._error_form(request))
        except Exception:
            log.exception("a request failed: %s %s", request.method, request.path)
            return error_response(StatusError(500, "InternalError", "Internal error occurred: see the server's log"))

    @staticmethod
    def _error_form(request: Request) -> str:
        return error_type(request.headers.get("accept", ""))

    async def _route(self, request: Request) -> Response | None:
        if "/watch/" in request.path:
            request = _as_list(request)
        target = parse_path(request.path)
        if is_kept_logs(request.path):
            return await kept_logs_response(
                self.kept_logs, request.method, request.path, request.query, request.user, self.engine.clock
            )
        if target is None:
            return self._document(request)
        entry = self.engine.served.at(target.group, target.version, target.plural)
        if entry is None:
            authorize(request.user, target, _verb_of(request, target) or request.method.lower())
            lists = self.lists.get((target.group, target.version, target.plural))
            if lists is not None and not target.name:
                if request.method != "GET":
                    raise method_not_allowed()
                return json_response(await lists(target.namespace or "", request.query))
            return self._nothing_there(target)
        try:
            call = self._call(request, target, entry)
        except _NoPage:
            return page_not_found()
        authorize(request.user, target, call.verb)
        self._check_name(target.name)
        if entry.deprecation:
            call.warnings.append(entry.deprecation)
        try:
            response = await self._serve(call)
        except StatusError as error:
            # An error response has the warnings that came before it.
            response = error_response(error, media_type=self._error_form(request))
        if response is not None and call.warnings:
            response = replace(response, headers=[*response.headers, *warning_headers(call.warnings)])
        return response

    def _document(self, request: Request) -> Response:
        if (answer := health_response(request.path, request.query, request.user, self._health)) is not None:
            return answer
        if not request.user.discovers and request.path != "/version":
            raise forbidden_path(request.user, request.method, request.path)
        for document in self._documents:
            reply = document(self.engine.served.all, request.path, request.headers, request.query)
            if reply is not None:
                if request.method not in (("GET", "HEAD") if request.path.startswith("/apis") else ("GET",)):
                    raise method_not_allowed()
                return _from_reply(reply)
        if not request.user.administrator:
            raise forbidden_path(request.user, request.method, request.path)
        if request.method != "GET":
            return page_not_found()
        parts = request.path.strip("/").split("/")
        if parts[0] == "api" and len(parts) == 2:
            raise unknown_route()
        if parts[0] == "apis" and len(parts) == 3 and parts[1] in self.engine.served.built_in_groups:
            raise unknown_route()
        return page_not_found()

    @staticmethod
    def _check_name(name: str) -> None:
        for error in path_segment(name) if name else ():
            raise bad_request(f'Name parameter invalid: "{name}": {error}')

    def _nothing_there(self, target: Target) -> Response:
        if target.group in self.engine.served.built_in_groups or not target.group:
            raise unknown_route()
        return page_not_found()

    def _call(self, request: Request, target: Target, entry: Served) -> _Call:
        verb = _verb(request, target)
        if not entry.resource.namespaced and target.namespace:
            if entry.generated:
                raise _NoPage
            raise unknown_route()
        if entry.resource.namespaced and not target.namespace:
            if target.name:
                raise unknown_route()
            if verb not in ("list", "watch"):
                if entry.generated:
                    raise _NoPage
                raise method_not_allowed()
        options = WriteOptions()
        if verb in _OPTION_KINDS:
            options = write_options(request.query, _OPTION_KINDS[verb])
        return _Call(
            request=request,
            target=target,
            entry=entry,
            verb=verb,
            namespace=target.namespace or None,
            options=options,
        )

    def _context(self, call: _Call) -> RequestContext:
        user = call.request.user
        return RequestContext(
            user=user.name,
            groups=user.groups,
            user_uid=user.uid,
            user_extra=user.extra,
            now=self.engine.now(),
            namespace=call.namespace,
            subresource=call.target.subresource,
            dry_run=call.options.dry_run,
            field_validation=call.options.field_validation,
            field_manager=call.options.field_manager or _default_manager(call.request),
            lookup=self.engine.lookup,
            listed=self.engine.listed,
            used=self.engine.ledger.used,
            options=call.options.shown(),
            warnings=call.warnings,
        )

    # -- verbs ------------------------------------------------------------------------------------------------------

    async def _serve(self, call: _Call) -> Response | None:
        if call.target.subresource:
            return await self._serve_subresource(call)
        entry = call.entry
        if call.verb not in entry.verbs:
            if call.name and entry.verbs == ("create",):
                raise unknown_route()
            raise method_not_allowed()
        if "" in entry.handlers:
            return await self._delegate(call, entry.handlers[""])
        match call.verb:
            case "get":
                return await self._get(call)
            case "list":
                return await self._list(call)
            case "watch":
                return self._watch(call)
            case "create":
                return await self._create(call)
            case "update" | "patch":
                return await self._update(call)
            case "delete":
                return await self._delete(call)
            case _:
                return await self._delete_collection(call)

    async def _serve_subresource(self, call: _Call) -> Response | None:
        entry, name = call.entry, call.target.subresource
        verbs = entry.subresources.get(name)
        if verbs is None:
            if entry.generated:
                self.reader.get(entry, call.namespace, call.name)
                raise not_found(group=entry.resource.group, plural=entry.resource.plural, name=call.name)
            raise unknown_route()
        if call.verb not in verbs:
            if entry.generated:
                raise unsupported_verb(group=entry.resource.group, plural=entry.resource.plural, verb=call.verb)
            raise method_not_allowed()
        if name in entry.handlers:
            return await self._delegate(call, entry.handlers[name])
        if name == "scale":
            return await self._scale(call)
        if call.verb == "get":
            return await self._get(call)
        if call.verb in ("update", "patch"):
            return await self._update(call)
        raise method_not_allowed()

    def _accepted(self, call: _Call, *, listing: bool = False) -> Accepted:
        accept = call.request.headers.get("accept", "")
        return negotiate(accept, listing=listing, kind=_internal_kind(call.entry, listing=listing))

    async def _body(self, call: _Call) -> Body:
        request = call.request
        return await self._at_length(
            request,
            lambda: decode_body(
                request.body,
                request.headers.get("content-type", ""),
                kind=call.entry.resource.kind,
                custom=call.entry.generated,
                protobuf=self._protobuf,
            ),
        )

    async def _at_length(self, request: Request, work: Callable[[], T]) -> T:
        """The result of `work` on the request's body; off the event loop where the body is large."""
        limit = LARGE_YAML if "yaml" in request.headers.get("content-type", "") else LARGE
        return work() if len(request.body) < limit else await self.engine.offload.run(work)

    async def _shown(self, size: int, accepted: Accepted, query: Mapping[str, Any], work: Callable[[], T]) -> T:
        """The result of `work`, which converts objects of `size` bytes for the client; off the event loop where they
        are large."""
        plain = not accepted.transform and accepted.media_type == JSON_TYPE and not flag(query, "pretty")
        limit = LARGE_YAML if accepted.media_type == YAML_TYPE else LARGE
        return work() if plain or size < limit else await self.engine.offload.run(work)

    async def _answer(self, call: _Call, record: Record, accepted: Accepted, code: int = 200) -> Response:
        query, now = call.request.query, self.engine.now()
        return await self._shown(
            len(record.body),
            accepted,
            query,
            lambda: object_response(call.entry, record, accepted, code=code, now=now, query=query),
        )

    async def _listed(self, call: _Call, page: Page, accepted: Accepted, query: Mapping[str, Any]) -> Response:
        now, size = self.engine.now(), sum(len(record.body) for record in page.records)
        return await self._shown(
            size, accepted, query, lambda: list_response(call.entry, page, accepted, now=now, query=query)
        )

    async def _get(self, call: _Call) -> Response:
        accepted = self._accepted(call)
        version = first(call.request.query, "resourceVersion")
        record = self.reader.get(call.entry, call.namespace, call.name, version=version)
        return await self._answer(call, record, accepted)

    def _list_options(self, call: _Call) -> ListOptions:
        return parse_list_options(call.entry, call.namespace, call.request.query)

    async def _list(self, call: _Call) -> Response:
        accepted = self._accepted(call, listing=True)
        page = self.reader.list(call.entry, self._list_options(call))
        return await self._listed(call, page, accepted, call.request.query)

    def _watch(self, call: _Call) -> Response:
        accept, kind = call.request.headers.get("accept", ""), _internal_kind(call.entry, listing=True)
        accepted = negotiate(accept, listing=True, kind=kind, watching=True)
        watch = self.reader.watch(call.entry, replace(self._list_options(call), watch=True))
        encoder = EventEncoder(call.entry, accepted, self.engine.now, call.request.query)

        async def stream() -> AsyncIterator[bytes]:
            try:
                async for events in watch:
                    yield encoder.encode(events)
            except StatusError as error:
                yield error_event(error)

        return Response(body=stream())

    async def _create(self, call: _Call) -> Response:
        accepted = self._accepted(call)
        record = await self.writer.create(call.entry, await self._body(call), self._context(call))
        await self.engine.store.settled()
        return await self._answer(call, record, accepted, 201)

    async def _patch(self, call: _Call) -> Patch:
        """The patch; a missing object is reported before an invalid patch of it."""
        kind = patch_kind(_content_type(call.request), call.entry)
        if "force" in call.request.query:
            errors = [forbidden_field("force", "may not be specified for non-apply patch")]
            raise invalid(group="meta.k8s.io", kind="PatchOptions", name="", errors=errors)
        self.engine.find(call.entry, call.namespace, call.name)
        return await self._at_length(call.request, lambda: parse_patch(kind, call.request.body))

    async def _update(self, call: _Call) -> Response:
        accepted = self._accepted(call)
        ctx, created = self._context(call), False
        if call.verb == "patch" and patch_kind(_content_type(call.request), call.entry) is PatchKind.APPLY:
            record, created = await self._apply(call, ctx)
        elif call.verb == "patch":
            record = await self.writer.patch(call.entry, call.name, await self._patch(call), ctx)
        else:
            record, created = await self.writer.update(call.entry, call.name, await self._body(call), ctx)
        await self.engine.store.settled()
        return await self._answer(call, record, accepted, 201 if created else 200)

    async def _apply(self, call: _Call, ctx: RequestContext) -> tuple[Record, bool]:
        """Server-side apply; returns the stored object and whether it was created."""
        if not call.options.field_manager:
            errors = [required("fieldManager", "is required for apply patch")]
            raise invalid(group="meta.k8s.io", kind="PatchOptions", name="", errors=errors)
        body = await self._at_length(call.request, lambda: decode_configuration(call.request.body))
        return await self.writer.apply(call.entry, call.name, body, ctx, force=flag(call.request.query, "force"))

    async def _delete_options(self, call: _Call) -> DeleteOptions:
        request, body = call.request, None
        if request.body:
            media = request.headers.get("content-type", "")
            decoded = await self._at_length(
                request, lambda: decode_body(request.body, media, kind="", custom=False, protobuf=self._protobuf)
            )
            body = decoded.value
        return parse_delete_options(body, request.query)

    async def _delete(self, call: _Call) -> Response:
        accepted = self._accepted(call)
        options = await self._delete_options(call)
        ctx = replace(self._context(call), dry_run=options.dry_run)
        record, gone = await self.deleter.delete(call.entry, call.name, options, ctx)
        await self.engine.store.settled()
        if gone and not call.entry.returns_deleted:
            return json_response(_deleted(call.entry, record), accepted=accepted)
        return await self._answer(call, record, replace(accepted, transform=""))

    async def _delete_collection(self, call: _Call) -> Response:
        accepted = self._accepted(call, listing=True)
        options = await self._delete_options(call)
        ctx = replace(self._context(call), dry_run=options.dry_run)
        page = self.reader.list(call.entry, self._list_options(call))
        for number, record in enumerate(page.records):
            if number % _DELETES_IN_A_ROW == _DELETES_IN_A_ROW - 1:
                await asyncio.sleep(0)  # other requests are served between
            try:
                await self.deleter.delete(
                    call.entry, record.name, options, replace(ctx, namespace=record.namespace or None), named=False
                )
            except StatusError as error:
                if error.code != 404:
                    raise
        await self.engine.store.settled()
        return await self._listed(call, page, replace(accepted, transform=""), {})

    # -- subresources -----------------------------------------------------------------------------------------------

    async def _scale(self, call: _Call) -> Response:
        entry = call.entry
        if call.verb == "get":
            record = self.reader.get(entry, call.namespace, call.name)
            return json_response(read_scale(entry, self.engine.decode(entry, record)))
        patch, body = None, None
        if call.verb == "patch":
            patch = await self._patch(call)
        else:
            body = (await self._body(call)).value
        ctx = replace(self._context(call), field_validation="Ignore")
        record = await write_scale(self.engine, self.writer, entry, call.name, patch=patch, body=body, ctx=ctx)
        await self.engine.store.settled()
        return json_response(read_scale(entry, self.engine.decode(entry, record)))

    async def _delegate(self, call: _Call, handler: Any) -> Response | None:
        request = call.request
        body: Body | None = None
        if request.body and call.verb in ("create", "update", "delete"):
            body = await self._body(call)
        ctx = self._context(call)
        if body is not None and handler is call.entry.handlers.get(""):
            self._decoder.decode(call.entry, body, ctx)
        elif body is not None and ctx.field_validation == "Warn":
            call.warnings.extend(body.errors)
        if body is not None and call.verb == "create" and call.target.subresource:
            body = await self._admitted(call, body, ctx)
        self.engine.store.flush()
        reply = await handler(
            HandlerRequest(
                served=call.entry,
                method=request.method,
                verb=call.verb,
                name=call.name,
                query=request.query,
                headers=request.headers,
                body=body.value if body else None,
                ctx=ctx,
                operations=self.operations,
                kubelet=self.kubelet,
                scope=request.scope,
                receive=request.receive,
                send=request.send,
            )
        )
        if reply is not None and isinstance(reply.body, dict):
            return json_response(reply.body, code=reply.code, accepted=Accepted(media_type=self._error_form(request)))
        return None if reply is None else _from_reply(reply)

    async def _admitted(self, call: _Call, body: Body, ctx: RequestContext) -> Body:
        """The body of a subresource, such as a Binding, after admission."""
        engine, entry = self.engine, call.entry
        group, version, kind = entry.subresource_kinds.get(call.target.subresource, ("", "v1", entry.resource.kind))
        obj: Json = {"kind": kind, "apiVersion": f"{group}/{version}".removeprefix("/"), **body.value}
        self._decoder.decode_subresource(obj, group=group, version=version, kind=kind)
        obj["metadata"] = {"name": call.name, "namespace": call.namespace, **(obj.get("metadata") or {})}
        changed = await engine.mutate("CREATE", entry, obj, None, ctx) or obj
        await engine.validate("CREATE", entry, changed, None, ctx)
        return replace(body, value=changed)


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "")


def _default_manager(request: Request) -> str:
    """The program's name in its User-Agent, which Kubernetes uses as the manager where a client sets none."""
    return request.headers.get("user-agent", "").partition("/")[0][:128] or "unknown"


def _as_list(request: Request) -> Request:
    """A request to the old paths of watches (`/api/v1/watch/…`) as one for a list with `watch`."""
    old = re.fullmatch(r"(/api/v1|/apis/[^/]+/[^/]+)/watch(/.+)", request.path)
    if request.method != "GET" or not old:
        return request
    target = parse_path(old[1] + old[2])
    path, query = old[1] + old[2], {**request.query, "watch": ["1"]}
    if target and target.name:
        path = path.removesuffix(f"/{target.name}")
        query["fieldSelector"] = [f"metadata.name={target.name}"]
    return replace(request, path=path, query=query)


def _internal_kind(entry: Served, *, listing: bool) -> str:
    """The Go type of a real server's response."""
    if entry.generated:
        return "unstructured.UnstructuredList" if listing else "unstructured.Unstructured"
    group = (entry.resource.group or "core").partition(".")[0]
    return f"{group}.{list_kind(entry) if listing else entry.resource.kind}"


def _verb_of(request: Request, target: Target) -> str:
    """The verb by path and method, whether or not the object exists; "" for none."""
    try:
        return _verb(request, target)
    except StatusError:
        return ""


def _verb(request: Request, target: Target) -> str:
    verb = _VERBS.get(request.method)
    if verb is None:
        raise method_not_allowed()
    if target.name:
        if verb == "create" and not target.subresource:
            raise method_not_allowed()
        return verb
    if verb == "get":
        return "watch" if flag(request.query, "watch") else "list"
    if verb == "delete":
        return "deletecollection"
    if verb != "create":
        raise method_not_allowed()
    return verb


def _deleted(entry: Served, record: Record) -> Json:
    resource = entry.resource
    details = {"name": record.name, "group": resource.group, "kind": resource.plural, "uid": record.uid}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


def _from_reply(reply: Reply) -> Response:
    body = encode(reply.body) if isinstance(reply.body, dict) else reply.body
    return Response(
        code=reply.code,
        body=body,
        content_type=reply.content_type,
        headers=list(reply.headers.items()),
        stall_seconds=SESSION_STALL_SECONDS,  # of the replies only logs are streams
    )
