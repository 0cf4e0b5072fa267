"""A value of a wrong type is refused wherever an object comes in, and never replaced by a default.

Every field of every kind gets every value that doesn't belong there, above all those that are false in Python (False,
0, "", [], {}): YAML 1.1 reads `queue: no` as false.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.corpus.corpus import bases, world
from tests.support.virtual_time import VirtualClock
from tests.unit.apiserver.core.servers import server, virtual
from vcbatch.api import admission
from vcbatch.api.admission import Operation, Request
from vcbatch.api.crd import render
from vcbatch.api.resources import (
    COMMANDS,
    CRONJOBS,
    HYPERNODES,
    JOBFLOWS,
    JOBS,
    JOBTEMPLATES,
    PODGROUPS,
    QUEUES,
    Resource,
)
from vcbatch.cli.files.manifests import Manifest
from vcbatch.cli.files.positions import placed
from vcbatch.cli.lint.rules import complaints
from vcbatch.cli.local.admission import admission_services, ensure_webhooks
from vcbatch.cli.local.definitions import ensure_definitions
from vcbatch.sdk.models.job import Job as SdkJob
from vcbatch.sdk.models.queue import Queue as SdkQueue

Json = dict[str, Any]
Path = tuple[str | int, ...]

FALSY: tuple[Any, ...] = (False, 0, "", [], {})
OTHERS: tuple[Any, ...] = (True, 1, "x", ["x"], {"x": "y"})
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
KINDS = (JOBS, QUEUES, PODGROUPS, JOBFLOWS, JOBTEMPLATES, CRONJOBS, COMMANDS, HYPERNODES)
COMMAND: Json = {
    "metadata": {"name": "c", "namespace": "default"},
    "action": "AbortJob",
    "target": {"apiVersion": JOBS.api_version, "kind": "Job", "name": "j", "uid": "u"},
}
WORLD = world()

kinds = pytest.mark.parametrize("resource", KINDS, ids=lambda resource: resource.kind)


def fields(schema: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """Every field below, with its schema."""
    for key, below in (schema.get("properties") or {}).items():
        if path or key in ("spec", "action", "target", "reason", "message"):
            yield (*path, key), below
            yield from fields(below, (*path, key))
    for key, part in (0, "items"), ("key", "additionalProperties"):
        if isinstance(schema.get(part), dict):
            yield (*path, key), schema[part]
            yield from fields(schema[part], (*path, key))


def belongs(value: Any, schema: Json) -> bool:
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, (int, str)) and not isinstance(value, bool)
    wanted = schema.get("type")
    if wanted is None:
        return True
    return isinstance(value, TYPES[wanted]) and (wanted == "boolean" or not isinstance(value, bool))


@cache
def fields_of(resource: Resource) -> tuple[tuple[Path, Json], ...]:
    schema = render(resource.kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return tuple(fields(schema))


def base(resource: Resource) -> Json:
    known = {each["resource"]: each["object"] for each in bases().values()}
    body = known.get(resource.plural, COMMAND)
    return {"apiVersion": resource.api_version, "kind": resource.kind, **copy.deepcopy(body)}


def put(value: Any, path: Path, leaf: Any) -> Any:
    """The value with `leaf` at the path, and what has to be around it."""
    if not path:
        return leaf
    key, rest = path[0], path[1:]
    if isinstance(key, int):
        given = value if isinstance(value, list) and value else [None]
        return [put(given[0], rest, leaf), *given[1:]]
    given = dict(value) if isinstance(value, dict) else {}
    return {**given, key: put(given.get(key), rest, leaf)}


def get(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def dotted(path: Path) -> str:
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".")


def misfits(resource: Resource, pool: tuple[Any, ...], *, templates: bool) -> Iterator[tuple[Path, Any]]:
    for path, schema in fields_of(resource):
        if templates or "template" not in path[:-1]:
            yield from ((path, value) for value in pool if not belongs(value, schema))


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


@kinds
@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.UPDATE])
def test_the_rules_refuse_it_and_the_defaults_leave_it(resource: Resource, operation: Operation) -> None:
    old = base(resource)
    wrong: list[str] = []
    templates = resource == JOBS and operation is Operation.CREATE
    for path, value in misfits(resource, (*FALSY, *OTHERS), templates=templates):
        given = put(old, path, value)
        request = Request(
            resource=resource,
            operation=operation,
            name=old["metadata"]["name"],
            namespace="default",
            object=given,
            old=old if operation is Operation.UPDATE else None,
        )
        filled = admission.mutate(request, WORLD)
        if not same(get(filled, path), value):
            wrong.append(f"{dotted(path)}: {value!r} became {get(filled, path)!r}")
        for each in (given, filled):
            verdict = admission.review(
                Request(**{**vars_of(request), "object": each}),
                WORLD,
            )
            if not any(dotted(path) == error.field for error in verdict.errors):
                wrong.append(f"{dotted(path)}: {value!r}: {verdict.message!r}")
    assert wrong == []


def vars_of(request: Request) -> Json:
    return {name: getattr(request, name) for name in Request.__dataclass_fields__}


@kinds
@virtual
async def test_the_local_server_refuses_it(resource: Resource) -> None:
    async with server(services=admission_services(VirtualClock())) as client:
        api = client.kernel.api
        await ensure_definitions(api)
        await ensure_webhooks(api)
        for name in ("root", "default"):
            await api.create(QUEUES, {**base(QUEUES), "metadata": {"name": name}, "spec": {}})
            await api.patch(QUEUES, name, {"status": {"state": "Open"}}, subresource="status")
        where = "/namespaces/default" if resource.namespaced else ""
        place = f"/apis/{resource.api_version}{where}/{resource.plural}"
        good = await client.post(place, base(resource))
        assert good.code == 201, good.body
        assert (await client.delete(f"{place}/{base(resource)['metadata']['name']}")).code == 200
        wrong: list[str] = []
        for path, value in misfits(resource, FALSY, templates=False):
            answer = await client.post(place, put(base(resource), path, value))
            causes = [cause.get("field") for cause in (answer.body.get("details") or {}).get("causes") or ()]
            if answer.code != 422 or dotted(path) not in causes:
                wrong.append(f"{dotted(path)}: {value!r}: {answer.code} {answer.body.get('message')}")
                if answer.code == 201:
                    await client.delete(f"{place}/{base(resource)['metadata']['name']}")
        assert wrong == []


@kinds
def test_lint_says_it_at_the_field(resource: Resource) -> None:
    wrong: list[str] = []
    for path, value in misfits(resource, FALSY, templates=False):
        found = [*complaints([manifest(put(base(resource), path, value))])]
        reported = [one.field for one in found if one.severity == "error"]
        if dotted(path) not in reported:
            wrong.append(f"{dotted(path)}: {value!r}: {[str(one) for one in found]}")
    assert wrong == []


def manifest(document: Json) -> Manifest:
    (one,) = placed(json.dumps(document))
    return Manifest(file="given.json", placed=one)


@pytest.mark.parametrize(("resource", "model"), [(JOBS, SdkJob), (QUEUES, SdkQueue)], ids=["Job", "Queue"])
def test_the_sdk_sends_it_as_it_is(resource: Resource, model: Any) -> None:
    for path, value in misfits(resource, (*FALSY, *OTHERS), templates=False):
        given = put(base(resource), path, value)
        assert same(get(model.from_manifest(given).to_manifest(), path), value), (path, value)
