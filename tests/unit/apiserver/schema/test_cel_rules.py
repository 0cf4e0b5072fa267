"""Rules of custom resources in CEL."""

from __future__ import annotations

import pytest

from vcbatch.local.apiserver.schema import cel
from vcbatch.local.apiserver.schema.structural import compile_schema

INTEGER = {"type": "integer"}


def errors(rules, properties, value, **options):
    node = compile_schema(
        {
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": properties, "x-kubernetes-validations": rules},
            },
        }
    )
    if "old" in options:
        options["old"] = {"spec": options["old"]}
    return [str(error) for error in cel.validate_rules({"spec": value}, node, **options)]


def test_a_broken_rule_says_its_message():
    rule = {"rule": "!has(self.lo) || self.lo <= self.hi", "message": "lo must not exceed hi"}
    properties = {"lo": INTEGER, "hi": INTEGER}
    assert errors([rule], properties, {"lo": 5, "hi": 1}) == ["spec: Invalid value: lo must not exceed hi"]
    assert errors([rule], properties, {"hi": 1}) == []


def test_without_a_message_the_rule_itself_is_shown():
    assert errors([{"rule": "self.a > 1"}], {"a": INTEGER}, {"a": 0}) == [
        "spec: Invalid value: failed rule: self.a > 1"
    ]


def test_a_message_expression_wins_where_it_gives_text():
    rule = {"rule": "self.a > 1", "messageExpression": "'a is ' + string(self.a)", "message": "no"}
    assert errors([rule], {"a": INTEGER}, {"a": 0}) == ["spec: Invalid value: a is 0"]
    rule["messageExpression"] = "self.nope"
    assert errors([rule], {"a": INTEGER}, {"a": 0}) == ["spec: Invalid value: no"]


def test_transition_rules_wait_for_an_old_value():
    rule = {"rule": "self.a >= oldSelf.a", "message": "a can't shrink"}
    assert errors([rule], {"a": INTEGER}, {"a": 1}) == []
    assert errors([rule], {"a": INTEGER}, {"a": 1}, old={"a": 2}) == ["spec: Invalid value: a can't shrink"]
    optional = {"rule": "!oldSelf.hasValue() || self.a >= oldSelf.value().a", "optionalOldSelf": True, "message": "m"}
    assert errors([optional], {"a": INTEGER}, {"a": 1}) == []
    assert errors([optional], {"a": INTEGER}, {"a": 1}, old={"a": 2}) == ["spec: Invalid value: m"]


def test_rules_are_not_held_against_what_did_not_change():
    rule = {"rule": "self.a > 1", "message": "m"}
    assert errors([rule], {"a": INTEGER}, {"a": 0}, old={"a": 0}) == []


def test_reason_and_field_path_are_the_rules_own():
    rule = {"rule": "false", "message": "m", "reason": "FieldValueForbidden", "fieldPath": ".a"}
    assert errors([rule], {"a": INTEGER}, {"a": 0}) == ["spec.a: Forbidden: m"]


def test_a_broken_rule_of_a_scalar_shows_the_value():
    properties = {"a": {**INTEGER, "x-kubernetes-validations": [{"rule": "self > 1", "message": "m"}]}}
    assert errors([], properties, {"a": 0}) == ["spec.a: Invalid value: 0: m"]


def test_a_rule_that_fails_to_run_says_why():
    rule = {"rule": "self.b == 1", "message": "m"}
    assert errors([rule], {"a": INTEGER, "b": INTEGER}, {"a": 0}) == [
        'spec: Invalid value: "object": no such key: b evaluating rule: m'
    ]


@pytest.mark.parametrize(
    ("rule", "properties", "value"),
    [
        ("self.n * 2.0 == 6.0", {"n": {"type": "number"}}, {"n": 3}),
        ("self.t > timestamp('2020-01-01T00:00:00Z')", {"t": {"type": "string", "format": "date-time"}},
         {"t": "2021-01-01T00:00:00Z"}),
        ("self.d < duration('2h')", {"d": {"type": "string", "format": "duration"}}, {"d": "90m"}),
        ("self.__namespace__ == 'x' && self.a__dash__b == 1",
         {"namespace": {"type": "string"}, "a-b": INTEGER}, {"namespace": "x", "a-b": 1}),
        ("quantity(self.q).isLessThan(quantity('1Gi'))", {"q": {"type": "string"}}, {"q": "900Mi"}),
        ("self.l.isSorted() && self.l.sum() == 6", {"l": {"type": "array", "items": INTEGER}}, {"l": [1, 2, 3]}),
        ("self.s.lowerAscii() == 'ab' && self.s.find('[A-Z]') == 'A'", {"s": {"type": "string"}}, {"s": "Ab"}),
        ("self.m.all(k, k.startsWith('a') && self.m[k] > 0)",
         {"m": {"type": "object", "additionalProperties": INTEGER}}, {"m": {"ab": 1, "ac": 2}}),
    ],
)  # fmt: skip
def test_values_have_the_types_of_their_schema(rule, properties, value):
    assert errors([{"rule": rule}], properties, value) == []
    assert cel.rule_error(rule) == ""


@pytest.mark.parametrize("rule", ["self.a >", "nope.a == 1", "self.a.frobnicate()"])
def test_a_rule_that_cannot_work_is_refused_when_it_is_declared(rule):
    assert cel.rule_error(rule).startswith("compilation failed: ")


def test_rules_reach_into_lists_and_maps():
    item = {"type": "object", "properties": {"v": INTEGER}, "x-kubernetes-validations": [{"rule": "self.v > 0"}]}
    node = compile_schema(
        {
            "type": "object",
            "properties": {
                "l": {"type": "array", "items": item},
                "m": {"type": "object", "additionalProperties": item},
            },
        }
    )
    found = cel.validate_rules({"l": [{"v": 1}, {"v": 0}], "m": {"k": {"v": 0}}}, node)
    assert [error.field for error in found] == ["l[1]", "m[k]"]
