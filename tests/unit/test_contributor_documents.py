"""The documents for contributors name targets, files and jobs that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", ".github/pull_request_template.md")
TARGET = re.compile(r"\bmake ([a-z][a-z-]*)\b(?![.])")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
CODE_PATH = re.compile(r"`((?:vcbatch|webhooks|tests|docs|helm|\.ci)/[\w./-]*\w)/?`")
WORKFLOW = ROOT / ".github/workflows/ci.yml"


def _targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):", text, re.MULTILINE))


def _steps() -> list[str]:
    workflow = cast("dict[str, Any]", yaml.safe_load(WORKFLOW.read_text(encoding="utf-8")))
    steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]["target"]
    return [step.replace("${{ matrix.target }}", target) for step in steps for target in matrix]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_make_targets_and_paths_exist(document: str) -> None:
    path = ROOT / document
    text = path.read_text(encoding="utf-8")
    commands = "\n".join(re.findall(r"`[^`\n]+`|^make .*$", text, re.MULTILINE))
    assert set(TARGET.findall(commands)) <= _targets()
    links = [link for link in LINK.findall(text) if not link.startswith("http")]
    missing = [link for link in links if not (path.parent / link).exists()]
    missing += [name for name in CODE_PATH.findall(text) if not _exists(name)]
    assert not missing


def _exists(name: str) -> bool:
    """Names in capitals within a path stand for any name."""
    folder, _, last = name.rpartition("/")
    return (ROOT / (folder if last.split(".")[0].isupper() else name)).exists()


def test_the_workflow_runs_the_targets_of_continuous_integration() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    wanted = {
        name for line in script.splitlines() if line.startswith("make ") for name in line.split() if name in _targets()
    }
    run = {step.removeprefix("make ") for step in _steps()}
    assert wanted - {"training"} == run - {"training"}
    assert run <= _targets()
