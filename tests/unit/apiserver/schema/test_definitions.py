"""CustomResourceDefinitions: what they may say, which names they get, what they are served as."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta

import pytest

from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.crds import CrdRegistry, served
from vcbatch.local.apiserver.crds.columns import columns
from vcbatch.local.apiserver.registry import RequestContext

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def context(subresource=""):
    return RequestContext(user="u", groups=(), now=NOW, namespace="ns", subresource=subresource)


def definition(**spec):
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 9}, "m": {"default": 1}}},
            "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
        },
    }
    schema["properties"]["spec"]["properties"]["m"]["type"] = "integer"
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.ready"},
        },
    }
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [version],
        },
    }
    crd["spec"].update(spec)
    return crd


def with_columns(*declared):
    crd = definition()
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = list(declared)
    return crd


def accepted(crd):
    strategy = served()[0].strategy
    assert strategy.fields(crd, context()) == []
    strategy.default(crd, None, context())
    return crd


def refusals(crd, old=None):
    strategy = served()[0].strategy
    strategy.fields(crd, context())
    strategy.default(crd, old, context())
    return [str(error) for error in strategy.validate(crd, old, context())]


def test_names_and_conversion_have_defaults():
    crd = accepted(definition())
    assert crd["spec"]["names"]["singular"] == "widget"
    assert crd["spec"]["names"]["listKind"] == "WidgetList"
    assert crd["spec"]["conversion"] == {"strategy": "None"}
    assert crd["status"]["storedVersions"] == ["v1"]
    assert refusals(crd) == []


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"group": "other.com"}, 'metadata.name: Invalid value: "widgets.example.com": must be spec.names.plural+"."'),
        ({"group": ""}, "spec.group: Required value"),
        ({"scope": "Galaxy"}, 'spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'),
        ({"versions": []}, "must have exactly one version marked as storage version"),
        ({"conversion": {"strategy": "Webhook"}}, "spec.conversion.strategy: Forbidden"),
        ({"preserveUnknownFields": True}, "spec.preserveUnknownFields: Invalid value: true"),
        (
            {"names": {"plural": "widgets", "kind": "Wid get"}},
            'spec.names.kind: Invalid value: "Wid get": may',
        ),
    ],
)
def test_a_definition_that_cannot_work_is_refused(spec, error):
    assert any(error in text for text in refusals(definition(**spec)))


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({"properties": {}}, "type: Required value: must not be empty at the root"),
        ({"type": "object", "properties": {"a": {}}}, "properties[a].type: Required value: must not be empty for"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, "properties[a].items: Required value"),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, 'properties[a].type: Unsupported value: "text"'),
        ({"type": "object", "additionalProperties": False}, "additionalProperties: Forbidden"),
        ({"type": "object", "properties": {"a": {"$ref": "#/x", "type": "string"}}}, "$ref: Forbidden"),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}, "pattern: Invalid value"),
        ({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}, "properties[a].default: "),
        ({"type": "object", "anyOf": [{"type": "object"}]}, "anyOf[0].type: Forbidden: must be empty to be structural"),
        (
            {"type": "object", "x-kubernetes-validations": [{"rule": "self.a >"}]},
            "x-kubernetes-validations[0].rule: Invalid value",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"},
                                                    "x-kubernetes-list-type": "map"}}},
            "x-kubernetes-list-map-keys: Required value",
        ),
    ],
)  # fmt: skip
def test_a_schema_must_be_structural(schema, error):
    crd = definition()
    crd["spec"]["versions"][0].update(schema={"openAPIV3Schema": schema}, subresources={})
    assert any(error in text for text in refusals(crd)), refusals(crd)


@pytest.mark.parametrize(
    ("annotation", "refused"), [(None, True), ("yes", True), ("unapproved, a test", False), ("https://x.io/1", False)]
)
def test_groups_of_kubernetes_need_an_approval(annotation, refused):
    crd = definition(group="x.k8s.io")
    crd["metadata"] = {"name": "widgets.x.k8s.io", "annotations": {"api-approved.kubernetes.io": annotation or ""}}
    assert any("approval annotation" in text for text in refusals(crd)) is refused


def test_what_objects_rely_on_cannot_change():
    old = accepted(definition())
    registry = CrdRegistry()
    old["status"] = registry.reconcile(old, NOW)
    crd = copy.deepcopy(old)
    crd["spec"]["scope"] = "Cluster"
    crd["spec"]["versions"][0]["name"] = "v2"
    found = refusals(crd, old)
    assert any("spec.scope" in text and "field is immutable" in text for text in found)
    assert any("status.storedVersions[0]" in text for text in found)


def test_a_first_reconcile_establishes_and_a_second_changes_nothing():
    crd, registry = accepted(definition()), CrdRegistry()
    crd["status"] = registry.reconcile(crd, NOW)
    conditions = {one["type"]: one["status"] for one in crd["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert registry.reconcile(crd, NOW + timedelta(hours=1)) is None
    (entry,) = registry.served()
    assert (entry.resource.plural, entry.short_names, entry.singular) == ("widgets", ("wd",), "widget")
    registry.remove("widgets.example.com")
    assert registry.served() == []


def test_taken_names_are_named_and_the_kind_is_not_served():
    first, second, registry = accepted(definition()), definition(), CrdRegistry()
    registry.reconcile(first, NOW)
    second["metadata"]["name"] = "gadgets.example.com"
    second["spec"]["names"] = {"plural": "gadgets", "singular": "gadget", "kind": "Widget", "shortNames": ["wd"]}
    status = registry.reconcile(accepted(second), NOW)
    accepted_names = next(one for one in status["conditions"] if one["type"] == "NamesAccepted")
    assert (accepted_names["status"], accepted_names["reason"]) == ("False", "ShortNamesConflict")
    assert accepted_names["message"] == '"wd" is already in use'
    assert [entry.resource.plural for entry in registry.served()] == ["widgets"]
    registry.remove("widgets.example.com")
    second["status"] = status
    registry.reconcile(second, NOW)
    assert [entry.resource.plural for entry in registry.served()] == ["gadgets"]


def entry_of(crd):
    registry = CrdRegistry()
    registry.reconcile(accepted(crd), NOW)
    return registry.served()[0]


def widget(**parts):
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, **parts}


def test_a_create_drops_the_status_and_an_update_keeps_it():
    strategy = entry_of(definition()).strategy
    obj = widget(spec={}, status={"ready": 1})
    strategy.default(obj, None, context())
    assert obj == widget(spec={"m": 1})
    old = widget(spec={"m": 1}, status={"ready": 2})
    obj = widget(spec={"size": 1}, status={"ready": 9})
    strategy.default(obj, old, context())
    assert obj == widget(spec={"size": 1, "m": 1}, status={"ready": 2})
    assert strategy.changes_generation(obj, old)


def test_a_write_of_the_status_changes_nothing_else():
    strategy = entry_of(definition()).strategy
    old = widget(spec={"m": 1})
    obj = widget(spec={"m": 2}, status={"ready": 3})
    obj["metadata"] = {"name": "w", "labels": {"a": "b"}, "resourceVersion": "5"}
    strategy.default(obj, old, context("status"))
    assert obj == {**widget(spec={"m": 1}, status={"ready": 3}), "metadata": {"name": "w", "resourceVersion": "5"}}
    assert not strategy.changes_generation(obj, old)


def test_replica_paths_must_hold_numbers():
    strategy = entry_of(definition()).strategy
    found = strategy.validate(widget(spec={"size": "x"}), None, context())
    assert [str(error) for error in found] == [
        'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
        ".spec.size: Invalid value: 0: .spec.size accessor error: x is of the type string, expected int64",
    ]


def test_nothing_is_created_while_the_definition_goes():
    crd = definition()
    crd["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    with pytest.raises(StatusError) as refused:
        entry_of(crd).strategy.default(widget(), None, context())
    assert refused.value.code == 405


@pytest.mark.parametrize(
    ("path", "cell"),
    [
        (".spec.a", "1"),
        (".spec.nope", None),
        (".spec.null", "<no value>"),
        (".spec.list[1].n", "y"),
        (".spec.list[*].n", "x"),
        (".spec.list[0:2].n", "x"),
        (".spec.list[0:3].n", None),
        (".spec.list[-1:].n", "y"),
        (".spec.list[-1].n", "y"),
        (".spec.list[2].n", None),
        (".spec..n", "x"),
        (".spec['nope','a']", "1"),
        ('.spec.list[?(@.n=="y")].v', "2"),
        ('.spec.list[?(@.n!="y")].v', "1"),
        (".spec.list[?(@.v>1)].n", "y"),
        (".spec.list[?(@.n>1)].n", None),
        (r".metadata.annotations.example\.com/key", "k"),
        (r".metadata.annotations['example\.com/key']", "k"),
        (".metadata.annotations['example.com/key']", None),
        (".spec.list[0]", '{"n":"x","v":1}'),
    ],
)
def test_columns_are_filled_as_a_kube_apiserver_fills_them(path, cell):
    obj = {
        "metadata": {"annotations": {"example.com/key": "k"}, "name": "n"},
        "spec": {"a": 1, "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}], "null": None},
    }
    _, column = columns([{"name": "C", "type": "string", "jsonPath": path}])
    assert column.cell(obj, NOW) == cell


def test_columns_of_training_operators_install_and_are_filled():
    paths = {
        "State": ".status.conditions[-1:].type",
        "First2": ".status.conditions[0:2].type",
        "Any": ".status..type",
        "Union": ".status['a','b']",
        "Ready": '.status.conditions[?(@.type=="Ready")].status',
        "Neg": ".status.conditions[-1].type",
    }
    declared = [{"name": name, "type": "string", "jsonPath": path} for name, path in paths.items()]
    assert refusals(with_columns(*declared)) == []
    conditions = [{"type": "Created", "status": "False"}, {"type": "Ready", "status": "True"}]
    obj = {"metadata": {"name": "n"}, "status": {"b": "second", "conditions": conditions}}
    cells = [column.cell(obj, NOW) for column in columns(declared)]
    assert cells == ["n", "Ready", "Created", "Created", "second", "True", "Ready"]
    assert [column.cell({"metadata": {"name": "n"}}, NOW) for column in columns(declared)] == ["n", *[None] * 6]


def test_columns_end_before_the_first_path_that_cannot_be_parsed():
    declared = [
        {"name": name, "type": "string", "jsonPath": path} for name, path in (("A", ".a"), ("B", ".a["), ("C", ".c"))
    ]
    assert [column.name for column in columns(declared)] == ["Name", "A"]
    assert refusals(with_columns(*declared)) == []


@pytest.mark.parametrize("path", ["a", "{.a}", "$.a", "@.a", " .a"])
def test_the_path_of_a_column_begins_with_a_dot(path):
    words = f'Invalid value: "{path}": must be a simple json path starting with .'
    errors = refusals(with_columns({"name": "A", "type": "string", "jsonPath": path}))
    assert errors == [f"spec.additionalPrinterColumns[0].JSONPath: {words}"]


def test_a_cell_that_needs_too_many_steps_stays_empty():
    nested = {"a": 1}
    for _ in range(40):
        nested = {"a": nested}
    nested["metadata"] = {"name": "n"}
    declared = [{"name": "A", "type": "string", "jsonPath": ".a" + "['a','a']" * 30}]
    assert [column.cell(nested, NOW) for column in columns(declared)] == ["n", None]


@pytest.mark.parametrize(
    ("webhook", "fields"),
    [
        ({}, []),
        ({"conversionReviewVersions": ["v1"]}, ["conversionReviewVersions"]),
        ({"conversionReviewVersions": [], "clientConfig": {}}, ["webhookClientConfig"]),
        (
            {"conversionReviewVersions": ["v1"], "clientConfig": {"service": {"name": "a", "namespace": "b"}}},
            ["webhookClientConfig", "conversionReviewVersions"],
        ),
    ],
)
def test_a_conversion_webhook_needs_the_strategy_webhook(webhook, fields):
    crd = definition(conversion={"strategy": "None", "webhook": webhook})
    words = "Forbidden: should not be set when strategy is not set to Webhook"
    assert refusals(crd) == [f"spec.conversion.{field}: {words}" for field in fields]


def test_cells_follow_the_type_of_their_column():
    declared = [
        {"name": "I", "type": "integer", "jsonPath": ".i"},
        {"name": "S", "type": "string", "jsonPath": ".s"},
        {"name": "D", "type": "date", "jsonPath": ".d"},
        {"name": "N", "type": "integer", "jsonPath": ".s"},
        {"name": "X", "type": "string", "jsonPath": ".nope"},
    ]
    obj = {"metadata": {"name": "n"}, "i": 3, "s": {"a": [1]}, "d": "2025-12-31T23:58:30Z"}
    assert [column.cell(obj, NOW) for column in columns(declared)] == ["n", 3, '{"a":[1]}', "90s", None, None]


def two_versions():
    crd = definition()
    second = copy.deepcopy(crd["spec"]["versions"][0])
    second.update(name="v2", storage=False)
    second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = {"n": {"type": "string", "default": "x"}}
    second["subresources"] = {}
    crd["spec"]["versions"].append(second)
    return crd


def test_another_version_shows_stored_objects_by_its_own_schema():
    registry = CrdRegistry()
    registry.reconcile(accepted(two_versions()), NOW)
    first, second = registry.served()
    assert first.from_storage is None
    assert second.stored_as == first.resource
    assert second.from_storage(widget(spec={"size": 3, "m": 1})) == {
        **widget(spec={"n": "x"}),
        "apiVersion": "example.com/v2",
    }


def test_a_changed_schema_shows_its_new_defaults_on_old_objects():
    crd = definition()
    crd["metadata"]["generation"] = 2
    assert entry_of(crd).from_storage(widget(spec={"old": 1})) == widget(spec={"m": 1})
