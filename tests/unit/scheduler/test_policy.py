"""Policy files: Volcano's format, and that nothing in one is ever ignored."""

from __future__ import annotations

import pytest

from vcbatch.scheduler import DEFAULT_POLICY, Policy, PolicyError
from vcbatch.scheduler.plugins.base import Plugin
from vcbatch.scheduler.switches import Switch

GANG = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n"


def test_default_policy_is_one() -> None:
    policy = Policy.parse(DEFAULT_POLICY)
    assert policy.actions == ("enqueue", "allocate", "backfill")
    assert [[p.name for p in tier.plugins] for tier in policy.tiers] == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"],
    ]


def test_switches_are_on_unless_named_save_two() -> None:
    (tier,) = Policy.parse(GANG + "    enableJobOrder: no\n").tiers
    (gang,) = tier.plugins
    assert not gang.enabled(Switch.JOB_ORDER)
    assert gang.enabled(Switch.JOB_READY)
    assert not gang.enabled(Switch.HIERARCHY)
    assert not gang.enabled(Switch.CLUSTER_ORDER)


def test_arguments_have_their_defaults_and_prefixed_ones_their_names() -> None:
    text = "actions: allocate\ntiers:\n- plugins:\n  - name: binpack\n    arguments: {binpack.resources.x/y: 3}\n"
    (binpack,) = Policy.parse(text).tiers[0].plugins
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

    policy = Policy.parse("actions: allocate\ntiers:\n- plugins:\n  - name: mine\n", plugins={"mine": Mine})
    assert policy.tiers[0].plugins[0].cls is Mine


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "not valid YAML"),
        ("- a", "policy: must be a mapping"),
        ("actions: allocate\nmetrics: {}", "unknown key 'metrics'; allowed: actions, configurations, tiers"),
        ("actions: [allocate]", "policy.actions: must be a comma-separated string"),
        ("actions: ''", "policy.actions: must name at least one action"),
        ("actions: 'allocate, fly'", "unknown action 'fly'; supported: allocate, backfill, enqueue"),
        ("actions: preempt", "action 'preempt' is one of Volcano's that vcbatch doesn't support"),
        (GANG.replace("gang", "gagn"), "policy.tiers[0].plugins[0].name: unknown plugin 'gagn'; supported: binpack"),
        (GANG.replace("gang", "capacity"), "plugin 'capacity' is one of Volcano's that vcbatch doesn't support"),
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
        Policy.parse(text)
    assert message in str(refused.value)
