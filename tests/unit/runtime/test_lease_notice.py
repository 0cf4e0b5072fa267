"""What a scheduler says of itself on its Lease: read again it is the same, and nothing secret is in it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from vcbatch.api.names import POLICY, SCHEDULER_SETUP
from vcbatch.runtime.scheduling.lease_notice import LeaseNotice
from vcbatch.scheduler import Policy, parse_policy
from vcbatch.scheduler.model.share import ShardingMode, Share
from vcbatch.scheduler.policy.text import effective
from vcbatch.scheduler.simulation.recording import Settings
from vcbatch.scheduler.simulation.world import WorldError

NOW = datetime(2026, 6, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
SOURCE = "ConfigMap volcano-system/policy"
ELASTIC = "metrics: {type: elasticsearch, address: 'http://e:9200', elasticsearch: {password: hunter2}}\n"


def policy(*, more: str = "") -> Policy:
    return parse_policy(f"actions: allocate\ntiers: [{{plugins: [{{name: gang}}]}}]\n{more}")


def test_a_notice_says_how_the_scheduler_was_started() -> None:
    share = Share(node_labels=frozenset({("zone", "a")}), mode=ShardingMode.HARD, shard="second")
    settings = Settings(
        taken=NOW, scheduler_names=("second", "third"), default_queue="all", share=share, queue_gates=True
    )
    notice = LeaseNotice.of("me", SOURCE, settings, policy())
    found = LeaseNotice.read(notice.annotations(), now=LATER)
    assert found is not None
    assert (found.identity, found.source) == ("me", SOURCE)
    assert found.settings.line() == replace(settings, taken=LATER, policy=effective(policy())).line()


def test_a_notice_names_what_differs_from_the_usual() -> None:
    annotations = LeaseNotice.of("me", "", Settings(taken=NOW), policy()).annotations()
    assert json.loads(annotations[SCHEDULER_SETUP]) == {
        "identity": "me",
        "source": "",
        "settings": {"format": "vcbatch-snapshot/2"},
    }
    assert annotations[POLICY].startswith("actions: allocate\ntiers:\n- plugins:\n  - name: gang\n")
    found = LeaseNotice.read(annotations, now=LATER)
    assert found is not None
    assert found.settings.line() == Settings(taken=LATER, policy=annotations[POLICY]).line()


def test_a_notice_has_no_passwords() -> None:
    reported = LeaseNotice.of("me", SOURCE, Settings(taken=NOW), policy(more=ELASTIC)).annotations()
    assert "hunter2" in effective(policy(more=ELASTIC))
    assert "hunter2" not in json.dumps(reported)
    assert "metrics" not in reported[POLICY]


def test_a_policy_that_is_too_long_is_left_out() -> None:
    assert LeaseNotice.of("me", SOURCE, Settings(taken=NOW), policy()).settings.policy is not None
    groups = ", ".join(f"p{number:04d}" for number in range(40_000))
    extender = (
        f"  - name: extender\n    arguments: {{extender.urlPrefix: http://e, extender.managedResources: [{groups}]}}\n"
    )
    long = parse_policy(f"actions: allocate\ntiers:\n- plugins:\n{extender}")
    notice = LeaseNotice.of("me", SOURCE, Settings(taken=NOW), long)
    annotations = notice.annotations()
    assert annotations[POLICY] == "", "one of before is gone"
    found = LeaseNotice.read(annotations, now=LATER)
    assert found is not None
    assert (found.source, found.settings.policy) == (SOURCE, None)


def test_a_lease_without_a_notice_has_none() -> None:
    assert LeaseNotice.read({"others": "x", POLICY: "actions: allocate"}, now=NOW) is None


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("nonsense", "annotation vcbatch.dev/scheduler: "),
        ("[]", "annotation vcbatch.dev/scheduler: "),
        ('{"identity": "me", "source": ""}', "'settings'"),
        ('{"identity": "me", "source": "", "settings": 3}', "annotation vcbatch.dev/scheduler: "),
        (
            '{"identity": "me", "source": "", "settings": {"format": "vcbatch-snapshot/9"}}',
            "it is of version 9 of the format, and only 2 is read here",
        ),
        ('{"identity": "me", "source": "", "settings": {"shardingMode": "?"}}', "the first line is incomplete"),
    ],
)
def test_a_notice_that_is_not_understood_says_why(written: str, said: str) -> None:
    with pytest.raises(WorldError) as error:
        LeaseNotice.read({SCHEDULER_SETUP: written}, now=NOW)
    assert said in str(error.value)
