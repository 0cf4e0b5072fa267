"""The embedded server answers the field-by-field variants, kubectl and the official clients as the real one did."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.fidelity import kubectl, servers
from tests.fidelity.golden import Answers
from tests.fidelity.servers import Server
from tests.fidelity.suites import SUITES, errors, known

PARTS = [(suite, name) for suite, found in SUITES.items() for name in found.names()]
Played = Callable[[str], dict[str, Answers]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.embedded(tmp_path_factory.mktemp("embedded")) as server:
        yield server


@pytest.fixture(scope="module")
def played(server: Server) -> Played:
    """All answers of a suite, which is played when it is first asked for."""
    answers: dict[str, dict[str, Answers]] = {}

    def play(suite: str) -> dict[str, Answers]:
        if suite not in answers:
            answers[suite] = SUITES[suite].play(server, (), lambda: None)
        return answers[suite]

    return play


@pytest.mark.xdist_group("fidelity-suites")
@pytest.mark.parametrize(("suite", "name"), PARTS, ids=[f"{suite}:{name}" for suite, name in PARTS])
def test_answers_are_those_of_the_real_server(suite: str, name: str, played: Played) -> None:
    if suite == "kubectl":
        try:
            kubectl.find()
        except kubectl.NoKubectl as why:
            pytest.skip(str(why))
    found = errors(SUITES[suite], name, played(suite)[name])
    assert not found, "\n".join(found)


@pytest.mark.parametrize("suite", SUITES)
def test_what_is_listed_and_recorded_exists(suite: str) -> None:
    names = set(SUITES[suite].names())
    assert {one.part for one in known(SUITES[suite])} <= names
    assert {path.stem for path in (SUITES[suite].folder / "golden").glob("*.json")} == names
