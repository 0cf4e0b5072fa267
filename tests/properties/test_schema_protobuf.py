"""Protobuf bodies: what a client encodes is what the server reads, and nothing breaks the decoder."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.protobuf import chunk, encode, varint
from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.protobuf import decode
from vcbatch.local.apiserver.schema import builtin
from vcbatch.local.apiserver.schema.types import Field, Struct, kind_struct, structs

KINDS = [
    ("v1", "Pod"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "Node"),
    ("v1", "Event"),
    ("v1", "ResourceQuota"),
    ("v1", "Binding"),
    ("apps/v1", "Deployment"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("autoscaling/v1", "Scale"),
    ("policy/v1", "Eviction"),
    ("policy/v1", "PodDisruptionBudget"),
    ("coordination.k8s.io/v1", "Lease"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("authentication.k8s.io/v1", "TokenRequest"),
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
    ("v1", "DeleteOptions"),
]
TEXT = st.text(min_size=1, max_size=8)
SCALARS = {
    "string": TEXT,
    "bool": st.booleans(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint8": st.integers(0, 255),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "bytes": st.binary(min_size=1, max_size=8).map(lambda raw: base64.b64encode(raw).decode()),
    "Quantity": st.integers(1, 10**6).map(str),
    "Time": st.integers(0, 2_000_000_000).map(lambda s: _time(s).strftime("%Y-%m-%dT%H:%M:%SZ")),
    "MicroTime": st.integers(0, 2_000_000_000).map(lambda s: _time(s).strftime("%Y-%m-%dT%H:%M:%S.%fZ")),
    "IntOrString": st.integers(0, 1000) | TEXT,
    "Values": st.lists(TEXT, min_size=1, max_size=3),
    "RawExtension": st.dictionaries(TEXT, st.integers(-(2**63), 2**63 - 1), max_size=2),
    "FieldsV1": st.dictionaries(TEXT, st.just({}), max_size=2),
}


def _time(seconds):
    return datetime.fromtimestamp(seconds, UTC)


@st.composite
def values(draw, type_, depth):
    if type_ in structs():
        return draw(objects(structs()[type_], depth + 1))
    return draw(SCALARS[type_])


@st.composite
def objects(draw, of: Struct, depth=0):
    """An object of a type with some of its fields set, to values that Go keeps."""
    fields = [field for field in _encodable(of) if depth < 4 or field.type not in structs()]
    chosen = draw(st.lists(st.sampled_from(fields), max_size=4, unique_by=lambda f: f.name)) if fields else []
    obj = {}
    for field in chosen:
        one = values(field.type, depth)
        if field.container == "list":
            value = draw(st.lists(one, min_size=1, max_size=3))
        elif field.container == "map":
            value = draw(st.dictionaries(TEXT, one, min_size=1, max_size=3))
        else:
            value = draw(one)
        if builtin.kept(value, field):
            obj[field.name] = value
    return obj


def _encodable(of: Struct) -> list[Field]:
    found = []
    for field in of.own:
        if field.inline and field.number:
            found += _encodable(structs()[field.type])
        elif field.number and not field.inline:
            found.append(field)
    return found


@st.composite
def bodies(draw):
    api_version, kind = draw(st.sampled_from(KINDS))
    known = kind_struct(api_version=api_version, kind=kind)
    return {**draw(objects(known)), "apiVersion": api_version, "kind": kind}


@settings(max_examples=examples(150))
@given(bodies())
def test_what_is_encoded_is_what_is_decoded(obj):
    assert decode(encode(obj)) == obj


@settings(max_examples=examples(150))
@given(bodies(), st.data())
def test_damaged_bodies_are_refused_or_read_but_never_break(obj, data):
    body = bytearray(encode(obj))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(body[: data.draw(st.integers(0, len(body)))])
    _refused_or_read(damaged)


@settings(max_examples=examples(150))
@given(st.binary(max_size=64))
def test_noise_is_refused_or_read_but_never_breaks(noise):
    _refused_or_read(noise)
    _refused_or_read(b"k8s\0" + noise)
    type_meta = chunk(1, chunk(1, b"v1") + chunk(2, b"Pod"))
    _refused_or_read(b"k8s\0" + type_meta + chunk(2, noise))


def _refused_or_read(body):
    try:
        assert isinstance(decode(body), dict)
    except StatusError as error:
        assert error.code == 400


def test_kinds_without_a_bound_on_nesting_must_come_as_json():
    type_meta = chunk(1, chunk(1, b"apiextensions.k8s.io/v1") + chunk(2, b"CustomResourceDefinition"))
    with pytest.raises(StatusError, match="send JSON"):
        decode(b"k8s\0" + type_meta)


def test_a_length_beyond_the_body_is_refused():
    type_meta = chunk(1, chunk(1, b"v1") + chunk(2, b"Pod"))
    with pytest.raises(StatusError, match="unexpected EOF"):
        decode(b"k8s\0" + type_meta + b"\x12" + varint(2**62) + b"x")


def test_zero_values_behind_pointers_stay_and_others_go():
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 0}}
    assert decode(encode(scale))["spec"] == {}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 0}}
    assert decode(encode(deployment))["spec"] == {"replicas": 0}
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    assert decode(encode(options)) == options
