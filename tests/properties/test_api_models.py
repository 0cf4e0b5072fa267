"""What is read is written back as it was, for anything that a CRD accepts; and admission changes nothing twice."""

from __future__ import annotations

import copy
import dataclasses
import string
from typing import Any

import jsonpatch
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.admission_world import World
from tests.support.examples import examples
from vcbatch.api import admission, crd
from vcbatch.api.admission import Operation
from vcbatch.api.command import Command
from vcbatch.api.cronjob import CronJob
from vcbatch.api.defaults import default_job, default_podgroup, default_queue, json_patch
from vcbatch.api.hypernode import HyperNode
from vcbatch.api.job import Job
from vcbatch.api.jobflow import JobFlow
from vcbatch.api.jobtemplate import JobTemplate
from vcbatch.api.model import Json, Object
from vcbatch.api.podgroup import PodGroup
from vcbatch.api.queue import Queue
from vcbatch.api.resources import CUSTOM_RESOURCES

MODELS: dict[str, type[Object]] = {
    model.__name__: model for model in (Job, CronJob, Queue, PodGroup, Command, JobFlow, JobTemplate, HyperNode)
}

words = st.text(string.ascii_lowercase + string.digits + "-./:", max_size=6)
leaves = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), words)


def nested(keys: st.SearchStrategy[str], *, size: int, leaves_at_most: int) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=size), st.dictionaries(keys, inner, max_size=size)),
        max_leaves=leaves_at_most,
    )


anything = nested(words, size=2, leaves_at_most=4)
unknown_keys = st.sampled_from(["min_available", "foo", "_nulls", "dump", "model_config", "x-y", "creationTimestampX"])


def of_schema(schema: Json, depth: int = 0) -> st.SearchStrategy[Any]:
    """JSON that the schema accepts, with unknown keys and explicit nulls."""
    if schema.get("x-kubernetes-int-or-string"):
        return st.one_of(st.integers(0, 9), st.just("2Gi"))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "string":
            return words
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(0, 9)
        case "array":
            return st.lists(of_schema(schema["items"], depth + 1), max_size=2)
        case _:
            return of_object(schema, depth)


def of_object(schema: Json, depth: int) -> st.SearchStrategy[Any]:
    if "additionalProperties" in schema:
        return st.dictionaries(words, of_schema(schema["additionalProperties"], depth + 1), max_size=2)
    properties: Json = schema.get("properties") or {}
    if depth > 6 or not properties:
        return st.dictionaries(words.filter(lambda key: key not in properties), anything, max_size=2)

    @st.composite
    def build(draw: st.DrawFn) -> Json:
        keys = draw(st.lists(st.sampled_from(sorted(properties)), unique=True, max_size=4))
        made: Json = {}
        for key in {*keys, *schema.get("required", [])}:
            value = of_schema(properties[key], depth + 1)
            made[key] = draw(st.one_of(value, value, st.none()))
        if draw(st.booleans()):
            made[draw(unknown_keys)] = draw(anything)
        return made

    return build()


def objects(kind: str) -> st.SearchStrategy[Json]:
    schema = crd.render(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return of_schema(schema)


@pytest.mark.parametrize("kind", sorted(MODELS))
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_parse_and_dump_give_back_what_was_given(kind: str, data: st.DataObject) -> None:
    given_object = data.draw(objects(kind))
    before = copy.deepcopy(given_object)
    assert MODELS[kind].parse(given_object).dump() == before
    assert given_object == before


@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(job=objects("Job"))
def test_defaulting_a_job_twice_changes_nothing_more(job: Json) -> None:
    before = copy.deepcopy(job)
    once = default_job(job)
    assert job == before, "the given object is left alone"
    assert default_job(once) == once
    assert jsonpatch.apply_patch(job, json_patch(job, once)) == once


@settings(max_examples=examples(80))
@given(queue=objects("Queue"))
def test_defaulting_a_queue_twice_changes_nothing_more(queue: Json) -> None:
    once = default_queue(queue)
    assert default_queue(once) == once
    assert once["spec"]["weight"] >= 1


@settings(max_examples=examples(40))
@given(group=objects("PodGroup"))
def test_a_podgroup_only_ever_changes_its_queue(group: Json) -> None:
    annotations = {"scheduling.volcano.sh/queue-name": "team"}
    patch = json_patch(group, default_podgroup(group, namespace_annotations=annotations))
    assert patch in ([], [{"op": "replace", "path": "/spec/queue", "value": "team"}])


json_values = nested(st.sampled_from(["a", "b~/", "c/d"]), size=3, leaves_at_most=8)
json_objects = st.dictionaries(st.sampled_from("abc"), json_values)


@settings(max_examples=examples(200))
@given(before=json_objects, after=json_objects)
def test_a_patch_leads_from_one_object_to_the_other(before: Json, after: Json) -> None:
    patched = jsonpatch.apply_patch(before, json_patch(before, after))
    assert repr_sorted(patched) == repr_sorted(after)
    assert json_patch(after, after) == []


def repr_sorted(value: Any) -> str:
    """Tells True from 1."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{repr_sorted(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(repr_sorted(item) for item in value) + "]"
    return repr(value)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    if isinstance(value, dict):
        return [(value, key) for key in value] + [place for item in value.values() for place in places(item)]
    if isinstance(value, list):
        return [(value, at) for at in range(len(value))] + [place for item in value for place in places(item)]
    return []


@st.composite
def damaged(draw: st.DrawFn, kind: str) -> Json:
    """An object of the kind with up to three values replaced by something else."""
    body = draw(objects(kind))
    for _ in range(draw(st.integers(0, 3))):
        found = places(body)
        if found:
            container, key = draw(st.sampled_from(found))
            container[key] = draw(anything)
    return body


@pytest.mark.parametrize("kind", sorted(MODELS))
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_damaged_objects_are_judged_and_never_an_error(kind: str, data: st.DataObject) -> None:
    resource = next(resource for resource in CUSTOM_RESOURCES if resource.kind == kind)
    body = data.draw(damaged(kind))
    old = data.draw(st.one_of(st.none(), damaged(kind)))
    operation = Operation.CREATE if old is None else Operation.UPDATE
    asked = admission.Request(resource=resource, operation=operation, name="x", object=body, old=old)
    completed = dataclasses.replace(asked, object=admission.mutate(asked, World()))
    assert isinstance(admission.review(completed, World()).message, str)
