"""What the commands print of a recorded cluster: on terminals, in pipes, in every format."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.screens.play import GOLDEN, sessions, transcript


@pytest.mark.parametrize("session", sessions(), ids=lambda path: path.stem)
def test_a_session_reads_as_it_did(session: Path) -> None:
    assert transcript(session) == (GOLDEN / f"{session.stem}.txt").read_text(encoding="utf-8")


def test_no_transcript_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {path.stem for path in sessions()}
