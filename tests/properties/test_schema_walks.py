"""The walks over objects hold for any schema and any value."""

from __future__ import annotations

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from vcbatch.local.apiserver.apierrors import DecodeError
from vcbatch.local.apiserver.schema import builtin
from vcbatch.local.apiserver.schema.embedded import validate_embedded
from vcbatch.local.apiserver.schema.lists import validate_lists
from vcbatch.local.apiserver.schema.pruning import apply_defaults, prune
from vcbatch.local.apiserver.schema.structural import compile_schema
from vcbatch.local.apiserver.schema.types import structs
from vcbatch.local.apiserver.schema.validation import validate_schema

NAMES = st.sampled_from(["a", "b", "c", "metadata", "spec"])
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
SCALAR = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer", "boolean", "number"])},
    optional={
        "nullable": st.booleans(),
        "minimum": st.integers(-5, 5),
        "maxLength": st.integers(0, 3),
        "format": st.sampled_from(["date-time", "int32", "ipv4", "unheard-of"]),
        "enum": st.lists(st.integers(0, 3) | st.text(max_size=2), min_size=1, max_size=3),
    },
)


def _grown(inner):
    listed = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={"x-kubernetes-list-type": st.sampled_from(["atomic", "set"]), "maxItems": st.integers(0, 2)},
    )
    mapped = st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner})
    record = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)},
        optional={
            "required": st.lists(NAMES, max_size=2, unique=True),
            "x-kubernetes-preserve-unknown-fields": st.just(True),
            "default": st.just({}),
            "nullable": st.booleans(),
        },
    )
    return listed | mapped | record


SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(NAMES, st.recursive(SCALAR, _grown, max_leaves=6))}
)
OBJECTS = st.dictionaries(NAMES.filter(lambda name: name != "metadata"), JSON, max_size=4)


@settings(max_examples=examples(150))
@given(SCHEMAS, OBJECTS)
def test_pruning_and_defaulting_settle_at_once(schema, obj):
    node = compile_schema(schema)
    prune(obj, node)
    assert prune(obj, node) == []
    apply_defaults(obj, node)
    settled = copy.deepcopy(obj)
    prune(obj, node)
    apply_defaults(obj, node)
    assert obj == settled


@settings(max_examples=examples(150))
@given(SCHEMAS, OBJECTS, OBJECTS)
def test_validation_changes_nothing_and_forgives_what_did_not_change(schema, obj, other):
    node = compile_schema(schema)
    before = copy.deepcopy((obj, other))
    errors = validate_schema(obj, node)
    assert validate_schema(obj, node, old=copy.deepcopy(obj)) == []
    assert len(validate_schema(obj, node, old=other)) <= len(errors)
    validate_lists(obj, node)
    validate_embedded(obj, node)
    assert (obj, other) == before


@settings(max_examples=examples(200))
@given(st.sampled_from(sorted(structs())), st.data())
def test_built_in_decoding_settles_at_once_or_refuses(key, data):
    names = [*structs()[key].fields, "unheardOf"]
    obj = data.draw(st.dictionaries(st.sampled_from(names), JSON, max_size=4))
    try:
        builtin.decode(key, obj)
    except DecodeError:
        return
    settled = copy.deepcopy(obj)
    assert builtin.decode(key, obj) == []
    assert obj == settled
