"""Commands that messages tell to type: they reach the server that the command before them was told."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.unit.cli.base.test_access import config
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.follow_up import with_options
from vcbatch.cli.base.options import state_dir_option
from vcbatch.cli.base.output import CliError
from vcbatch.cli.main import cli

CHOSEN = {"kubeconfig": Path("/a b/c"), "context": "lab", "namespace": "team", "state_dir": Path("/s")}
SERVER = " --kubeconfig '/a b/c' --context lab"
SOURCE = Path(__file__).parents[4] / "vcbatch" / "cli"
ELSEWHERE = re.compile(r"install|migrate|inventory|doctor|checkup|completion")


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("`vcbatch job list`", f"`vcbatch job list{SERVER} -n team`"),
        ("More: vcbatch job explain j", f"More: vcbatch job explain j{SERVER} -n team"),
        ("a\n  vcbatch job logs j\nb", f"a\n  vcbatch job logs j{SERVER} -n team\nb"),
        ("Open it: vcbatch queue open q", f"Open it: vcbatch queue open q{SERVER}"),
        ("`kubectl get pods -n other`", f"`kubectl get pods -n other{SERVER}`"),
        ("`kubectl get pods --context=mine`", "`kubectl get pods --context=mine --kubeconfig '/a b/c' -n team`"),
        ("`vcbatch down`, then `vcbatch up`", "`vcbatch down --state-dir /s`, then `vcbatch up --state-dir /s`"),
        ("`vcbatch crds | kubectl apply -f -`", f"`vcbatch crds | kubectl apply -f -{SERVER} -n team`"),
        ("`kubectl config view`", "`kubectl config view`"),
        ("vcbatch is not running", "vcbatch is not running"),
        ("the vcbatch job is `fine`", "the vcbatch job is `fine`"),
        ("", ""),
    ],
)
def test_each_command_gets_the_options_that_it_takes(text: str, reported: str) -> None:
    assert with_options(text, **CHOSEN) == reported
    assert with_options(reported, **CHOSEN) == reported
    assert with_options(text) == text


def _takes(command: click.Command) -> set[str]:
    """The options of the command, of a group those that all of its commands have."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        below = [command.get_command(context, name) for name in command.list_commands(context)]
        return set.intersection(*(_takes(one) for one in below if one is not None))
    return {option for parameter in command.params for option in parameter.opts}


@pytest.mark.parametrize("name", cli.list_commands(click.Context(cli)))
def test_a_command_is_given_no_option_that_it_lacks(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    given = {word for word in with_options(f"`vcbatch {name}`", **CHOSEN).rstrip("`").split() if word.startswith("-")}
    assert given <= _takes(command)
    if "--context" in _takes(command) and name not in ("controllers", "scheduler", "webhooks"):
        assert "--context" in given


def _texts() -> Iterator[tuple[str, str]]:
    """Strings of the commands' sources, but docstrings and help, with X for what is put in."""
    for path in sorted(SOURCE.rglob("*.py")):
        if ELSEWHERE.search(path.stem):
            continue
        tree = ast.parse(path.read_text())
        skipped: set[ast.AST] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr):
                skipped.add(node.value)
            elif isinstance(node, ast.keyword) and node.arg in ("help", "show_default"):
                skipped |= set(ast.walk(node.value))
            elif isinstance(node, ast.JoinedStr):
                skipped |= set(ast.walk(node)) - {node}
        for node in ast.walk(tree):
            if node in skipped:
                continue
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "X" for part in node.values]
                yield path.name, "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path.name, node.value


def test_every_command_in_a_message_can_be_completed() -> None:
    with_server = "job|wait|apply|delete|queue|jobflow|jobtemplate|cronjob|pod|hypernode|cluster|doctor"
    command = re.compile(
        rf"(?<![-\w/.])(?:vcbatch (?:{with_server})|kubectl (?:get|edit|describe|delete|apply))(?= \S|`)"
    )
    seen, without = 0, list[str]()
    for name, text in _texts():
        for found in command.finditer(text):
            seen += 1
            words = with_options(text, **CHOSEN)[found.start() :]
            if "--context lab" not in re.split(r"`|\n|$", words, maxsplit=1)[0]:
                without.append(f"{name}: {text!r}")
    assert not without
    assert seen > 20


def test_an_error_names_commands_for_the_same_server(tmp_path: Path) -> None:
    @click.command()
    @access_options
    def command(access: Access) -> None:
        raise CliError("no", hint="`vcbatch job list`")

    file = config(tmp_path / "config", "http://x")
    options = ["--kubeconfig", str(file), "--context", "b", "-n", "team"]
    done = CliRunner().invoke(command, options)
    assert isinstance(done.exception, CliError)
    assert done.exception.hint == f"`vcbatch job list --kubeconfig {file} --context b -n team`"


def test_an_error_names_commands_for_the_same_directory(tmp_path: Path) -> None:
    @click.command()
    @state_dir_option
    def command(state_dir: Path) -> None:
        raise CliError("no", hint="`vcbatch up`")

    done = CliRunner().invoke(command, ["--state-dir", str(tmp_path)])
    assert isinstance(done.exception, CliError)
    assert done.exception.hint == f"`vcbatch up --state-dir {tmp_path}`"
    plain = CliRunner().invoke(command, [])
    assert isinstance(plain.exception, CliError)
    assert plain.exception.hint == "`vcbatch up`"
