"""The options of a scheduler that is one of several."""

from __future__ import annotations

import pytest

from vcbatch.cli.base.output import CliError
from vcbatch.cli.components.share import read_share
from vcbatch.scheduler.model.share import ShardingMode, Share


def _read(
    *selector: str, environment: dict[str, str] | None = None, leader_elect: bool = False, mode: str = "none"
) -> Share:
    return read_share(
        node_selector=selector,
        sharding_mode=mode,
        sharding_name="volcano",
        environment=environment or {},
        leader_elect=leader_elect,
    )


def test_without_any_the_whole_cluster_is_its_own() -> None:
    assert _read(environment={"SCHEDULER_NUM": "3"}, leader_elect=True) == Share()


def test_labels_are_read_as_pairs() -> None:
    assert _read("pool:batch", "zone: x", mode="soft") == Share(
        node_labels=frozenset({("pool", "batch"), ("zone", "x")}), mode=ShardingMode.SOFT
    )


def test_instances_are_on_one_ring() -> None:
    environment = {"MULTI_SCHEDULER_ENABLE": "true", "SCHEDULER_POD_NAME": "sched-1", "SCHEDULER_NUM": "2"}
    share = _read(environment=environment)
    assert share.instance == "sched-1"
    assert share.ring is not None
    assert {share.ring.owner(f"n{i}") for i in range(50)} == {"sched-0", "sched-1"}


@pytest.mark.parametrize(
    ("pod", "number", "elect", "words"),
    [
        ("sched", "2", False, "SCHEDULER_POD_NAME: .*got 'sched'"),
        ("", "2", False, "SCHEDULER_POD_NAME: .*got ''"),
        ("sched-0", "", False, "SCHEDULER_NUM: .*got ''"),
        ("sched-0", "0", False, "1 to 1000"),
        ("sched-2", "2", False, "at most sched-1"),
        ("sched-0", "2", True, "--leader-elect=false"),
    ],
)
def test_an_environment_that_can_not_be_used_is_refused(pod: str, number: str, elect: bool, words: str) -> None:
    environment = {"MULTI_SCHEDULER_ENABLE": "true", "SCHEDULER_POD_NAME": pod, "SCHEDULER_NUM": number}
    with pytest.raises(CliError, match=words):
        _read(environment=environment, leader_elect=elect)


@pytest.mark.parametrize("text", ["pool", ":x", ""])
def test_a_selector_without_key_or_value_is_refused(text: str) -> None:
    with pytest.raises(CliError, match="must be KEY:VALUE"):
        _read(text)
