from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.patch import json_patch
from vcbatch.local.apiserver.patch.json_patch import JsonPatchError
from vcbatch.local.apiserver.patch.merge import merge
from vcbatch.local.apiserver.patch.strategic import strategic_merge

SCALARS = st.one_of(st.booleans(), st.integers(0, 3), st.text("ab", max_size=2))
OBJECTS = st.recursive(
    st.dictionaries(st.sampled_from("xyz"), SCALARS, max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("xyz"), st.one_of(SCALARS, inner), max_size=3),
    max_leaves=8,
)
KEYS = {"spec.containers": "name", "spec.containers.env": "name", "metadata.finalizers": "", "spec.ports": "port"}


@given(target=OBJECTS, patch=OBJECTS)
@settings(max_examples=80)
def test_a_merge_patch_twice_is_a_merge_patch_once(target: Any, patch: Any) -> None:
    once = merge(target, patch)

    assert merge(once, patch) == once


@given(target=OBJECTS, patch=OBJECTS)
@settings(max_examples=60)
def test_no_patch_changes_its_target(target: Any, patch: Any) -> None:
    before, given_patch = copy.deepcopy(target), copy.deepcopy(patch)

    merge(target, patch)
    strategic_merge(target, patch, {})

    assert (target, patch) == (before, given_patch)


@given(target=OBJECTS, patch=OBJECTS)
@settings(max_examples=80)
def test_without_lists_a_strategic_patch_is_a_merge_patch(target: Any, patch: Any) -> None:
    assert strategic_merge(target, patch, {}) == merge(target, patch)


def test_null_removes() -> None:
    assert merge({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"c": None}}) == {"b": {}}


def strategic(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    return strategic_merge({"spec": target}, {"spec": patch}, KEYS)["spec"]


TWO = {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ([{"name": "b", "image": "3"}], [{"name": "a", "image": "1"}, {"name": "b", "image": "3"}]),
        ([{"name": "c"}], [{"name": "c"}, {"name": "a", "image": "1"}, {"name": "b", "image": "2"}]),
        (
            [{"name": "c"}, {"name": "b", "image": "3"}],
            [{"name": "c"}, {"name": "a", "image": "1"}, {"name": "b", "image": "3"}],
        ),
        ([{"name": "a", "$patch": "delete"}], [{"name": "b", "image": "2"}]),
        ([{"$patch": "replace"}, {"name": "z"}], [{"name": "z"}]),
        ([{"name": "a", "image": None}], [{"name": "a"}, {"name": "b", "image": "2"}]),
        (
            [{"name": "a", "env": [{"name": "X", "value": "1"}]}],
            [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "2"}],
        ),
    ],
)
def test_lists_merge_by_their_key(patch: list[Any], expected: list[Any]) -> None:
    assert strategic(TWO, {"containers": patch})["containers"] == expected


def test_a_list_without_a_key_is_replaced() -> None:
    assert strategic({"args": ["a", "b"]}, {"args": ["c"]}) == {"args": ["c"]}


def test_a_list_of_scalars_merges_and_gives_up_what_is_deleted() -> None:
    target = {"metadata": {"finalizers": ["a/x", "a/y"]}}

    added = strategic_merge(target, {"metadata": {"finalizers": ["a/z", "a/x"]}}, KEYS)
    removed = strategic_merge(target, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/x"]}}, KEYS)

    assert added["metadata"]["finalizers"] == ["a/z", "a/x", "a/y"]
    assert removed["metadata"]["finalizers"] == ["a/y"]


def test_the_element_order_of_the_patch_is_taken() -> None:
    patch = {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "a", "image": "9"}]}

    assert [one["name"] for one in strategic(TWO, patch)["containers"]] == ["b", "a"]


def test_retain_keys_drops_the_others() -> None:
    patch = {"$retainKeys": ["type"], "type": "Recreate"}

    assert strategic({"type": "Rolling", "rolling": {"max": 1}}, patch) == {"type": "Recreate"}


def test_an_element_without_its_key_is_refused() -> None:
    with pytest.raises(StatusError, match="does not contain declared merge key: name"):
        strategic(TWO, {"containers": [{"image": "x"}]})


def test_an_unknown_directive_is_refused() -> None:
    with pytest.raises(StatusError, match="unknown patch type: nonsense"):
        strategic(TWO, {"$patch": "nonsense"})


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/a/1", "value": 9}], {"a": [1, 9, 2]}),
        ([{"op": "add", "path": "/a/-", "value": 9}], {"a": [1, 2, 9]}),
        ([{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ([{"op": "replace", "path": "/a/0", "value": None}], {"a": [None, 2]}),
        ([{"op": "copy", "from": "/a/0", "path": "/b"}], {"a": [1, 2], "b": 1}),
        ([{"op": "move", "from": "/a", "path": "/b"}], {"b": [1, 2]}),
        ([{"op": "add", "path": "/x~1y~0", "value": 1}], {"a": [1, 2], "x/y~": 1}),
        ([{"op": "test", "path": "/a/0", "value": 1}], {"a": [1, 2]}),
        ([{"op": "test", "path": "/nothing", "value": None}], {"a": [1, 2]}),
    ],
)
def test_json_patch_operations(operations: list[Any], expected: Any) -> None:
    assert json_patch.apply({"a": [1, 2]}, operations) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/b"},
        {"op": "replace", "path": "/a/7", "value": 1},
        {"op": "add", "path": "", "value": {}},
        {"op": "add", "path": "/b/c", "value": 1},
        {"op": "add", "path": "/a/7", "value": 1},
        {"op": "test", "path": "/a/0", "value": True},
        {"op": "nonsense", "path": "/a"},
        {"op": "add", "path": "a", "value": 1},
        "text",
    ],
)
def test_json_patch_refuses_what_cannot_be_done(operation: Any) -> None:
    document = {"a": [1, 2]}

    with pytest.raises(JsonPatchError):
        json_patch.apply(document, [{"op": "add", "path": "/a/-", "value": 3}, operation])
    assert document == {"a": [1, 2]}


def test_json_patch_is_bounded() -> None:
    many = [{"op": "test", "path": "/a", "value": 1}] * (json_patch.MAXIMUM_OPERATIONS + 1)

    with pytest.raises(JsonPatchError, match="allowed maximum operations"):
        json_patch.apply({"a": 1}, many)
