"""Policy files: Volcano's format, and that nothing in one is ever ignored."""

from __future__ import annotations

import pytest
import yaml

from vcbatch.scheduler import DEFAULT_POLICY, PolicyError, parse_policy
from vcbatch.scheduler.actions import UNSUPPORTED_ACTIONS
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.framework.switches import HOOKS, Switch
from vcbatch.scheduler.plugins import UNSUPPORTED_PLUGINS
from vcbatch.scheduler.policy.text import effective, gates

GANG = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n"


def test_default_policy_is_one() -> None:
    policy = parse_policy(DEFAULT_POLICY)
    assert policy.actions == ("enqueue", "allocate", "backfill")
    assert [[p.name for p in tier.plugins] for tier in policy.tiers] == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"],
    ]


def test_switches_are_on_unless_named_save_two() -> None:
    (tier,) = parse_policy(GANG + "    enableJobOrder: no\n").tiers
    (gang,) = tier.plugins
    assert not gang.enabled(Switch.JOB_ORDER)
    assert gang.enabled(Switch.JOB_READY)
    assert not gang.enabled(Switch.HIERARCHY)
    assert not gang.enabled(Switch.CLUSTER_ORDER)


def test_arguments_have_their_defaults_and_prefixed_ones_their_names() -> None:
    text = "actions: allocate\ntiers:\n- plugins:\n  - name: binpack\n    arguments: {binpack.resources.x/y: 3}\n"
    (binpack,) = parse_policy(text).tiers[0].plugins
    assert binpack.arguments == {
        "binpack.weight": 1,
        "binpack.cpu": 1,
        "binpack.memory": 1,
        "binpack.resources": "",
        "binpack.resources.x/y": 3,
    }


def test_a_plugin_of_ones_own_can_be_named() -> None:
    class Mine(Plugin):
        pass

    policy = parse_policy("actions: allocate\ntiers:\n- plugins:\n  - name: mine\n", plugins={"mine": Mine})
    assert policy.tiers[0].plugins[0].cls is Mine


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "not valid YAML"),
        ("- a", "policy: must be a mapping"),
        ("actions: allocate\nmetric: {}", "unknown key 'metric'; allowed: actions, configurations, metrics, tiers"),
        ("actions: [allocate]", "policy.actions: must be a comma-separated string"),
        ("actions: ''", "policy.actions: must name at least one action"),
        ("actions: 'allocate, fly'", "unknown action 'fly'; supported: allocate, backfill, "),
        (
            GANG.replace("gang", "gagn"),
            "policy.tiers[0].plugins[0].name: unknown plugin 'gagn' (did you mean 'gang'?); supported: binpack",
        ),
        (GANG + "    enabledJobOrder: true\n", "unknown key 'enabledJobOrder'; allowed: name, arguments and the sw"),
        (GANG + "    enableJobOrder: 1\n", "policy.tiers[0].plugins[0].enableJobOrder: must be true or false, got 1"),
        (GANG + "    arguments: {a: 1}\n", "unknown argument 'a'; allowed: none"),
        (GANG + "    enableHierarchy: true\n", "plugin 'gang' has no hierarchical mode"),
        (GANG + "  - name: gang\n", "policy.tiers[0].plugins[1].name: plugin 'gang' is named twice"),
        (
            GANG.replace("gang", "nodeorder") + "    arguments: {leastrequested.weight: 1.5}\n",
            "leastrequested.weight: must be an integer, got 1.5",
        ),
        (
            GANG.replace("gang", "overcommit") + "    arguments: {overcommit-factor: a lot}\n",
            "overcommit-factor: must be a number, got 'a lot'",
        ),
        (
            GANG + "configurations:\n- name: allocate\n  arguments: {x: 1}\n",
            "policy.configurations[0].arguments: unknow",
        ),
        (GANG + "configurations:\n- name: enqueeu\n", "policy.configurations[0].name: unknown action 'enqueeu'"),
        ("x" * (1 << 21), "must be at most"),
    ],
)
def test_what_cant_be_followed_is_refused(text: str, message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        parse_policy(text)
    assert message in str(refused.value)


def test_every_fault_is_told_with_its_line() -> None:
    text = (
        "actions: allocate, fly\n"
        "tiers:\n"
        "- plugins:\n"
        "  - name: gagn\n"
        "  - name: binpack\n"
        "    enabledJobOrder: true\n"
        "    arguments:\n"
        "      binpack.weight: heavy\n"
        "      binpack.wieght: 1\n"
        "  - name: binpack\n"
        "colour: blue\n"
    )
    with pytest.raises(PolicyError) as refused:
        parse_policy(text)
    reported = [(error.line, error.column, error.text.partition("; ")[0]) for error in refused.value.errors]
    assert reported == [
        (1, 10, "policy.actions: unknown action 'fly'"),
        (4, 11, "policy.tiers[0].plugins[0].name: unknown plugin 'gagn' (did you mean 'gang'?)"),
        (6, 5, "policy.tiers[0].plugins[1]: unknown key 'enabledJobOrder'"),
        (8, 23, "policy.tiers[0].plugins[1].arguments.binpack.weight: must be an integer, got 'heavy'"),
        (9, 7, "policy.tiers[0].plugins[1].arguments: unknown argument 'binpack.wieght'"),
        (10, 11, "policy.tiers[0].plugins[2].name: plugin 'binpack' is named twice"),
        (11, 1, "policy: unknown key 'colour'"),
    ]
    assert str(refused.value).splitlines()[0].startswith("line 1, column 10: policy.actions: unknown action 'fly'")


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("actions: allocate\ntiers: [\n", 3, 1, "policy: not valid YAML: did not find expected node content"),
        ("actions: allocate\nactions: enqueue\n", 2, 1, "policy.actions: is given twice"),
        ("actions: allocate\n---\nactions: enqueue\n", 2, 1, "policy: not valid YAML: expected a single document"),
        (GANG + "configurations:\n- name: allocate\n- name: allocate\n", 7, 9, "is configured twice"),
        (GANG + "    enableJobOrder: 1\n", 5, 21, "enableJobOrder: must be true or false, got 1"),
        ("actions: allocate\ntiers: 3\n", 2, 8, "policy.tiers: must be a list, got 3"),
        ("- a\n", 1, 1, "policy: must be a mapping"),
    ],
)
def test_a_fault_points_at_what_is_wrong(text: str, line: int, column: int, said: str) -> None:
    with pytest.raises(PolicyError) as refused:
        parse_policy(text)
    [error] = refused.value.errors
    assert (error.line, error.column) == (line, column)
    assert said in error.text


