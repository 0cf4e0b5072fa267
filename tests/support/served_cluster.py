"""Objects behind a small HTTP server, for complete commands: lists in pages with selectors, single objects, and writes,
which are accepted and recorded but change nothing."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.scripted_http import Answer, Asked, Served, refused, scripted

Json = dict[str, Any]
_PAGE = 5
"""Objects per page; small, so that lists have several pages."""


@dataclass(slots=True)
class Cluster:
    """The objects, and the received writes as `(method, path, body)`. Resources in `broken` (by plural) can't be
    read. `user` is who the requests come from."""

    objects: Sequence[Json]
    served: Served
    writes: list[tuple[str, str, Any]] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    user: str = "eve"

    @property
    def url(self) -> str:
        return self.served.url


@contextmanager
def served_cluster(objects: Sequence[Json], *, user: str = "eve") -> Iterator[Cluster]:
    with scripted(lambda asked: _answer(cluster, asked)) as served:
        cluster = Cluster(objects, served, user=user)
        yield cluster


def _answer(cluster: Cluster, asked: Asked) -> Answer:
    version, namespace, plural, name, subresource = _address(asked.path)
    group = version.partition("/")[0] if "/" in version else ""
    full = f"{plural}.{group}" if group else plural
    resource = f"{plural}/{subresource}" if subresource else plural
    if resource in cluster.broken:
        verb = _VERBS.get(asked.method) or ("get" if name else "list")
        where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
        right = f'cannot {verb} resource "{resource}" in API group "{group}" {where}'
        return refused(403, "Forbidden", f'{full} is forbidden: User "{cluster.user}" {right}')
    if plural == "selfsubjectreviews":
        return Answer(status=201, body={**asked.json(), "status": {"userInfo": {"username": cluster.user}}})
    found = [one for one in cluster.objects if _is(one, version, plural, namespace)]
    one = next((each for each in found if name and each["metadata"]["name"] == name), None)
    if asked.method != "GET":
        cluster.writes.append((asked.method, asked.path, asked.json() if asked.body else None))
    if asked.method == "POST":
        return _created(asked.json(), found, full)
    if name and one is None:
        body = {"name": name, "group": group, "kind": plural}
        return Answer(
            status=404,
            body={
                "kind": "Status",
                "code": 404,
                "reason": "NotFound",
                "message": f'{full} "{name}" not found',
                "details": body,
            },
        )
    if asked.method == "GET" and one is None:
        return _page([each for each in found if _selected(each, asked.query)], asked.query)
    return Answer(body=one)


_VERBS = {"POST": "create", "DELETE": "delete", "PATCH": "patch", "PUT": "update"}


def _address(path: str) -> tuple[str, str, str, str, str]:
    parts = path.strip("/").split("/")
    version, rest = ("/".join(parts[1:3]), parts[3:]) if parts[0] == "apis" else (parts[1], parts[2:])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    name, subresource, *_ = [*rest[1:], "", ""]
    return version, namespace, rest[0], name, subresource


def _is(one: Json, version: str, plural: str, namespace: str) -> bool:
    same = one["apiVersion"] == version and f"{one['kind'].lower()}s" == plural
    return same and namespace in ("", one["metadata"].get("namespace"))


def _created(body: Json, found: Sequence[Json], full: str) -> Answer:
    metadata = body["metadata"]
    name = metadata.get("name") or f"{metadata['generateName']}x2v4z"
    if any(one["metadata"]["name"] == name for one in found):
        return refused(409, "AlreadyExists", f'{full} "{name}" already exists')
    made = copy.deepcopy(body)
    made["metadata"] |= {"name": name, "uid": "made"}
    return Answer(status=201, body=made)


def _selected(one: Json, query: dict[str, str]) -> bool:
    """Whether the object matches: equality and existence of labels, and equality of fields."""
    labels = one["metadata"].get("labels") or {}
    for term in filter(None, query.get("labelSelector", "").split(",")):
        key, equals, value = term.partition("=")
        if key not in labels or (equals and labels[key] != value):
            return False
    for term in filter(None, query.get("fieldSelector", "").split(",")):
        path, _, value = term.partition("=")
        at: Any = one
        for name in path.split("."):
            at = at.get(name, "")
        if at != value:
            return False
    return True


def _page(found: Sequence[Json], query: dict[str, str]) -> Answer:
    start = int(query.get("continue", "0"))
    end = min(start + min(int(query.get("limit", "0")) or len(found), _PAGE), len(found)) if "limit" in query else None
    metadata = {"resourceVersion": "1000"}
    if end is not None and end < len(found):
        metadata["continue"] = str(end)
    body = {"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": found[start:end]}
    return Answer(body=json.dumps(body).encode())
