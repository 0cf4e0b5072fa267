"""JSONPath in kubectl's dialect: what client-go's own examples give, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcbatch.api.jsonpath import MalformedPath, parse_path, parse_template

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
        ("{.items[*]['metadata.name', 'status.capacity']}", ""),
        ('{.users[?(@.name=="e2e")].user.password}', "secret"),
        ("{.users[?(@.name!='e2e')].name}", "myself"),
        ('{range .items[*]}[{.metadata.name}, {.status.capacity}] {end}',
         '[127.0.0.1, {"cpu":"4"}] [127.0.0.2, {"cpu":"8"}] '),
        ('{range .items[*]}{.metadata.name}{"\\t"}{.status.capacity.cpu}{"\\n"}{end}',
         "127.0.0.1\t4\n127.0.0.2\t8\n"),
        ("{.items[*].status.addresses[?(@.type=='another')].address}", "127.0.0.3"),
        ("{.items[0].metadata.labels.kubernetes\\.io/hostname}", "a"),
        ("{.items[0].metadata.labels['dotted.key']}", "b"),
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
        ("{.items[*}", "it ends too soon at 8"),
        ("{.kind", "the brace at 0 isn't closed"),
        ("{range .items[*]}{.kind}", "a {range} has no {end}"),
        ("{end}", "closes no {range}"),
        ("{}", "empty braces"),
        ("{.items[?(@.a ~ 1)]}", "unexpected '~ 1)]'"),
        ("{.items[0:2:0]}", "step 0, want 1 or more"),
        ("{.a b c}", "unexpected 'b c'"),
        ("{.a]}", "unexpected ']'"),
        ("x" * 20_000, "20000 characters, want at most 16384"),
    ],
)
def test_what_is_no_template_says_where(template: str, why: str) -> None:
    with pytest.raises(MalformedPath) as refused:
        parse_template(template)
    assert why in str(refused.value)


@given(st.text(alphabet=".[]{}()?@$*'\"\\:,=<>! ab0-\n", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        template = parse_template(text)
    except MalformedPath:
        return
    assert isinstance(template.render(NODES), str)


_NAMES = st.text(alphabet=st.characters(codec="ascii", categories=("L", "N", "P", "S")), min_size=1, max_size=12)


@given(_NAMES, st.integers())
def test_any_name_is_found_by_its_escaped_or_quoted_form(name: str, value: int) -> None:
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    assert parse_path(f"['{quoted}']").find({name: value}) == [value]
    assert parse_path("." + "".join(f"\\{letter}" for letter in name)).find({name: value}) == [value]
