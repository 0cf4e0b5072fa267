"""`vcbatch lint` refuses what the API server with admission refuses, and names the same fields.

Good objects of each kind are spoiled: values of wrong types, unknown fields, numbers out of range, missing required
fields, fields that contradict each other, odd metadata, fields written twice. What lint says of the text is compared
with the answer of the local API server to a creation with dry run and strict validation, and their warnings with each
other. Where they differ, one of the two is wrong.
"""

from __future__ import annotations

import asyncio
import copy
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.corpus.corpus import cases
from tests.properties.test_types_of_values import KINDS, base, fields_of, put
from tests.support.examples import examples
from tests.support.virtual_time import VirtualClock, VirtualTimeLoop
from tests.unit.apiserver.core.servers import Answer, Client, server
from vcbatch.api.resources import QUEUES, Resource
from vcbatch.cli.files.manifests import Manifest
from vcbatch.cli.files.positions import placed
from vcbatch.cli.lint.rules import Complaint, complaints
from vcbatch.cli.local.admission import admission_services, ensure_webhooks
from vcbatch.cli.local.definitions import ensure_definitions

Json = dict[str, Any]

GOOD: dict[Resource, tuple[Json, ...]] = {
    resource: (
        base(resource),
        *(
            {"apiVersion": resource.api_version, "kind": resource.kind, **case.request.object}
            for case in cases()
            if case.request.resource == resource and case.request.object is not None and case.request.old is None
            if case.request.namespace in ("", "default")
        ),
    )
    for resource in KINDS
}
INTEGERS = (-1, 0, 1, 2, 3, 5, 2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**63)
TEXTS = ("", "x", "default", "root", "A b", "-1s", "5s", "Never", "Running", "1x", "*/5 * * * *", "a" * 64, "a(b", "é")
ODD: tuple[Any, ...] = (
    None,
    True,
    0.5,
    "x",
    [],
    {},
    [None],
    {"": ""},
    ["a", "a"],
    [{"name": "a"}, {"name": "a"}],
    1e300,
)
METADATA: tuple[tuple[str, Any], ...] = (
    ("labels", {"a": "b c"}), ("labels", {"a/b/c": "x"}), ("labels", {"a": 1, "b": 2}), ("labels", "x"),
    ("annotations", {"x y": "1"}), ("annotations", {"a": 1}), ("annotations", {"volcano.sh/task-priority": "x"}),
    ("finalizers", ["x"]), ("finalizers", ["a b"]), ("finalizers", [1]), ("ownerReferences", [{}]),
    ("ownerReferences", [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": 7}]),
    ("nmae", "x"), ("generation", -1), ("generation", "x"), ("creationTimestamp", "yesterday"), ("uid", 7),
    ("generateName", "A_"), ("generateName", "ok-"), ("name", "a.b"), ("name", "9" * 300), ("name", "x" * 64),
    ("name", "_"), ("name", ""), ("name", None), ("name", 7), ("namespace", 7), ("namespace", "A_b"),
)  # fmt: skip


def places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        at = waiting.pop(0)
        for key in [*at] if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else ():
            found.append((at, key))
            waiting.append(at[key])
    return found


def fitting(schema: Json) -> st.SearchStrategy[Any]:
    """Values of the type of a field, in range and out of it."""
    kind = schema.get("type")
    if schema.get("enum"):
        return st.sampled_from([*schema["enum"], "x"])
    if kind == "integer":
        return st.sampled_from(INTEGERS)
    if kind == "string":
        return st.sampled_from(TEXTS)
    if kind == "boolean":
        return st.booleans()
    return st.sampled_from([[], [{}], ["a"]]) if kind == "array" else st.sampled_from([{}, {"a": "b"}, {"cpu": "1"}])


@st.composite
def spoiled(draw: st.DrawFn) -> tuple[Resource, str]:
    """The text of a manifest that was good."""
    resource = draw(st.sampled_from(KINDS))
    obj = copy.deepcopy(draw(st.sampled_from(GOOD[resource])))
    for _ in range(draw(st.sampled_from((1, 1, 1, 2, 3)))):
        obj = draw(changed(resource, obj))
    obj |= {"apiVersion": resource.api_version, "kind": resource.kind}
    text = json.dumps(obj)
    if draw(st.integers(0, 7)) == 0:
        text = draw(doubled(text))
    return resource, text


@st.composite
def changed(draw: st.DrawFn, resource: Resource, obj: Json) -> Json:
    at, key = draw(st.sampled_from(places(obj)))
    match draw(st.integers(0, 6)):
        case 0:
            at[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
        case 1:
            del at[key]
        case 2:
            path, schema = draw(st.sampled_from(fields_of(resource)))
            return put(obj, path, draw(fitting(schema)))
        case 3:
            path, _ = draw(st.sampled_from(fields_of(resource)))
            return put(obj, path, copy.deepcopy(draw(st.sampled_from(ODD))))
        case 4 if isinstance(at, dict):
            at[draw(st.sampled_from(("foo", "nmae", "Name", "spec", "status", "x-y")))] = 1
        case 5 if isinstance(at, list):
            at.append(copy.deepcopy(at[key]))
        case _:
            name, value = draw(st.sampled_from(METADATA))
            if isinstance(obj.get("metadata"), dict):
                obj["metadata"][name] = copy.deepcopy(value)
    return obj


@st.composite
def doubled(draw: st.DrawFn, text: str) -> str:
    """The same with a field written twice."""
    found = [*re.finditer(r'(?<=[{ ])"(?!apiVersion|kind|metadata)\w+": (?=["\d])', text)]
    if not found:
        return text
    one = draw(st.sampled_from(found))
    return f'{text[: one.start()]}{one[0]}"first", {text[one.start() :]}'


async def ready(client: Client) -> None:
    """The definitions, the webhooks, and the queues that every cluster has."""
    api = client.kernel.api
    await ensure_definitions(api)
    await ensure_webhooks(api)
    for name in ("root", "default"):
        await api.create(QUEUES, {**base(QUEUES), "metadata": {"name": name}, "spec": {}})
        await api.patch(QUEUES, name, {"status": {"state": "Open"}}, subresource="status")


def of_lint(text: str) -> list[Complaint]:
    (document,) = placed(text)
    return [*complaints([Manifest(file="given.json", placed=document)], closed=True)]


def fields_of_answer(answer: Answer) -> list[str]:
    """The fields that the server names in whatever way."""
    causes = (answer.body.get("details") or {}).get("causes") or ()
    found = [cause["field"] for cause in causes if cause.get("field") not in (None, "", "<nil>")]
    for cause in causes:
        if cause.get("field") == "<nil>":
            found += re.findall(r" in (\S+)$", cause["message"]) or re.findall(r'"([^"]+)" must ', cause["message"])
    if not causes:
        message = answer.body["message"]
        found += re.findall(r'(?:unknown|duplicate) field "([^"]*)"', message)
        found += [f"metadata.{one}" for one in re.findall(r"Go struct field ObjectMeta\.(\w+)", message)]
        found += [f"metadata.ownerReferences.{one}" for one in re.findall(r"field OwnerReference\.\S+\.(\w+)", message)]
        found += ["metadata"] if "Go value of type v1.ObjectMeta" in message else []
        found += ["metadata.creationTimestamp"] if "parsing time" in message else []
        found += ["metadata.namespace"] if "does not match the namespace" in message else []
    return [plain(one) for one in found]


def plain(field: str) -> str:
    field = re.sub(r"\[(\D[^\]]*)\]", r".\1", field.removeprefix("requestBody.").removeprefix("."))
    return re.sub(r"^metadata\.(labels|annotations|ownerReferences|generateName)\..*$", r"metadata.\1", field)


def covered(field: str, reported: Sequence[str]) -> bool:
    """Whether lint names the field, or what it is in, which doesn't fit as a whole."""
    if field == "metadata.name" and "metadata.generateName" in reported:
        return True  # the server names what it has made of it
    return any(field == one or field.startswith((f"{one}.", f"{one}[")) for one in reported if one)


def warnings(answer: Answer) -> list[str]:
    texts = [value for name, value in answer.headers if name.lower() == "warning"]
    return sorted(text.removeprefix('299 - "').removesuffix('"').replace('\\"', '"') for text in texts)


GO = re.compile(
    r"json: |Go struct|\bv1\.[A-Z]|valueUnstructured|&\{|map\[|\[\]string|int32|int64|float64|<nil>: |in body"
)
QUEUE = {"apiVersion": QUEUES.api_version, "kind": "Queue"}


@pytest.fixture(scope="module")
def ask() -> Iterator[Callable[[Resource, str], str]]:
    """`compared`, with a server that lives as long as the tests."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        made = server(services=admission_services(VirtualClock()))
        client = runner.run(made.__aenter__())
        runner.run(ready(client))
        yield lambda resource, text: runner.run(compared(client, resource, text))
        runner.run(made.__aexit__(None, None, None))


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(spoiled())
@example((QUEUES, json.dumps({**QUEUE, "metadata": {"name": "q", "namespace": "default"}, "spec": {}})))
@example((QUEUES, json.dumps({**QUEUE, "metadata": {"name": "q"}, "spec": {"parent": "default"}})))
@example((QUEUES, json.dumps({**QUEUE, "metadata": {"name": "q", "generation": -1}, "spec": {"weight": 0}})))
@example((QUEUES, json.dumps({**QUEUE, "metadata": {"name": "q"}, "status": "x", "spec": {"weight": 3.0}})))
def test_they_refuse_the_same_and_name_the_same_fields(
    ask: Callable[[Resource, str], str], manifest: tuple[Resource, str]
) -> None:
    assert ask(*manifest) == ""


async def compared(client: Client, resource: Resource, text: str) -> str:
    """How lint and the server differ on the text; empty where they don't."""
    said = of_lint(text)
    errors = [one for one in said if one.severity == "error"]
    where = "/namespaces/default" if resource.namespaced else ""
    path = f"/apis/{resource.api_version}{where}/{resource.plural}?dryRun=All&fieldValidation=Strict"
    answer = await client.post(path, text.encode())
    shown = f"{text}\nserver: {answer.code} {answer.body.get('message')}\nlint: {[*map(str, said)]}"
    if (answer.code != 201) != bool(errors):
        return f"only one refuses: {shown}"
    if inside := [one.message for one in errors if GO.search(one.message)]:
        return f"words of a program: {inside}"
    if len({(one.field, one.message) for one in errors}) < len(errors):
        return f"said twice: {shown}"
    if errors:
        reported = [plain(one.field) for one in errors]
        missing = [field for field in fields_of_answer(answer) if not covered(field, reported)]
        return f"lint doesn't name {missing}: {shown}" if missing or not fields_of_answer(answer) else ""
    theirs, ours = warnings(answer), sorted(one.message for one in said)
    return "" if theirs == ours else f"other warnings: {theirs}: {shown}"
