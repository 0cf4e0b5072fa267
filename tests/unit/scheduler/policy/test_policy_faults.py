"""Whatever a policy file says, it is read or refused in words: nothing else is raised, and nothing is a page long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from vcbatch.scheduler import PolicyError, build_policy, parse_policy
from vcbatch.scheduler.actions import ACTIONS
from vcbatch.scheduler.framework.arguments import ArgumentSpec
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.plugins import PLUGINS

Json = dict[str, Any]

HUGE = 10**400
ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, float("nan"), float("-inf"), HUGE, -HUGE),
    *("", "x", "1", "10m", "-5m", "\x00", "x" * 5000, "9" * 400 + "m", "1e999", "http://[", "http://a:99999999"),
    *([], {}, [None], [["x"]], {"x": "y"}, {None: None}, {1: {"x": []}}, [{}], {"cpu": HUGE}, {"name": "x"}),
)
"""What people and templates put where something else should be."""


def _refused(document: Json) -> str:
    """The words of the refusal; empty where there is none."""
    try:
        build_policy(document)
    except PolicyError as error:
        return str(error)
    return ""


def _plugin(name: str, **entry: Any) -> Json:
    return {"actions": "allocate, shuffle", "tiers": [{"plugins": [{"name": name, **entry}]}]}


def _arguments() -> Iterator[tuple[str, str]]:
    for name, plugin in PLUGINS.items():
        spec = plugin.ARGUMENTS
        for argument in (*spec.named, *spec.structured, *(f"{prefix}x" for prefix in spec.prefixed)):
            yield name, argument


@pytest.mark.parametrize(("plugin", "argument"), list(_arguments()))
def test_an_odd_argument_of_a_plugin_is_read_or_refused(plugin: str, argument: str) -> None:
    said = [_refused(_plugin(plugin, arguments={argument: odd})) for odd in ODD]
    assert any(said)
    assert f"arguments.{argument}" in said[ODD.index(HUGE)]


@pytest.mark.parametrize(("action", "argument"), [(a, key) for a in ACTIONS for key in ACTIONS[a].arguments.named])
def test_an_odd_argument_of_an_action_is_read_or_refused(action: str, argument: str) -> None:
    for odd in ODD:
        said = _refused({"actions": action, "configurations": [{"name": action, "arguments": {argument: odd}}]})
        assert f"policy.configurations[0].arguments.{argument}" in said or odd in (True, 0, -1, "1")


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:20])
def test_an_odd_value_anywhere_is_read_or_refused_in_a_few_words(odd: Any) -> None:
    for key in ("actions", "tiers", "configurations", "metrics"):
        for value in (odd, [odd], [{"plugins": odd}], [{"plugins": [odd]}], [{"name": odd}]):
            assert len(_refused({"actions": "allocate", key: value})) < 1000
    for key in ("name", "arguments", "enableHierarchy", "enableJobOrder"):
        assert len(_refused(_plugin("gang") | {"tiers": [{"plugins": [{"name": "gang", key: odd}]}]})) < 1000
    for key in ("type", "address", "interval", "tls", "elasticsearch", "elasticsearch.index"):
        assert len(_refused({"actions": "allocate", "metrics": {"address": "http://a", key: odd}})) < 1000


@pytest.mark.parametrize("plugin", ["nodeorder", "overcommit"])
def test_numbers_that_arrays_cannot_hold_are_refused(plugin: str) -> None:
    name = {"nodeorder": "leastrequested.weight", "overcommit": "overcommit-factor"}[plugin]
    said = _refused(_plugin(plugin, arguments={name: 2**31}))
    assert said.endswith(f"{name}: must be a number between -2147483647 and 2147483647, got 2147483648")
    assert not _refused(_plugin(plugin, arguments={name: 2**31 - 1}))


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("", 1, 1, "policy: must be a mapping, and nothing is there"),
        ("# all of it is a comment\n", 1, 1, "policy: must be a mapping, and nothing is there"),
        ("actions: allocate\ntiers:\n\t- plugins\n", 3, 1, "policy: not valid YAML: a tab where only spaces may be"),
        (
            'actions: "allocate\ntiers: []\n',
            *(3, 1, "policy: not valid YAML: found unexpected end of stream"),
        ),
        (
            "actions: allocate\ntiers: [{plugins: []}\n",
            *(3, 1, "policy: not valid YAML: did not find expected ',' or ']', while parsing a flow sequence that"),
        ),
        ("actions: allocate\nx:\ty: 3\n", 2, 5, "policy: not valid YAML: mapping values are not allowed"),
        (f"actions: {'[' * 100_000}\n", 1, 209, "policy: not valid YAML: nested deeper than 200 levels"),
        (f"actions: {'[' * 100_000}{']' * 100_000}\n", 1, 209, "policy: not valid YAML: nested deeper than 200 levels"),
        (
            "actions: allocate\ntiers: &a [*a]\n",
            2,
            12,
            "policy: not valid YAML: anchor 'a' value contains itself",
        ),
        ("actions: 'a\x01'\n", 1, 12, "policy: not valid YAML: character #x0001 isn't allowed in YAML"),
        (
            "apiVersion: v1\nkind: ConfigMap\ndata: {volcano-scheduler.conf: ''}\n",
            *(1, 1, "policy: is a ConfigMap; must be the text that its data has as volcano-scheduler.conf"),
        ),
    ],
)
def test_a_file_that_is_none_says_what_it_is(text: str, line: int, column: int, said: str) -> None:
    with pytest.raises(PolicyError) as refused:
        parse_policy(text)
    [error] = refused.value.errors
    assert (error.line, error.column) == (line, column)
    assert error.text.startswith(said)
    assert "\n" not in error.text


def test_what_never_closes_is_told_with_the_line_where_it_begins() -> None:
    with pytest.raises(PolicyError, match="end of stream, while scanning a quoted scalar that begins in line 2"):
        parse_policy('tiers: []\nactions: "allocate\n\n')


def test_configuring_an_action_that_does_not_run_is_a_warning() -> None:
    text = "actions: allocate\nconfigurations:\n- name: allocate\n- name: preempt\n"
    [warning] = parse_policy(text).warnings
    assert str(warning) == (
        "line 4, column 9: policy.configurations[1].name: should be one of policy.actions, got 'preempt', "
        "which doesn't run"
    )


def test_what_the_arguments_of_ones_own_plugin_raise_is_a_fault() -> None:
    class Mine(Plugin):
        ARGUMENTS = ArgumentSpec(named={}, structured={"share": lambda value, where: 1 / int(str(value))})

    with pytest.raises(PolicyError) as refused:
        build_policy(_plugin("mine", arguments={"share": 0}), plugins={"mine": Mine})
    where = "policy.tiers[0].plugins[0].arguments"
    assert str(refused.value) == f"{where}: what reads them raised ZeroDivisionError: 'division by zero'"


@pytest.mark.parametrize("gate", ["overcommit", "proportion", "capacity"])
def test_backfill_behind_a_gate_is_a_warning(gate: str) -> None:
    """Who isn't admitted has no room kept, so that those behind it put it off after all."""
    text = (
        f"actions: enqueue, allocate\ntiers:\n- plugins:\n  - name: {gate}\n    enableJobEnqueued: SWITCH\n"
        "configurations:\n- name: allocate\n  arguments: {conservativeBackfill: FILL}\n"
    )
    [warning] = parse_policy(text.replace("SWITCH", "true").replace("FILL", "true")).warnings
    assert str(warning) == (
        f"line 4, column 11: policy.tiers[0].plugins[0].name: {gate} should have enableJobEnqueued: false beside "
        "conservativeBackfill, which keeps no room for gangs that aren't admitted"
    )
    for switch, fill in (("false", "true"), ("true", "false")):
        assert not parse_policy(text.replace("SWITCH", switch).replace("FILL", fill)).warnings
