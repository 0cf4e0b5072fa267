"""Custom resources are pruned, defaulted and validated in the words of a real API server."""

from __future__ import annotations

import re

import pytest

from vcbatch.local.apiserver.schema.embedded import validate_embedded
from vcbatch.local.apiserver.schema.lists import validate_lists
from vcbatch.local.apiserver.schema.patterns import PatternError, regular_expression
from vcbatch.local.apiserver.schema.pruning import apply_defaults, prune
from vcbatch.local.apiserver.schema.structural import compile_schema
from vcbatch.local.apiserver.schema.validation import go_float, validate_schema


def errors(schema, value, **options):
    errors = validate_schema({"x": value}, compile_schema({"type": "object", "properties": {"x": schema}}), **options)
    return [(error.field, error.message) for error in errors]


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"type": "integer"}, "2", 'Invalid value: "string": x in body must be of type integer: "string"'),
        ({"type": "string"}, None, 'Invalid value: "null": x in body must be of type string: "null"'),
        ({"type": "boolean"}, 1, 'Invalid value: "integer": x in body must be of type boolean: "integer"'),
        ({"type": "integer", "minimum": 1}, 0, "Invalid value: 0: x in body should be greater than or equal to 1"),
        (
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
            1,
            "Invalid value: 1: x in body should be greater than 1",
        ),
        (
            {"type": "number", "maximum": 0.5},
            0.75,
            "Invalid value: 0.75: x in body should be less than or equal to 0.5",
        ),
        ({"type": "integer", "multipleOf": 3}, 4, "Invalid value: 4: x in body should be a multiple of 3"),
        ({"type": "string", "maxLength": 2}, "abc", "Too long: may not be more than 2 bytes"),
        ({"type": "string", "minLength": 2}, "a", 'Invalid value: "a": x in body should be at least 2 chars long'),
        ({"type": "string", "pattern": "^a$"}, "ab", "Invalid value: \"ab\": x in body should match '^a$'"),
        ({"type": "string", "format": "date-time"}, "soon", None),
        ({"type": "string", "enum": ["a", "b"]}, "c", 'Unsupported value: "c": supported values: "a", "b"'),
        ({"type": "integer", "enum": [1, 2]}, 3, 'Unsupported value: 3: supported values: "1", "2"'),
        (
            {"type": "array", "items": {"type": "string"}, "maxItems": 1},
            ["a", "b"],
            "Too many: 2: must have at most 1 item",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
            [],
            "Invalid value: 0: x in body should have at least 1 items",
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
            {},
            "Invalid value: 0: x in body should have at least 1 properties",
        ),
        (
            {"x-kubernetes-int-or-string": True},
            1.5,
            'Invalid value: "number": x in body must be of type integer,string: "number"',
        ),
    ],
)
def test_each_constraint_has_its_words(schema, value, message):
    found = errors(schema, value)
    assert [field for field, _ in found] == ["x"]
    if message is not None:
        assert found[0][1] == message


@pytest.mark.parametrize("value", [2, 2.0, -(2**63)])
def test_whole_numbers_are_integers(value):
    assert errors({"type": "integer"}, value) == []


def test_alternatives_report_what_came_closest():
    schema = {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert errors(schema, {})[0] == (
        "<nil>",
        'Invalid value: "": "x" must validate one and only one schema (oneOf). Found none valid',
    )
    assert errors(schema, {"a": 1, "b": 2}) == [
        ("<nil>", 'Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives')
    ]
    assert errors(schema, {"a": 1}) == []
    assert errors({"not": {"enum": [1]}}, 1) == [("<nil>", 'Invalid value: "": "x" must not validate the schema (not)')]
    assert errors({"anyOf": [{"minimum": 5}, {"maximum": 1}]}, 3)[0][1].endswith("validate at least one schema (anyOf)")
    assert errors({"allOf": [{"minimum": 5}]}, 3)[-1][1].endswith("(allOf). None validated")


def test_the_status_is_named_in_the_field_but_not_in_the_text():
    node = compile_schema({"type": "object", "properties": {"ready": {"type": "integer"}}})
    (error,) = validate_schema({"ready": "x"}, node, base="status")
    assert (error.field, error.message) == (
        "status.ready",
        'Invalid value: "string": ready in body must be of type integer: "string"',
    )


def test_what_did_not_change_is_not_held_against_an_update():
    schema = {"type": "object", "properties": {"x": {"type": "integer", "maximum": 1}, "y": {"type": "integer"}}}
    node = compile_schema(schema)
    assert validate_schema({"x": 5, "y": 2}, node, old={"x": 5, "y": 1}) == []
    assert len(validate_schema({"x": 6, "y": 2}, node, old={"x": 5, "y": 1})) == 1


def test_map_lists_compare_items_by_key():
    item = {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer", "maximum": 1}}}
    node = compile_schema(
        {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item}
    )
    old = [{"k": "a", "v": 9}]
    assert validate_schema([{"k": "new", "v": 0}, {"k": "a", "v": 9}], node, old=old) == []
    assert len(validate_schema([{"k": "new", "v": 9}, {"k": "a", "v": 9}], node, old=old)) == 1


def test_duplicates_of_sets_and_map_lists():
    schema = {
        "type": "object",
        "properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "map": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": {"type": "string"}}},
            },
        },
    }
    value = {"set": ["a", "b", "a"], "map": [{"k": "x", "v": 1}, {"k": "x", "v": 2}]}
    assert [str(error) for error in validate_lists(value, compile_schema(schema))] == [
        'map[1]: Duplicate value: {"k":"x"}',
        'set[2]: Duplicate value: "a"',
    ]


