"""The embedded server answers the requests of every group as the real one did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from tests.fidelity import exchanges, golden, servers
from tests.fidelity.play import Player
from tests.fidelity.servers import Server

HERE = Path(__file__).parent
REASONS: Mapping[str, str] = yaml.safe_load((HERE / "differences.yaml").read_text(encoding="utf-8")) or {}
LOCAL_MODE = (HERE.parent.parent / "docs" / "local-mode.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.embedded(tmp_path_factory.mktemp("embedded")) as server:
        yield server


@pytest.mark.xdist_group("fidelity")
@pytest.mark.parametrize("name", exchanges.names())
def test_answers_are_those_of_the_real_server(name: str, server: Server) -> None:
    group = exchanges.group(name)
    recorded = golden.read(golden.FOLDER / f"{name}.json")
    assert [ask for ask, _ in recorded] == [step.ask for step in group.compared], "run `make fidelity-record`"

    answers = Player(server, group).play()

    faults = [
        f"{ask} {step.body or ''}\n  {fault}"
        for step, (ask, got), (_, want) in zip(group.compared, answers, recorded, strict=True)
        for fault in golden.unexplained(golden.differences(want, got), step.differs)
    ]
    assert not faults, "\n".join(faults)


def listed() -> Counter[str]:
    """How many requests each reason explains."""
    return Counter(
        reason for name in exchanges.names() for step in exchanges.group(name).compared for reason in step.differs
    )


def test_every_reason_is_explained_and_used() -> None:
    assert set(listed()) == set(REASONS)


@pytest.mark.parametrize("reason", sorted(REASONS))
def test_the_documentation_lists_each_reason_with_its_requests(reason: str) -> None:
    assert f"| {REASONS[reason]} | {listed()[reason]} |" in LOCAL_MODE


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in golden.FOLDER.glob("*.json")} == set(exchanges.names())
