"""OpenAPI v3 documents: an index, one document for each group version, and an empty one of version 2.

kubectl reads the parameters of the PATCH operations (does the server validate fields?) and, for `explain`, the schemas.
The schemas of built-in kinds come from their field table; descriptions are added once they were collected (see
`schema.descriptions`). Source: k8s.io/apiserver `pkg/server/routes/openapi.go`, KEP-2896.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vcbatch.local.apiserver.discovery import API_MAJOR, API_MINOR
from vcbatch.local.apiserver.registry import Json, Reply, Served
from vcbatch.local.apiserver.schema import published

_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_INDEX = "/openapi/v3"


def documents(
    served: Sequence[Served], path: str, headers: Mapping[str, str], query: Mapping[str, Sequence[str]]
) -> Reply | None:
    """The response to GET below /openapi/v3 and of /openapi/v2, or None for any other path."""
    if path == "/openapi/v2":
        return _version_two(headers.get("accept", ""))
    return _OPENAPI(served, path, headers)


def _version_two(accept: str) -> Reply:
    """An empty document of the old version: the schemas are in version 3. kubectl requests it before it processes a
    `List`, and accepts the kinds that it doesn't contain."""
    title, version = "Kubernetes", f"v{API_MAJOR}.{API_MINOR}"
    if "protobuf" in accept:
        info = _text(1, title) + _text(2, version)
        body = _text(1, "2.0") + bytes([2 << 3 | 2, len(info)]) + info
        return Reply(body=body, content_type="application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
    document: Json = {"swagger": "2.0", "info": {"title": title, "version": version}, "paths": {}, "definitions": {}}
    return Reply(body=json.dumps(document, separators=(",", ":")).encode(), content_type="application/json")


def _text(number: int, text: str) -> bytes:
    """A short string field of a protobuf message."""
    return bytes([number << 3 | 2, len(text)]) + text.encode()


class _OpenApi:
    """Renders each document once for a set of served resources."""

    def __init__(self) -> None:
        self._served: Sequence[Served] | None = None
        self._described = False
        self._by_version: Mapping[str, Sequence[Served]] = {}
        self._rendered: dict[str, bytes] = {}

    def __call__(self, served: Sequence[Served], path: str, headers: Mapping[str, str]) -> Reply | None:
        if not path.startswith(_INDEX):
            return None
        described = published.has_descriptions()
        if served is not self._served or described != self._described:
            self._served, self._described = served, described
            self._by_version, self._rendered = _by_version(served), {}
        name = path.removeprefix(_INDEX).strip("/")
        if not name:
            return self._reply("", headers, content_type="text/plain; charset=utf-8")
        if name not in self._by_version:
            return None
        return self._reply(name, headers, content_type="application/json")

    def _reply(self, name: str, headers: Mapping[str, str], *, content_type: str) -> Reply:
        if name not in self._rendered:
            document = self._document(name) if name else self._index()
            self._rendered[name] = json.dumps(document, separators=(",", ":")).encode()
        body = self._rendered[name]
        tag = f'"{hashlib.sha256(body).hexdigest().upper()}"' if not name else f'"{self._hash(name)}"'
        caching = {"Etag": tag, "Vary": "Accept"} if name else {}
        if headers.get("if-none-match") == tag:
            return Reply(body=b"", code=304, content_type=content_type, headers=caching)
        return Reply(body=body, content_type=content_type, headers=caching)

    def _index(self) -> Json:
        return {
            "paths": {
                name: {"serverRelativeURL": f"{_INDEX}/{name}?hash={self._hash(name)}"} for name in self._by_version
            }
        }

    def _hash(self, name: str) -> str:
        """A hash that changes whenever the document does, computed without creating the document."""
        seen = hashlib.sha256(f"{published.source_digest()} {self._described}".encode())
        for entry in self._by_version[name]:
            seen.update(repr((entry.resource, entry.verbs, sorted(entry.subresources))).encode())
            if entry.generated:
                seen.update(json.dumps(entry.schema, sort_keys=True).encode())
        return seen.hexdigest().upper()

    def _document(self, name: str) -> Json:
        entries = self._by_version[name]
        schemas: dict[str, Json] = {}
        paths: dict[str, Json] = {}
        for entry in entries:
            component = published.add_kind(schemas, entry)
            paths.update(_paths(entry, component))
        for extra in ("meta/v1.DeleteOptions", "meta/v1.Status"):
            published.add_struct(schemas, extra)
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": f"v{API_MAJOR}.{API_MINOR}"},
            "paths": paths,
            "components": {
                "schemas": dict(sorted(schemas.items())),
                "securitySchemes": {
                    "BearerToken": {
                        "type": "apiKey",
                        "description": "Bearer Token authentication",
                        "name": "authorization",
                        "in": "header",
                    }
                },
            },
        }