def test_embedded_objects_need_a_type():
    schema = {
        "type": "object",
        "properties": {
            "o": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            }
        },
    }
    found = validate_embedded({"o": {"kind": "A_"}}, compile_schema(schema))
    assert [error.field for error in found] == ["o.apiVersion", "o.kind"]


SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "known": {"type": "string"},
                "any": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"strict": {"type": "object", "properties": {"a": {"type": "string"}}}},
                },
                "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {}}}},
                "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"default": 1}}}},
                "mode": {"type": "string", "default": "on"},
                "gone": {"type": "string"},
                "nul": {"type": "string", "nullable": True},
            },
        }
    },
}


def test_pruning_names_what_it_drops_and_keeps_what_the_schema_keeps():
    obj = {
        "apiVersion": "g/v1",
        "kind": "K",
        "metadata": {"name": "n", "foo": 1},
        "spec": {
            "known": "a",
            "bogus": {"deep": 1},
            "any": {"free": {"x": 1}, "strict": {"a": "b", "c": 1}},
            "map": {"one": {"a": 1, "b": 2}},
            "list": [{"a": 1}, {"b": 1}],
        },
        "top": 1,
    }
    assert prune(obj, compile_schema(SCHEMA)) == [
        "metadata.foo",
        "spec.any.strict.c",
        "spec.bogus",
        "spec.list[1].b",
        "spec.map.one.b",
        "top",
    ]
    assert obj["spec"]["any"] == {"free": {"x": 1}, "strict": {"a": "b"}}


def test_defaults_replace_what_is_absent_or_null_where_null_is_not_allowed():
    obj = {"spec": {"mode": None, "gone": None, "nul": None, "list": [{}, {"a": 2}]}}
    apply_defaults(obj, compile_schema(SCHEMA))
    assert obj == {"spec": {"mode": "on", "nul": None, "list": [{"a": 1}, {"a": 2}]}}


@pytest.mark.parametrize(
    ("value", "text"), [(0.5, "0.5"), (2.0, "2"), (1e6, "1e+06"), (1e20, "1e+20"), (-1.25e-7, "-1.25e-07"), (0.0, "0")]
)
def test_floats_print_as_go_prints_them(value, text):
    assert go_float(value) == text


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a\n", False),
        (r"^a\z", "a", True),
        ("^[[:alpha:]]+$", "abc", True),
        ("^[[:digit:]$]+$", "1$", True),
        (r"^\d$", "٣", False),
        (r"^a\$$", "a$", True),
        ("^[]a]+$", "]a", True),
        (r"^\p{Greek}$", "α", True),
        ("^(a+)+$", "a" * 10_000 + "b", False),  # an engine that backtracks would never come back
    ],
)
def test_patterns_mean_what_they_mean_in_go(pattern, text, matches):
    assert bool(regular_expression(pattern).search(text)) is matches


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(a", "missing closing ): `(a`"),
        ("[a", "missing closing ]: `[a`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
    ],
)
def test_faulty_patterns_are_refused_in_the_words_of_go(pattern, words):
    with pytest.raises(PatternError, match=f"^error parsing regexp: {re.escape(words)}$"):
        regular_expression(pattern)
