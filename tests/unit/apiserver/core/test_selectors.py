from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.selectors import parse_fields, parse_labels, value_at

NAMES = st.text("abc", min_size=1, max_size=2)
LABELS = st.dictionaries(NAMES, NAMES, max_size=3)


def matches(selector: str, labels: dict[str, str]) -> bool:
    parsed = parse_labels(selector)
    return parsed is None or parsed.matches(labels)


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        ("", {}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "c"}, False),
        ("a!=b", {}, True),
        ("a in (b, c)", {"a": "c"}, True),
        ("a in (b,)", {"a": ""}, True),
        ("a notin (b)", {}, True),
        ("a notin (b)", {"a": "b"}, False),
        ("a>3", {"a": "4"}, True),
        ("a<3", {"a": "3"}, False),
        ("a>3", {"a": "x"}, False),
        ("a=", {"a": ""}, True),
        ("in=notin", {"in": "notin"}, True),
        ("x.io/a=b , c", {"x.io/a": "b", "c": "1"}, True),
    ],
)
def test_label_selectors_select(selector: str, labels: dict[str, str], expected: bool) -> None:
    assert matches(selector, labels) is expected


@given(labels=LABELS, key=NAMES, values=st.lists(NAMES, min_size=1, max_size=3))
@settings(max_examples=60)
def test_notin_is_the_opposite_of_in(labels: dict[str, str], key: str, values: list[str]) -> None:
    listed = ",".join(values)

    assert matches(f"{key} in ({listed})", labels) is not matches(f"{key} notin ({listed})", labels)


@given(labels=LABELS, left=NAMES, right=NAMES)
@settings(max_examples=60)
def test_a_comma_means_and(labels: dict[str, str], left: str, right: str) -> None:
    assert matches(f"{left},!{right}", labels) is (matches(left, labels) and matches(f"!{right}", labels))


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
    ],
)
def test_faulty_label_selectors_are_refused_in_kubernetes_words(selector: str, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_labels(selector)

    assert (refused.value.code, refused.value.message) == (400, message)


def test_field_selectors_compare_strings() -> None:
    selector = parse_fields("status.phase!=Running,spec.nodeName=", known=["status.phase", "spec.nodeName"], named=True)
    assert selector

    assert selector.matches(lambda path: {"status.phase": "Pending"}.get(path, ""))
    assert not selector.matches(lambda path: {"status.phase": "Pending", "spec.nodeName": "n"}.get(path, ""))


def test_escaped_commas_belong_to_the_value() -> None:
    selector = parse_fields(r"metadata.name=a\,b", known=[], named=False)

    assert selector and selector.name == "a,b"


def test_unknown_fields_are_refused_in_the_words_of_the_kind() -> None:
    with pytest.raises(StatusError, match=r"field label not supported: spec\.x"):
        parse_fields("spec.x=1", known=[], named=True)
    with pytest.raises(StatusError, match=r'"spec\.x" is not a known field selector'):
        parse_fields("spec.x=1", known=[], named=False)


def test_booleans_and_numbers_are_compared_as_text() -> None:
    obj = {"spec": {"unschedulable": True, "size": 3}}

    assert [value_at(obj, path) for path in ("spec.unschedulable", "spec.size", "spec.none.at.all")] == [
        "true",
        "3",
        "",
    ]
