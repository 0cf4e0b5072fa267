"""What runbooks tell people to type exists: commands, options, labels, values and pages."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest

from tests.monitoring.alerts import REPOSITORY, RUNBOOKS, shipped
from tests.monitoring.test_alerts import thresholds
from tests.support.documents import commands
from tests.support.lacking import need_kubectl
from vcbatch.cli.main import cli

PAGES = sorted(RUNBOOKS.glob("Vcbatch*.md"))
LINES = [(page.stem, line) for page in PAGES for line in commands(page)]
PLUGIN = REPOSITORY / "examples/simulation/keep_free.py"
CHART = REPOSITORY / "helm/vcbatch"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_its_parts(page: Path) -> None:
    text = page.read_text()
    assert text.startswith(f"# {page.stem}\n\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Impact", "Diagnosis", "Remedy"]
    assert commands(page)


@pytest.mark.parametrize("page", [*PAGES, RUNBOOKS / "README.md"], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_list_has_every_page() -> None:
    listed = re.findall(r"\[(\w+)\]\(\1\.md\)", (RUNBOOKS / "README.md").read_text())
    assert sorted(listed) == sorted(shipped())


@pytest.mark.parametrize("name", thresholds())
def test_a_threshold_is_named_on_the_page_of_its_alert(name: str) -> None:
    (alert,) = [alert for alert, rule in shipped().items() if f"# {name}\n" in rule["expr"]]
    assert f"`{name}`" in (RUNBOOKS / f"{alert}.md").read_text()


@pytest.mark.parametrize(("page", "line"), LINES, ids=lambda value: value[:60])
def test_a_command_exists(page: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in (("policy.yaml", ""), ("plugin.py", PLUGIN.read_text()), ("cluster.jsonl.gz", "")):
        (tmp_path / name).write_text(content)
    program, *arguments = shlex.split(line)
    if program == "vcbatch":
        _parse_vcbatch(arguments)
    elif program == "kubectl":
        _parse_kubectl(arguments)
    else:
        pytest.fail(f"{program} isn't known to everybody who reads this")


def _parse_vcbatch(arguments: list[str]) -> None:
    """Parse them to the last subcommand, and run nothing. Raises what click says of wrong ones."""
    command: click.Command = cli
    context: click.Context | None = None
    name = "vcbatch"
    while isinstance(command, click.Group):
        group = command
        context = group.make_context(name, arguments[:1], parent=context, resilient_parsing=True)
        found = group.get_command(context, arguments[0])
        assert found is not None, f"vcbatch has no {arguments[0]}"
        name, command, arguments = arguments[0], found, arguments[1:]
    command.make_context(name, list(arguments), parent=context)


def _parse_kubectl(arguments: list[str]) -> None:
    need_kubectl()
    words = [word for word in arguments if not word.startswith("-")]
    verb = words[:2] if words[0] in ("auth", "top", "rollout") else words[:1]
    known = _flags(tuple(verb))
    for flag in (word.partition("=")[0] for word in arguments if word.startswith("-")):
        assert flag in known, f"kubectl {' '.join(verb)} has no {flag}"


@cache
def _flags(verb: tuple[str, ...]) -> frozenset[str]:
    """The options of a kubectl command, with those of all commands."""
    found: set[str] = set()
    for command in (["kubectl", *verb, "--help"], ["kubectl", "options"]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        found |= set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*|-[a-zA-Z])(?=[=,\s:])", done.stdout))
    return frozenset(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_values_of_the_chart_exist(page: Path) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    tops = "|".join(schema["properties"])
    for path in re.findall(rf"`((?:{tops})(?:\[\])?\.[\w.\[\]]+)[`:]", page.read_text()):
        assert _value(schema, path.replace("[]", "").split("."), schema), path


def _value(schema: dict[str, Any], path: list[str], whole: dict[str, Any]) -> bool:
    if not path:
        return True
    parts = [schema, schema.get("items", {}), *schema.get("allOf", ())]
    parts += [whole["definitions"][part["$ref"].rpartition("/")[2]] for part in parts if "$ref" in part]
    parts += [part["items"] for part in parts if isinstance(part.get("items"), dict)]
    parts += [whole["definitions"][part["$ref"].rpartition("/")[2]] for part in parts if "$ref" in part]
    below = [part["properties"][path[0]] for part in parts if path[0] in part.get("properties", {})]
    return any(_value(one, path[1:], whole) for one in below)
