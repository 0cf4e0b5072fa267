"""Built-in objects decode as Go's types do."""

from __future__ import annotations

import pytest

from vcbatch.local.apiserver.apierrors import DecodeError
from vcbatch.local.apiserver.schema import builtin
from vcbatch.local.apiserver.schema.types import kind_struct, merge_keys, structs


def test_unknown_fields_are_named_with_their_place_and_dropped():
    pod = {"spec": {"containers": [{"name": "a"}, {"name": "b", "imag": "x"}], "volumes": [{"nam": "v"}]}, "top": 1}
    assert builtin.decode("core/v1.Pod", pod) == [
        'unknown field "spec.containers[1].imag"',
        'unknown field "spec.volumes[0].nam"',
        'unknown field "top"',
    ]
    assert "top" not in pod
    assert "imag" not in pod["spec"]["containers"][1]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"containers": "x"},
            "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            {"containers": [{"ports": [{"containerPort": "80"}]}]},
            (
                "json: cannot unmarshal string into Go struct field "
                "ContainerPort.spec.containers.ports.containerPort of type int32"
            ),
        ),
        (
            {"activeDeadlineSeconds": 1.5},
            "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64",
        ),
        (
            {"priority": 2**31},
            "json: cannot unmarshal number 2147483648 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            {"nodeSelector": ["a"]},
            "json: cannot unmarshal array into Go struct field PodSpec.spec.nodeSelector of type map[string]string",
        ),
        (
            {"overhead": {"cpu": "1 core"}},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ],
)
def test_wrong_types_are_refused_in_the_words_of_go(spec, text):
    with pytest.raises(DecodeError) as refused:
        builtin.decode("core/v1.Pod", {"spec": spec})
    assert str(refused.value) == text


def test_quantities_may_be_numbers_and_become_text():
    pod = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 2, "memory": 0.5}}}]}}
    assert builtin.decode("core/v1.Pod", pod) == []
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "2", "memory": "500m"}


def test_zero_values_go_unless_a_pointer_means_them_or_go_always_writes_them():
    pod = {
        "metadata": {"labels": {}, "creationTimestamp": None, "name": ""},
        "spec": {
            "hostNetwork": False,
            "nodeName": "",
            "priority": 0,
            "tolerations": [],
            "enableServiceLinks": False,
            "containers": [{"name": "c"}],
        },
    }
    builtin.decode("core/v1.Pod", pod)
    assert pod == {
        "metadata": {},
        "spec": {"priority": 0, "enableServiceLinks": False, "containers": [{"name": "c", "resources": {}}]},
        "status": {},
    }


def test_the_events_of_two_groups_have_their_own_fields():
    newer, older = (kind_struct(api_version=version, kind="Event") for version in ("events.k8s.io/v1", "v1"))
    assert newer and builtin.decode(newer.key, {"note": "n"}) == []
    assert older and builtin.decode(older.key, {"note": "n"}) == ['unknown field "note"']


def test_base64_faults_name_their_byte():
    with pytest.raises(DecodeError, match="illegal base64 data at input byte 0"):
        builtin.decode("core/v1.ConfigMap", {"binaryData": {"k": "!!!"}})


def test_unknown_fields_of_a_schema_in_a_definition_are_found():
    crd = {"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": {"a": {"typ": "string"}}}}}]}}
    assert builtin.decode("apiextensions/v1.CustomResourceDefinition", crd) == [
        'unknown field "spec.versions[0].schema.openAPIV3Schema.properties.a.typ"'
    ]


def test_merge_keys_follow_from_the_types():
    keys = merge_keys("apps/v1.Deployment")
    assert keys["spec.template.spec.containers"] == "name"
    assert keys["spec.template.spec.containers.ports"] == "containerPort"
    assert keys["metadata.finalizers"] == ""
    assert "spec.template.spec.tolerations" not in keys


@pytest.mark.parametrize(
    ("api_version", "kind", "key"),
    [
        ("v1", "Pod", "core/v1.Pod"),
        ("rbac.authorization.k8s.io/v1", "Role", "rbac/v1.Role"),
        ("batch/v1", "DeleteOptions", "meta/v1.DeleteOptions"),
        ("batch/v9", "Job", None),
    ],
)
def test_kinds_find_their_types(api_version, kind, key):
    found = kind_struct(api_version=api_version, kind=kind)
    assert (found and found.key) == key


def test_the_table_is_whole():
    for key, struct in structs().items():
        numbers = [field.number for field in struct.own if field.number]
        assert len(numbers) == len(set(numbers)), key
        for field in struct.own:
            assert "." not in field.type or field.type in structs(), (key, field.name)


def test_the_table_knows_every_field_of_the_installed_client():
    models = pytest.importorskip("kubernetes.client.models")
    from vcbatch.local.apiserver.schema.descriptions import _model_names

    missing = []
    for key, struct in structs().items():
        model = next((found for name in _model_names(key) if (found := getattr(models, name, None))), None)
        for name, field in getattr(model, "model_fields", {}).items():
            wire = (field.serialization_alias or field.alias or name).removeprefix("_")
            if wire.replace("_", "") not in {known.replace("$", "").replace("-", "") for known in struct.fields} and (
                not key.startswith("apiextensions/")
            ):
                missing.append(f"{key}.{wire}")
    assert missing == []
