"""What the commands print of a recorded cluster, to the byte."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.contract.cli.transcripts import GOLDEN, call, objects, quiet_world, sessions, transcript
from tests.support.served_cluster import served_cluster


@pytest.mark.parametrize("session", sessions(), ids=lambda path: path.stem)
def test_a_session_reads_as_it_did(session: Path) -> None:
    assert transcript(session) == (GOLDEN / f"{session.stem}.txt").read_text()


def test_cromwell_finds_the_job_in_what_is_printed() -> None:
    """Its `job-id-regex` is `(\\d+)`, and what it finds is given back as a name; a job that isn't alive is told by the
    exit code of its check-alive (Cromwell's configuration example for Volcano)."""
    with quiet_world(), served_cluster(objects()) as cluster:
        code, out, _ = call(["vcctl", "job", "run", "-f", "files/4711.yaml"], cluster.url)
        assert code == 0
        found = re.search(r"(\d+)", out)
        assert found is not None
        assert found[1] == cluster.writes[0][2]["metadata"]["name"]
        alive, gone = (call(["vcctl", "job", "view", "-N", name], cluster.url)[0] for name in ("finished", found[1]))
        assert (alive == 0, gone == 0) == (True, False)


def test_no_transcript_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {path.stem for path in sessions()}
