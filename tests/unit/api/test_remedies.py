"""What would let a gang start, as it is written on its PodGroup."""

from __future__ import annotations

import pytest

from vcbatch.api.remedies import Remedy, RemedyAction, read_remedies, sentence_of, written

FREE = Remedy(RemedyAction.FREE, "node/n1", "cpu", "1500m")
CHANGE = Remedy(RemedyAction.CHANGE, "podgroup/ns/g", field="spec.nodeSelector")


def test_what_is_written_is_read_again() -> None:
    assert read_remedies(written([FREE, CHANGE])) == [FREE, CHANGE]
    assert written([]) == ""


def test_more_than_are_of_use_are_not_written() -> None:
    assert written([FREE] * 32)
    assert written([FREE] * 33) == ""


@pytest.mark.parametrize("text", ["", "no JSON", "7", "[7]", "{}", '[{"object": "node/n1"}]', '[{"action": "Dance"}]'])
def test_what_somebody_else_wrote_says_nothing(text: str) -> None:
    assert read_remedies(text) == []


def test_people_read_sentences() -> None:
    assert sentence_of(FREE) == "free cpu 1500m on node/n1"
    assert sentence_of(CHANGE) == "change spec.nodeSelector of podgroup/ns/g"
