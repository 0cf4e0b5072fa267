"""The recorded answers of a real kube-apiserver, against the embedded server's.

`KNOWN` lists the exchanges that differ and why; a group fails when another one differs, and when a listed one doesn't.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conformance import DATA
from tests.contract.apiserver_play import groups, play_group

KNOWN: Mapping[str, Mapping[str, str]] = json.loads(
    (Path(__file__).parent / "apiserver_known.json").read_text(encoding="utf-8")
)
REQUIRED_SHARE = 0.95
NOT_REQUIRED = ("apply", "rbac", "quota", "batch", "apps")

pytestmark = pytest.mark.skipif(DATA is None, reason="no conformance data beside this checkout")

GROUPS = groups(DATA) if DATA else ["none"]


@pytest.mark.parametrize("group", GROUPS)
def test_answers_are_alike_but_for_the_known_differences(group: str) -> None:
    assert DATA
    known = KNOWN.get(group, {})
    differing = {str(outcome.index): outcome.difference for outcome in play_group(DATA, group) if outcome.difference}

    new = {index: text for index, text in differing.items() if index not in known}
    assert not new, "\n".join(f"{group} {index}: {text}" for index, text in new.items())
    gone = set(known) - set(differing)
    assert not gone, f"listed as different but alike now: {sorted(gone)}"


def test_the_required_share_of_answers_is_alike() -> None:
    assert DATA
    required = [group for group in GROUPS if group not in NOT_REQUIRED]
    total = sum(len(json.loads((DATA / "apiserver" / f"{group}.json").read_text())["exchanges"]) for group in required)
    differing = sum(len(KNOWN.get(group, {})) for group in required)

    assert (total - differing) / total >= REQUIRED_SHARE
