"""The `Api` interface on the server's own verbs, without a socket: for tests, simulation, and parts of the same
process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from vcbatch.api.resources import PODS, Resource
from vcbatch.interfaces.api import ApiError, Listing, PatchKind, WatchEvent
from vcbatch.local.apiserver.access import ADMINISTRATORS, User
from vcbatch.local.apiserver.apierrors import StatusError, not_found, unsupported_media_type
from vcbatch.local.apiserver.deleting import DeleteOptions
from vcbatch.local.apiserver.engine import Engine
from vcbatch.local.apiserver.handler import Handler, Request
from vcbatch.local.apiserver.list_options import ListOptions, parse_list_options
from vcbatch.local.apiserver.patch.transform import Patch, accepted_types
from vcbatch.local.apiserver.record import Record
from vcbatch.local.apiserver.registry import RequestContext, Served
from vcbatch.local.apiserver.request import Accepted, Body
from vcbatch.local.apiserver.response import EventEncoder, encode
from vcbatch.local.apiserver.watch import Seen

T = TypeVar("T")
Json = dict[str, Any]

_decode = msgspec.json.decode
_SERVED_BY_CORE = ("", "status")


def api_error(error: StatusError) -> ApiError:
    retry_after = error.headers.get("Retry-After")
    return ApiError(
        error.code, error.reason, error.message, dict(error.details), float(retry_after) if retry_after else None
    )


class InProcessApi:
    """Implements `interfaces.Api`. Arguments are copied, and results belong to the caller."""

    def __init__(self, handler: Handler, *, user: str = "vcbatch", groups: Sequence[str] = (ADMINISTRATORS,)) -> None:
        self._handler = handler
        self._engine = handler.engine
        self._user = User(name=user, groups=groups)

    def _entry(self, resource: Resource) -> Served:
        entry = self._engine.served.at(resource.group, resource.version, resource.plural)
        if entry is None:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        return entry

    def _context(self, namespace: str | None, subresource: str = "") -> RequestContext:
        return self._engine.context(
            namespace=namespace,
            user=self._user.name,
            groups=self._user.groups,
            subresource=subresource,
            field_validation="Ignore",
        )

    @staticmethod
    def _model(entry: Served, record: Record, model: type[T]) -> T:
        if model is dict:
            return cast(T, Engine.decode(entry, record))
        return _decode(Engine.body(entry, record), type=model)

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None, model: type[T] = dict) -> T:
        entry = self._entry(resource)
        try:
            return self._model(entry, self._handler.reader.get(entry, namespace, name), model)
        except StatusError as error:
            raise api_error(error) from None

    def _options(self, entry: Served, namespace: str | None, labels: str, fields: str, **more: str) -> ListOptions:
        query = {"labelSelector": [labels], "fieldSelector": [fields], **{key: [value] for key, value in more.items()}}
        return parse_list_options(entry, namespace, {key: value for key, value in query.items() if value != [""]})

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        model: type[T] = dict,
    ) -> Listing[T]:
        entry = self._entry(resource)
        try:
            options = self._options(entry, namespace, label_selector, field_selector)
            page = self._handler.reader.list(entry, options)
        except StatusError as error:
            raise api_error(error) from None
        items = [self._model(entry, record, model) for record in page.records]
        return Listing(items=items, resource_version=str(page.version))

    async def watch(
        self,
        resource: Resource,
        *,
        resource_version: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        model: type[T] = dict,
    ) -> AsyncIterator[WatchEvent[T]]:
        entry = self._entry(resource)
        encoder = EventEncoder(entry, Accepted(), self._engine.now, {})
        try:
            options = self._options(
                entry,
                namespace,
                label_selector,
                field_selector,
                watch="true",
                resourceVersion=resource_version,
                allowWatchBookmarks="true",
            )
            async for events in self._handler.reader.watch(entry, options):
                for event in events:
                    yield self._event(entry, encoder, event, model)
        except StatusError as error:
            raise api_error(error) from None

    def _event(self, entry: Served, encoder: EventEncoder, event: Seen, model: type[T]) -> WatchEvent[T]:
        version = str(event.version)
        if event.type == "BOOKMARK":
            obj: Any = {"metadata": {"resourceVersion": version}}
            return WatchEvent(type="BOOKMARK", object=_convert(obj, model), resource_version=version)
        if event.before or event.record is None:
            return WatchEvent(type=event.type, object=_convert(encoder.object(event), model), resource_version=version)
        return WatchEvent(type=event.type, object=self._model(entry, event.record, model), resource_version=version)

    async def _write(self, write: Awaitable[T]) -> T:
        try:
            result = await write
            await self._engine.store.settled()
        except StatusError as error:
            raise api_error(error) from None
        return result

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        entry = self._entry(resource)
        if "" in entry.handlers:
            return await self._post(resource.path(namespace=namespace), body)
        obj = _copy(body)
        place = namespace or obj.get("metadata", {}).get("namespace")
        ctx = self._context(place if resource.namespaced else None)
        record = await self._write(self._handler.writer.create(entry, Body(obj), ctx))
        return Engine.decode(entry, record)

    async def replace(
        self, resource: Resource, body: Json, *, namespace: str | None = None, subresource: str = ""
    ) -> Json:
        entry = self._entry(resource)
        name = body.get("metadata", {}).get("name", "")
        if subresource not in _SERVED_BY_CORE:
            return await self._request(
                "PUT", resource.path(namespace=namespace, name=name, subresource=subresource), body
            )
        self._check_subresource(entry, name, subresource)
        obj = _copy(body)
        place = namespace or obj.get("metadata", {}).get("namespace")
        ctx = self._context(place if resource.namespaced else None, subresource)
        record, _ = await self._write(self._handler.writer.update(entry, name, Body(obj), ctx))
        return Engine.decode(entry, record)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Json | Sequence[Json],
        *,
        namespace: str | None = None,
        subresource: str = "",
        kind: PatchKind = PatchKind.MERGE,
        manager: str = "",
    ) -> Json:
        entry = self._entry(resource)
        if subresource not in _SERVED_BY_CORE or kind is PatchKind.APPLY:
            path = resource.path(namespace=namespace, name=name, subresource=subresource)
            return await self._request("PATCH", path, patch, content_type=kind, manager=manager)
        self._check_subresource(entry, name, subresource)
        accepted = accepted_types(entry)
        if kind not in accepted:
            raise api_error(unsupported_media_type(accepted))
        parsed = Patch(kind, _copy(patch))
        ctx = self._context(namespace if resource.namespaced else None, subresource)
        record = await self._write(self._handler.writer.patch(entry, name, parsed, ctx))
        return Engine.decode(entry, record)

    @staticmethod
    def _check_subresource(entry: Served, name: str, subresource: str) -> None:
        if subresource and subresource not in entry.subresources:
            raise api_error(not_found(group=entry.resource.group, plural=entry.resource.plural, name=name))

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        propagation: str | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        entry = self._entry(resource)
        options = DeleteOptions(propagation=propagation or "", grace_seconds=grace_seconds, uid=uid)
        ctx = self._context(namespace if resource.namespaced else None)
        await self._write(self._handler.deleter.delete(entry, name, options, ctx))

    async def bind(
        self, *, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str] | None = None
    ) -> None:
        metadata: Json = {"name": name, "namespace": namespace, "uid": uid}
        if annotations:
            metadata["annotations"] = dict(annotations)
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._post(PODS.path(namespace=namespace, name=name, subresource="binding"), binding)

    async def _post(self, path: str, body: Json) -> Json:
        return await self._request("POST", path, body)

    async def _request(
        self, method: str, path: str, body: Any, *, content_type: str = "application/json", manager: str = ""
    ) -> Json:
        """A request to a handler of a kind: through the routes, without a socket."""
        force = {"force": ["true"]} if manager else {}
        response = await self._handler.handle(
            Request(
                method=method,
                path=path,
                query={"fieldManager": [manager or self._user.name], **force},
                headers={"content-type": content_type},
                body=encode(body),
                user=self._user,
            )
        )
        if response is None or not isinstance(response.body, bytes):
            raise ApiError(400, "BadRequest", f"{path} can't be used without a connection")
        answer = _decode(response.body) if response.body else {}
        if response.code >= 400:
            message = answer.get("message", "")
            raise ApiError(response.code, answer.get("reason", ""), message, answer.get("details") or {})
        return answer


def _copy(value: Any) -> Any:
    return _decode(encode(value))


def _convert(value: Any, model: type[T]) -> T:
    return cast(T, value) if model is dict else msgspec.convert(value, type=model)