_OPENAPI = _OpenApi()


def _by_version(served: Sequence[Served]) -> Mapping[str, Sequence[Served]]:
    found: dict[str, list[Served]] = {}
    for entry in served:
        root = "apis/" if entry.resource.group else "api/"
        found.setdefault(root + entry.resource.api_version, []).append(entry)
    return dict(sorted(found.items()))


def _query(name: str, type_: str, description: str) -> Json:
    schema = {"type": type_, "uniqueItems": True}
    return {"name": name, "in": "query", "description": description, "schema": schema}


_PRETTY = _query("pretty", "string", "Whether to print the answer for people.")
_DRY_RUN = _query("dryRun", "string", "`All`: go through every stage, but store nothing.")
_MANAGER = _query("fieldManager", "string", "The name of the actor or program that makes these changes.")
_VALIDATION = _query(
    "fieldValidation", "string", "What happens to unknown and duplicate fields: `Ignore`, `Warn` or `Strict`."
)
_FORCE = _query("force", "boolean", "Take over the fields of others; for apply patches only.")
_WRITES = (_DRY_RUN, _MANAGER, _VALIDATION)
_LISTS = (
    _query("allowWatchBookmarks", "boolean", "Whether a watch may send bookmarks."),
    _query("continue", "string", "The token of the answer before, for the next page."),
    _query("fieldSelector", "string", "Restricts the list by fields."),
    _query("labelSelector", "string", "Restricts the list by labels."),
    _query("limit", "integer", "The most objects of one page."),
    _query("resourceVersion", "string", "How recent the answer must be."),
    _query("resourceVersionMatch", "string", "How `resourceVersion` is meant."),
    _query("sendInitialEvents", "boolean", "Whether a watch starts with what exists."),
    _query("timeoutSeconds", "integer", "When the call ends."),
    _query("watch", "boolean", "Send changes instead of a list."),
)
_DELETES = (
    _DRY_RUN,
    _query("gracePeriodSeconds", "integer", "Seconds before the object goes."),
    _query("orphanDependents", "boolean", "Deprecated: use propagationPolicy."),
    _query("propagationPolicy", "string", "What happens to dependents: `Orphan`, `Background` or `Foreground`."),
)


def _paths(entry: Served, component: str) -> Iterator[tuple[str, Json]]:
    resource = entry.resource
    base = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    collection = f"{base}{scope}/{resource.plural}"
    fixed = [_path_parameter("namespace", "object name and auth scope")] if resource.namespaced else []
    yield from _collection_paths(entry, component, collection, fixed)
    if resource.namespaced and "list" in entry.verbs:
        operation = _operation(entry, "list", component, _LISTS, suffix="ForAllNamespaces")
        yield f"{base}/{resource.plural}", {"get": operation, "parameters": [_PRETTY]}
    named = [*fixed, _path_parameter("name", f"name of the {resource.kind}")]
    item = _item_operations(entry, component, entry.verbs)
    if item:
        yield f"{collection}/{{name}}", {**item, "parameters": [*named, _PRETTY]}
    for name, verbs in entry.subresources.items():
        operations = _item_operations(entry, component, verbs, subresource=name)
        if operations:
            yield f"{collection}/{{name}}/{name}", {**operations, "parameters": [*named, _PRETTY]}


