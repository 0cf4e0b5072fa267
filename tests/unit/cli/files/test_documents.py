"""Objects in files for `simulate`, `replay` and Volcano's commands: what is written twice is never lost in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vcbatch.cli.base.output import CliError
from vcbatch.cli.files.documents import documents

YAML = "a: 1\n---\nspec:\n  tasks:\n  - name: x\n    name: y\n"
JSON = '{"a": 1}\n{"spec": {"tasks": [{"name": "x",\n "name": "y"}]}}\n'


def file(folder: Path, text: str) -> Path:
    path = folder / "given"
    path.write_text(text)
    return path


@pytest.mark.parametrize(("text", "place", "first"), [(YAML, "6:5", 5), (JSON, "3:2", 2)], ids=["YAML", "JSON"])
def test_a_field_that_is_written_twice_is_an_error_with_its_line(
    tmp_path: Path, text: str, place: str, first: int
) -> None:
    path = file(tmp_path, text)
    found = documents(path)
    assert next(found) == {"a": 1}
    with pytest.raises(CliError) as refused:
        next(found)
    reported = f"{path}:{place}: duplicate field 'spec.tasks[0].name', written first in line {first}"
    assert str(refused.value) == reported


@pytest.mark.parametrize("text", [YAML, JSON], ids=["YAML", "JSON"])
def test_volcanos_commands_warn_of_it_and_take_the_last(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [*documents(file(tmp_path, text), lenient=True)]
    assert found == [{"a": 1}, {"spec": {"tasks": [{"name": "y"}]}}]
    reported = capsys.readouterr().err
    assert reported.startswith("warning: ") and reported.count("\n") == 1
    assert "duplicate field 'spec.tasks[0].name'" in reported and reported.endswith("; the last value is used\n")


def test_the_place_in_a_json_document_that_follows_another_in_its_line(tmp_path: Path) -> None:
    path = file(tmp_path, '{"a": 1} {"b": 2, "b": 3}')
    with pytest.raises(CliError, match=r"given:1:19: duplicate field 'b', written first in line 1"):
        list(documents(path))


def test_of_text_that_yaml_does_not_take_the_key_is_told(tmp_path: Path) -> None:
    deep = json.loads("[" * 150 + "]" * 150)
    text = json.dumps({"k": deep})[:-1] + ', "k": 1}'
    with pytest.raises(CliError, match=r"duplicate field 'k'"):
        list(documents(file(tmp_path, text)))
