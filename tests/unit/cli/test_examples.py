"""The examples as an installed package has them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.screens.play import call
from vcbatch.cli.examples.command import summary

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


def test_each_example_is_listed_in_a_line_of_80_columns() -> None:
    code, out, err = call(["examples"], "/nonexistent")
    assert (code, err) == (0, "")
    rows = [line.split(maxsplit=1) for line in out.splitlines()[1:]]
    assert [name for name, _ in rows] == [path.stem for path in EXAMPLES]
    assert all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.parametrize("name", ["anything", "anything.yaml"])
def test_an_example_is_printed_as_it_is(name: str) -> None:
    code, out, _ = call(["examples", name], "/nonexistent")
    assert (code, out) == (0, (ROOT / "examples/anything.yaml").read_text())


def test_an_example_is_written_to_a_new_file_only(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    assert call(["examples", "mpi", "-o", str(file)], "/nonexistent") == (0, "", f"{file} written\n")
    assert file.read_text() == (ROOT / "examples/mpi.yaml").read_text()
    file.write_text("mine")
    code, _, err = call(["examples", "mpi", "--output", str(file)], "/nonexistent")
    assert code == 1 and f"can't write {file}: File exists" in err
    assert file.read_text() == "mine"


@pytest.mark.parametrize(("typed", "code"), [(["nope"], 1), (["../README"], 1), (["-o", "x"], 2)])
def test_what_is_no_example_is_refused(typed: list[str], code: int) -> None:
    assert call(["examples", *typed], "/nonexistent")[0] == code


def test_the_wheel_has_the_examples() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"]["examples"] == "vcbatch/_data/examples"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# One. Two.\nkind: Job\n", "One"),
        ("# A sentence over\n# two lines. More.\n", "A sentence over two lines"),
        ("# No stop\n#\n# Next paragraph.\n", "No stop"),
        ("kind: Job\n", ""),
    ],
)
def test_the_first_sentence_describes(text: str, line: str) -> None:
    assert summary(text) == line
