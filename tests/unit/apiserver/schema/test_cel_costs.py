"""What rules of custom resources may cost: estimated when they are declared, limited while they run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver.core.servers import Client, server, virtual
from vcbatch.api import cel as language
from vcbatch.local.apiserver import expressions
from vcbatch.local.apiserver.schema import cel
from vcbatch.local.apiserver.schema.structural import compile_schema

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TEXT: dict[str, Any] = {"type": "string"}
MAP: dict[str, Any] = {"type": "object"}
SHORT: dict[str, Any] = {"type": "string", "maxLength": 20}
EXCEEDS = "exceeds budget by factor of"
HINT = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are"


def array(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def definition(properties: dict[str, Any], *rules: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {"type": "object", "properties": properties, "x-kubernetes-validations": list(rules)}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


async def declared(client: Client, properties: dict[str, Any], *rules: str) -> tuple[int, str]:
    answer = await client.post(CRDS, definition(properties, *({"rule": rule} for rule in rules)))
    return answer.code, answer.body.get("message", "")


@pytest.mark.parametrize(
    ("rule", "properties"),
    [
        ("self.a.all(x, self.a.all(y, x == y))", {"a": array(TEXT)}),
        ("self.a.all(x, self.a.all(y, x == y))", {"a": array(TEXT, maxItems=100)}),
        ("self.a.all(x, x.contains('something'))", {"a": array(TEXT)}),
        ("self.a.all(x, x in self.b)", {"a": array(SHORT), "b": array(SHORT)}),
        ("self.m.all(k, self.m[k].all(x, self.m.all(l, x != l)))", {"m": {**MAP, "additionalProperties": array(TEXT)}}),
        ("['a']" + ".map(x, x + x)" * 40 + ".size() == 1 || self.a == ''", {"a": TEXT}),
        ("lists.range(3).map(x, self.a).map(x, self.a.map(y, self.a.map(z, 1))).size() > 0", {"a": array(SHORT)}),
    ],
)  # fmt: skip
def test_a_rule_that_may_cost_too_much_is_refused_when_it_is_declared(rule: str, properties: dict[str, Any]) -> None:
    @virtual
    async def play() -> None:
        async with server() as client:
            code, message = await declared(client, properties, rule)
            assert code == 422
            assert f"x-kubernetes-validations[0].rule: Forbidden: estimated rule cost {EXCEEDS}" in message
            assert HINT in message

    play()


@pytest.mark.parametrize(
    ("rule", "properties"),
    [
        ("self.a.all(x, self.a.all(y, x == y))", {"a": array(SHORT, maxItems=100)}),
        ("self.a.all(x, x.startsWith('a'))", {"a": array(TEXT)}),
        ("self.a.size() < 10 && self.a.isSorted()", {"a": array({"type": "integer"})}),
        ("self.s.matches('^[a-z0-9-]+$') && self.s == oldSelf.s", {"s": TEXT}),
        ("self.m.all(k, k.startsWith('x'))", {"m": {"type": "object", "additionalProperties": SHORT}}),
    ],
)
def test_rules_that_real_definitions_have_are_taken(rule: str, properties: dict[str, Any]) -> None:
    @virtual
    async def play() -> None:
        async with server() as client:
            assert await declared(client, properties, rule) == (201, "")

    play()


@virtual
async def test_rules_that_together_cost_too_much_are_refused_and_the_dearest_named() -> None:
    async with server() as client:
        rules = ["self.a.all(x, self.a.all(y, x == y))"] * 200
        code, message = await declared(client, {"a": array(SHORT, maxItems=300)}, *rules)
        assert code == 422
        assert "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema" in message
        assert f"estimated rule cost total for entire OpenAPIv3 schema {EXCEEDS}" in message


QUADRATIC = "self.a.all(x, self.a.all(y, x <= y || x > y))"


def found(value: Any, rules: list[str], **options: Any) -> list[str]:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"a": array({"type": "integer"})},
                "x-kubernetes-validations": [{"rule": rule} for rule in rules],
            }
        },
    }
    return [str(error) for error in cel.validate_rules({"spec": value}, compile_schema(schema), **options)]


def test_an_evaluation_beyond_its_limit_ends_all_and_says_so() -> None:
    (error,) = found({"a": list(range(1000))}, [QUADRATIC, "false"])
    assert error == (
        "spec: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no further validation "
        f"rules will be run due to call cost exceeds limit for rule: {QUADRATIC}"
    )


def test_the_rules_of_one_object_have_a_budget_together() -> None:
    errors = found({"a": list(range(250))}, [QUADRATIC] * 30)
    end = "validation failed due to running out of cost budget, no further validation rules will be run"
    assert errors == [f'spec: Invalid value: "object": {end}']


def test_rules_that_hold_up_the_event_loop_are_left_to_a_thread() -> None:
    assert found({"a": [1, 2, 3]}, [QUADRATIC], patient=False) == []
    with pytest.raises(expressions.TooLong):
        found({"a": list(range(250))}, [QUADRATIC], patient=False)


def test_costs_of_a_request_add_up() -> None:
    costs = expressions.Costs(patient=True)
    assert costs.run("1 + 1", {}, base=5) == 2
    assert costs.left == language.REQUEST_LIMIT - 6


@virtual
async def test_an_object_within_the_estimate_but_beyond_the_limit_of_a_call_is_refused() -> None:
    properties = {"a": array({"type": "integer"}, maxItems=1000)}
    rule = "self.a.all(x, self.a.all(y, x <= y || x > y))"
    async with server() as client:
        assert await declared(client, properties, rule) == (201, "")
        thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"a": [1] * 1000}}
        answer = await client.post("/apis/example.com/v1/namespaces/default/things", thing)
        assert answer.code == 422
        assert "call cost exceeds limit for rule" in answer.message


def test_a_pattern_is_paid_once_for_all_elements_of_a_list() -> None:
    rule = {"rule": "self.matches('^[a-z]+$') && self.matches('^[^0-9]*$')", "message": "want a word"}
    schema = {"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}}}}
    schema["properties"]["l"]["items"]["x-kubernetes-validations"] = [rule]  # type: ignore[index]
    assert cel.validate_rules({"l": ["word"] * 3000}, compile_schema(schema)) == []
