"""What a server says of an object, traced back to the fields of the manifest."""

from __future__ import annotations

import pytest

from vcbatch.cli.apply.errors import immutable_fields, typed
from vcbatch.cli.files.manifests import Manifest
from vcbatch.cli.files.positions import placed
from vcbatch.interfaces.api import ApiError

JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: a}
spec:
  minAvailable: 3
  tasks:
    - {name: other, replicas: 1}
    - {name: member, replicas: three, template: {spec: {containers: [{name: main, image: a}]}}}
"""
KEYLESS = 'associative list with keys has an element that omits key field "name" (and doesn\'t have default value)'
PREFIX = "failed to create typed patch object (default/a; batch.volcano.sh/v1alpha1, Kind=Job): "


def manifest() -> Manifest:
    (one,) = placed(JOB)
    return Manifest(file="f", placed=one)


def reported(text: str) -> list[tuple[str, str]]:
    return typed(ApiError(500, "InternalError", text), manifest())


def test_one_field_that_does_not_fit() -> None:
    assert reported(f"{PREFIX}.spec.foo: field not declared in schema") == [("spec.foo", "unknown field 'spec.foo'")]


def test_several_fields_each_with_its_position() -> None:
    said = reported(
        f'{PREFIX}errors:\n  .spec.tasks[name="member"].replicas: expected numeric (int or float), got string\n'
        '  .spec.tasks[name="member"].template.spec.containers[name="main"].imagee: field not declared in schema'
    )
    container = "spec.tasks[1].template.spec.containers[0].imagee"
    assert said == [
        ("spec.tasks[1].replicas", 'spec.tasks[1].replicas: must be a number, got "three"'),
        (container, f"unknown field {container!r}"),
    ]


@pytest.mark.parametrize(
    ("said", "reported_as"),
    [
        (
            ".spec.minAvailable: expected string, got &value.valueUnstructured{Value:3}",
            "spec.minAvailable: must be a string, got 3",
        ),
        (
            ".spec.tasks: expected map, got &{[map[name:other] map[name:member]]}",
            "spec.tasks: must be a mapping, got [",
        ),
        (".spec.minAvailable: expected boolean, got &value.valueUnstructured{Value:3}", "must be true or false, got 3"),
        ('.spec.tasks: duplicate entries for key [name="a"]', 'spec.tasks: duplicate elements with name: "a"'),
        (
            f".spec.tasks: element 0: {KEYLESS}",
            "spec.tasks[0]: must have name, which identifies the element",
        ),
        (
            '.spec.finalizers: duplicate entries for key [="x"]',
            'spec.finalizers: duplicate elements with the value "x"',
        ),
    ],
)
def test_the_words_of_the_servers_library_are_said_as_lint_says_them(said: str, reported_as: str) -> None:
    ((_, text),) = reported(f"{PREFIX}{said}")
    assert reported_as in text


def test_an_element_that_is_not_found_leads_to_its_list() -> None:
    assert reported(f'{PREFIX}.spec.tasks[name="gone"].x: field not declared in schema')[0][0] == "spec.tasks"


def test_other_faults_are_none_of_the_schema() -> None:
    assert reported("etcdserver: request timed out") == []


def test_fields_that_differ_are_named_but_for_those_that_may_change() -> None:
    error = ApiError(
        403, "Forbidden", "job updates may not change fields other than `minAvailable`; changed: spec.tasks"
    )
    before = {
        "spec": {
            "minAvailable": 1,
            "tasks": [
                {"name": "other", "replicas": 1},
                {
                    "name": "member",
                    "replicas": 1,
                    "template": {"spec": {"containers": [{"name": "main", "image": "b"}]}},
                },
            ],
        }
    }
    assert immutable_fields(error, before, manifest()) == ("spec.tasks[1].template.spec.containers[0].image",)
    assert immutable_fields(error, None, manifest()) == ()
    assert immutable_fields(ApiError(403, "Forbidden", "no"), before, manifest()) == ()
