"""JSONPath in kubectl's dialect: what client-go's own examples give, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcbatch.api.jsonpath import MalformedPath, PathError, parse_column, parse_path, parse_template, shown
from vcbatch.api.jsonpath.evaluate import Budget, Evaluation
from vcbatch.api.jsonpath.parser import parse

_RECORDED = json.loads((Path(__file__).parent / "jsonpath_client_go.json").read_text(encoding="utf-8"))
RECORDED_ON, RECORDED = _RECORDED["object"], _RECORDED["cases"]

NODES: dict[str, Any] = {
    "kind": "List",
    "items": [
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.1", "labels": {"kubernetes.io/hostname": "a", "dotted.key": "b"}},
            "status": {
                "capacity": {"cpu": "4"},
                "ready": True,
                "rank": 2,
                "addresses": [{"type": "LegacyHostIP", "address": "127.0.0.1"}],
            },
        },
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.2"},
            "status": {
                "capacity": {"cpu": "8"},
                "ready": False,
                "rank": 10,
                "addresses": [
                    {"type": "LegacyHostIP", "address": "127.0.0.2"},
                    {"type": "another", "address": "127.0.0.3"},
                ],
            },
        },
    ],
    "users": [{"name": "myself", "user": {}}, {"name": "e2e", "user": {"username": "admin", "password": "secret"}}],
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        # client-go `util/jsonpath/jsonpath_test.go` and the page "JSONPath Support" of Kubernetes
        ("kind is {.kind}", "kind is List"),
        ("{.items[*].metadata.name}", "127.0.0.1 127.0.0.2"),
        ("{['kind']}", "List"),
        ("{..name}", "127.0.0.1 127.0.0.2 myself e2e"),
        ("{.items[*]['metadata.name', 'status.capacity']}", '127.0.0.1 127.0.0.2 {"cpu":"4"} {"cpu":"8"}'),
        ('{.users[?(@.name=="e2e")].user.password}', "secret"),
        ("{.users[?(@.name!='e2e')].name}", "myself"),
        ('{range .items[*]}[{.metadata.name}, {.status.capacity}] {end}',
         '[127.0.0.1, {"cpu":"4"}] [127.0.0.2, {"cpu":"8"}] '),
        ('{range .items[*]}{.metadata.name}{"\\t"}{.status.capacity.cpu}{"\\n"}{end}',
         "127.0.0.1\t4\n127.0.0.2\t8\n"),
        ("{.items[*].status.addresses[?(@.type=='another')].address}", "127.0.0.3"),
        ("{.items[0].metadata.labels.kubernetes\\.io/hostname}", "a"),
        ("{.items[0].metadata.labels['dotted\\.key']}", "b"),
        ("{.items[-1].metadata.name}", "127.0.0.2"),
        ("{.items[0:1].metadata.name}", "127.0.0.1"),
        ("{.items[::2].metadata.name}", "127.0.0.1"),
        ("{.items[0,1].metadata.name}", "127.0.0.1 127.0.0.2"),
        ("{.items[0]['kind','nothing']}", "None"),
        ("{.items[?(@.status.rank>2)].metadata.name}", "127.0.0.2"),
        ("{.items[?(@.status.ready==true)].metadata.name}", "127.0.0.1"),
        ("{.items[?(@.metadata.labels)].metadata.name}", "127.0.0.1"),
        ("{.items[*].status.rank}", "2 10"),
        ("{.items[*].status.ready}", "true false"),
        ("{.users[1].user}", '{"password":"secret","username":"admin"}'),
        ("{.nothing.at.all}", ""),
        ("{$.kind} {@.kind}", "List List"),
        ("{range .items[*]}{range .status.addresses[*]}{.address};{end}|{end}", "127.0.0.1;|127.0.0.2;127.0.0.3;|"),
        (".kind", "List"),
        ('{"}"}', "}"),
        ("", ""),
    ],
)  # fmt: skip
def test_templates(template: str, text: str) -> None:
    assert (parse_template(template).render(NODES) if template else "") == text


@pytest.mark.parametrize("path", [".kind", "kind", "{.kind}", "{kind}", "$.kind"])
def test_where_one_path_is_wanted_its_dress_may_be_left_off(path: str) -> None:
    assert parse_path(path).find(NODES) == ["List"]


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{.items[*}", "unterminated array"),
        ("{.kind", "unclosed action"),
        ("{range .items[*]}{.kind}", "a {range} has no {end}"),
        ("{end}", "not in range, nothing to end"),
        ("{.items[?(@.a ~ 1)]}", "unrecognized character in action: U+007E '~'"),
        ("{.items[0:2:0]}", "step must be > 0"),
        ("{.a b c}", "unrecognized identifier b"),
        ("{.a]}", "unrecognized character in action: U+005D ']'"),
        ("{....a}", "invalid multiple recursive descent"),
        ("{.items[?(@.a==1)}", "unclosed array expect ]"),
        ("{.items[?(@.a==1}", "unterminated filter"),
        ("{'a}", "unterminated quoted string"),
        ("{'\\q'}", "unquote string '\\q' error invalid syntax"),
        ("{1.2.3}", "cannot parse number 1.2.3"),
        ("x" * 20_000, "characters, want at most 16384"),
    ],
)
def test_malformed_templates_are_refused(template: str, why: str) -> None:
    with pytest.raises(MalformedPath) as refused:
        parse_template(template)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (".items[2].kind", "array index out of bounds: index 2, length 2"),
        (".items[0:3].kind", "array index out of bounds: index 2, length 2"),
        (".items[1:0]", "starting index 1 is greater than ending index 0"),
        (".kind[0]", "string is not array or slice"),
        (".items[0][?(@.x)]", "map[string]interface {} is not array or slice and cannot be filtered"),
        (".users[?(@.name==1)]", "incompatible types for comparison"),
        (".users[?(@.user==1)]", "invalid type for comparison"),
        (".items[?(@.metadata['name','name']==1)]", "can only compare one element at a time"),
    ],
)
def test_what_does_not_apply_to_the_value_is_an_error(path: str, why: str) -> None:
    with pytest.raises(PathError) as failed:
        parse_path(path).find(NODES)
    assert why in str(failed.value)
    assert parse_path(path).find_or_none(NODES) == []


@pytest.mark.parametrize("step", ["['a','a']", "..a"])
def test_steps_are_limited(step: str) -> None:
    value: Any = {"a": 1}
    for _ in range(60):
        value = {"a": value}
    with pytest.raises(PathError, match="visits more than 100000 values"):
        parse_column(f".a{step * 40}").find(value)


@given(st.text(alphabet=".[]{}()?@$*'\"\\:,=<>! ab0-\n", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        rendered = parse_template(text).render(NODES)
    except (MalformedPath, PathError):
        return
    assert isinstance(rendered, str)


_NAMES = st.text(alphabet=st.characters(codec="ascii", categories=("L", "N", "P", "S")), min_size=1, max_size=12)


@given(_NAMES.filter(lambda name: name != "*" and "\\" not in name), st.integers())
def test_any_name_is_found_by_its_escaped_form(name: str, value: int) -> None:
    assert parse_path("." + "".join(f"\\{letter}" for letter in name)).find({name: value}) == [value]


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["template"])
def test_results_are_those_of_client_go(case: dict[str, Any]) -> None:
    """Recorded with client-go v0.36.1, `AllowMissingKeys(true)`."""
    template = case["template"]
    try:
        parts = parse(template)
    except MalformedPath:
        assert case["result"] == "parse"
        return
    try:
        found = Evaluation(parts, Budget(100_000)).run(RECORDED_ON)
    except PathError:
        assert case["result"] == "evaluate"
        return
    assert ["".join(" ".join(map(shown, one)) for one in found)] == case["result"]
