"""What the command line says when it can't go on."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from vcbatch.cli.commands import COMMANDS
from vcbatch.cli.main import cli, main

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]

BLOCKED_IMPORTS = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
sys.argv = ["vcbatch", *{arguments!r}]
from vcbatch.cli.main import main
main()
"""


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["vcbatch", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_a_package_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    for module in [name for name in sys.modules if name.startswith(("vcbatch.cli.local", "vcbatch.local.apiserver"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert run(monkeypatch, "up", "--state-dir", f"{tmp_path}/state", "--port", "0") == 1
    said = capsys.readouterr().err
    assert "`vcbatch up` requires uvicorn, which is not installed" in said
    assert "In a checkout of vcbatch: pip install ." in said


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["upp"], "vcbatch up"),
        (["jobs", "list"], "vcbatch job"),
        (["job", "lst"], "vcbatch job list"),
        (["explain", "train"], "vcbatch job explain"),
        (["queue", "dscribe", "a"], "vcbatch queue describe"),
        (["xyzzy"], ""),
    ],
)
def test_an_unknown_command_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: list[str], meant: str
) -> None:
    assert run(monkeypatch, *typed) == 2
    said = capsys.readouterr().err
    assert f'unknown command "{typed[typed[0] in ("job", "queue")]}"' in said
    assert said.partition("Did you mean this?\n")[2].partition("See")[0].strip() == meant


def test_every_command_is_listed_below_a_title(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--help") == 0
    listed = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")}
    for name in cli.list_commands(click.Context(cli)):
        assert name in listed


def test_help_imports_no_subcommand(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delitem(sys.modules, "vcbatch.cli.local.up", raising=False)
    assert run(monkeypatch, "--help") == 0
    assert "vcbatch up" in capsys.readouterr().out
    assert "vcbatch.cli.local.up" not in sys.modules


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[>=<]", text)[0].lower() for text in requirements}


def _modules_of_extras() -> set[str]:
    """The modules that only the extras bring."""
    names = set[str]().union(*(_names(EXTRAS[extra]) for extra in EXTRAS if extra != "training"))
    return {name.replace("-", "_") for name in names} - {"vcbatch"} | {"opentelemetry"}


def _without_extras(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = BLOCKED_IMPORTS.format(modules=_modules_of_extras(), arguments=arguments)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_needs_no_extra(name: str) -> None:
    done = _without_extras(*filter(None, [name]), "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage: vcbatch" in done.stdout


def test_extras_bring_what_the_package_does_not() -> None:
    assert {entry.extra for entry in COMMANDS.values()} - {""} <= {name for name, brings in EXTRAS.items() if brings}
    assert not _names(PROJECT["dependencies"]) & set[str]().union(*map(_names, EXTRAS.values()))


def test_the_extra_of_a_command_is_named_where_it_is_missing() -> None:
    done = _without_extras("webhooks")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: `vcbatch webhooks` requires fastapi, of the extra webhooks",
        "  In a checkout of vcbatch: pip install '.[webhooks]'",
    ]


def test_no_text_names_a_package_index_that_lacks_vcbatch() -> None:
    """vcbatch is installed from a checkout or a wheel."""
    published = re.compile(
        r"(?:pip|pipx|uv tool|uv pip) install (?:-\S+ )*[\"']?vcbatch\b(?!\S*\.whl)|install vcbatch\["
    )
    files = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").iterdir()]
    files += [path for package in ("vcbatch", "webhooks", "helm") for path in (ROOT / package).rglob("*.*")]
    strays = [
        f"{path.relative_to(ROOT)}: {found}"
        for path in files
        if path.suffix in (".md", ".py", ".yaml", ".txt", ".json")
        for found in published.findall(path.read_text(encoding="utf-8"))
    ]
    assert not strays, strays
