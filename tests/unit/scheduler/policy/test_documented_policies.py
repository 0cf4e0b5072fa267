"""The policies of the documents can be used as they stand, and what they call off by default is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vcbatch.scheduler import default_policy, parse_policy

DOCS = Path(__file__).parents[4] / "docs"
BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)


def _policies() -> dict[str, str]:
    """Every policy, and every part of one, by document and number."""
    found: dict[str, str] = {}
    for page in sorted(DOCS.glob("*.md")):
        for number, text in enumerate(BLOCK.findall(page.read_text(encoding="utf-8"))):
            if re.match(r"(actions|tiers|configurations|metrics):", text):
                found[f"{page.stem}-{number}"] = text if text.startswith("actions:") else f"actions: allocate\n{text}"
    return found


@pytest.mark.parametrize("text", _policies().values(), ids=_policies().keys())
def test_a_policy_of_the_documents_is_one_without_warnings(text: str) -> None:
    assert not parse_policy(text).warnings


def test_there_are_some() -> None:
    assert {"scheduler-0", "scheduler-1"} <= _policies().keys()


def test_what_volcano_does_not_have_is_off_by_default() -> None:
    policy = default_policy()
    named = {option.name for tier in policy.tiers for option in tier.plugins}
    assert not named & {"fair-share", "disruption", "stale-gang"}
    read = policy.action_arguments
    assert read["allocate"]["conservativeBackfill"] is False
    for action in ("preempt", "reclaim"):
        assert (read[action]["minimizeVictims"], read[action]["preventTakeBack"]) == (False, False)
    topology = parse_policy("actions: allocate\ntiers: [{plugins: [{name: network-topology-aware}]}]")
    assert topology.tiers[0].plugins[0].arguments["hypernode.best-fit.enable"] is False