def test_aliases_do_not_make_a_small_file_large() -> None:
    bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
    bomb += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9))
    with pytest.raises(PolicyError, match="aliases stand for more than 100000 values"):
        parse_policy(bomb)
    with pytest.raises(PolicyError):
        parse_policy("a: &a [*a]")


def test_the_effective_policy_is_the_same_policy_with_nothing_left_out() -> None:
    text = (
        "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    enableJobReady: false\n  - name: binpack\n"
        "    arguments: {binpack.cpu: 5, binpack.resources: a/b, binpack.resources.a/b: 3}\n"
        "configurations:\n- name: allocate\n  arguments: {predicateErrorCacheEnable: false}\n"
    )
    policy = parse_policy(text)
    shown = effective(policy)
    again = parse_policy(shown)
    assert again.actions == policy.actions
    assert [[(o.cls, o.arguments) for o in t.plugins] for t in again.tiers] == [
        [(o.cls, o.arguments) for o in t.plugins] for t in policy.tiers
    ]
    assert again.action_arguments == policy.action_arguments
    for before, after in zip(policy.tiers[0].plugins, again.tiers[0].plugins, strict=True):
        assert [before.enabled(s) for s in Switch] == [after.enabled(s) for s in Switch]
    document = yaml.safe_load(shown)
    gang, binpack = document["tiers"][0]["plugins"]
    assert (gang["enableJobReady"], gang["enableJobPipelined"]) == (False, True)
    assert binpack["arguments"]["binpack.memory"] == 1
    assert effective(again) == shown


def test_the_effective_policy_for_others_has_no_passwords() -> None:
    text = (
        "actions: allocate\ntiers:\n- plugins:\n  - name: extender\n    arguments:\n"
        "      extender.urlPrefix: https://eve:hunter2@filter:8080/v1\n"
        "metrics: {type: elasticsearch, address: 'http://e:9200', elasticsearch: {password: hunter2}}\n"
    )
    policy = parse_policy(text)
    assert effective(policy).count("hunter2") == 2
    document = yaml.safe_load(effective(policy, metrics=False))
    assert document["tiers"][0]["plugins"][0]["arguments"]["extender.urlPrefix"] == "https://filter:8080/v1"
    assert "hunter2" not in effective(policy, metrics=False)


def test_the_hooks_of_switches_are_methods_of_plugins() -> None:
    named = {hook for hooks in HOOKS.values() for hook in hooks}
    assert named <= set(dir(Plugin))
    assert not gates(Switch.JOB_ORDER, Plugin)


@pytest.mark.parametrize("name", sorted(UNSUPPORTED_PLUGINS))
def test_plugins_that_only_volcano_has_are_refused_as_such(name: str) -> None:
    with pytest.raises(PolicyError, match=f"plugin '{name}' is one of Volcano's that vcbatch doesn't support"):
        parse_policy(GANG.replace("gang", name))


@pytest.mark.parametrize("name", sorted(UNSUPPORTED_ACTIONS))
def test_actions_that_only_volcano_has_are_refused_as_such(name: str) -> None:
    with pytest.raises(PolicyError, match=f"action '{name}' is one of Volcano's that vcbatch doesn't support"):
        parse_policy(f"actions: {name}")
