"""A small part of `make fuzz-yaml`: commands end well on whatever is in a file."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.yaml_files import run


def test_commands_end_well_on_mutated_files(tmp_path: Path) -> None:
    report = run(300, seed=5, keep=tmp_path)
    assert report.errors == []
    for command in ("lint", "apply", "simulate", "config check"):
        assert report.codes[f"{command} 1"], f"some files are refused by {command}"
    assert report.codes["lint 0"] and report.codes["simulate 0"], "and some are good"