def _collection_paths(
    entry: Served, component: str, collection: str, fixed: Sequence[Json]
) -> Iterator[tuple[str, Json]]:
    operations: Json = {}
    if "list" in entry.verbs:
        operations["get"] = _operation(entry, "list", component, _LISTS)
    if "create" in entry.verbs:
        operations["post"] = _operation(entry, "create", component, _WRITES)
    if "deletecollection" in entry.verbs:
        operations["delete"] = _operation(entry, "deletecollection", component, (*_LISTS, *_DELETES))
    if operations:
        yield collection, {**operations, "parameters": [*fixed, _PRETTY]}


_METHODS = (("get", "get"), ("update", "put"), ("create", "post"), ("patch", "patch"), ("delete", "delete"))


def _item_operations(entry: Served, component: str, verbs: Sequence[str], *, subresource: str = "") -> Json:
    operations: Json = {}
    for verb, method in _METHODS:
        if verb not in verbs or (verb == "create" and not subresource):
            continue
        parameters: Sequence[Json] = {"get": (), "delete": _DELETES, "patch": (*_WRITES, _FORCE)}.get(verb, _WRITES)
        operations[method] = _operation(entry, verb, component, parameters, subresource=subresource)
    return operations


_ACTIONS = {"create": "post", "update": "put"}
_WORDS = {
    "list": "list or watch objects of kind",
    "create": "create",
    "get": "read the specified",
    "update": "replace the specified",
    "patch": "partially update the specified",
    "delete": "delete",
    "deletecollection": "delete a collection of",
}
_NAMES = {"get": "read", "update": "replace", "deletecollection": "deleteCollection"}


def _operation(
    entry: Served,
    verb: str,
    component: str,
    parameters: Sequence[Json],
    *,
    subresource: str = "",
    suffix: str = "",
) -> Json:
    resource = entry.resource
    group, version, kind = resource.group, resource.version, resource.kind
    if subresource:
        group, version, kind = entry.subresource_kinds.get(subresource, (group, version, kind))
    scope = "Namespaced" if resource.namespaced and not suffix else ""
    place = "".join(part.capitalize() for part in resource.group.removesuffix(".k8s.io").split(".")) or "Core"
    name = _NAMES.get(verb, verb)
    operation: Json = {
        "tags": [f"{place[0].lower()}{place[1:]}_{resource.version}"],
        "description": f"{_WORDS[verb]} {resource.kind}",
        "operationId": f"{name}{place}{resource.version.capitalize()}{scope}{resource.kind}"
        f"{subresource.capitalize()}{suffix}",
        "parameters": list(parameters),
        "responses": _responses(verb, component),
        "x-kubernetes-action": _ACTIONS.get(verb, verb),
        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
    }
    body = _body(verb, component, entry)
    if body:
        operation["requestBody"] = body
    return operation


def _reference(component: str) -> Json:
    return {"schema": {"$ref": f"#/components/schemas/{component}"}}


def _responses(verb: str, component: str) -> Json:
    if verb in ("delete", "deletecollection"):
        shown = published.component_name("meta/v1.Status")
    else:
        shown = f"{component}List" if verb == "list" else component
    content = {"application/json": _reference(shown)}
    responses: Json = {"200": {"description": "OK", "content": content}, "401": {"description": "Unauthorized"}}
    if verb in ("create", "update", "patch"):
        responses["201"] = {"description": "Created", "content": content}
    return responses


def _body(verb: str, component: str, entry: Served) -> Json | None:
    match verb:
        case "create" | "update":
            return {"content": {"*/*": _reference(component)}, "required": True}
        case "patch":
            kinds = [kind for kind in _PATCHES if entry.strategic or "strategic" not in kind]
            return {"content": {kind: {"schema": {"type": "object"}} for kind in kinds}, "required": True}
        case "delete" | "deletecollection":
            return {"content": {"*/*": _reference(published.component_name("meta/v1.DeleteOptions"))}}
        case _:
            return None


def _path_parameter(name: str, description: str) -> Json:
    schema: dict[str, Any] = {"type": "string", "uniqueItems": True}
    return {"name": name, "in": "path", "description": description, "required": True, "schema": schema}
