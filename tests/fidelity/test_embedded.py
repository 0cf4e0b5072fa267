"""The embedded server answers the requests of every group as the real one did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fidelity import exchanges, golden, listed, servers
from tests.fidelity.play import Player
from tests.fidelity.servers import Server

HERE = Path(__file__).parent
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

    errors = [
        f"{number}: {ask} {step.body or ''}\n  {error}"
        for number, (step, (ask, got), (_, want)) in enumerate(zip(group.compared, answers, recorded, strict=True))
        for error in golden.unexplained(golden.differences(want, got), listed.differs(name, number))
    ]
    assert not errors, "\n".join(errors)


@pytest.mark.parametrize("reason", sorted(listed.reasons()))
def test_the_documentation_lists_each_reason_with_its_answers(reason: str) -> None:
    assert f"| {listed.reasons()[reason].why} | {listed.reasons()[reason].count} |" in LOCAL_MODE


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in golden.FOLDER.glob("*.json")} == set(exchanges.names())
