"""A small part of `make fuzz-admission`: mutations of the corpora, each answered without an error of ours."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.admission import run


async def test_mutated_objects_are_answered(tmp_path: Path) -> None:
    report = await run(600, seed=7, keep=tmp_path)
    assert report.errors == []
    assert report.codes["200"] > 300, "most are answered as reviews"
    assert report.codes["400"] > 5, "and some are none"
