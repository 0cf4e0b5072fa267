"""Whatever is typed is read, or refused with a sentence; how a flag is written makes no difference."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vcbatch.cli.vcctl.commands import PROGRAMS
from vcbatch.cli.vcctl.flags import Flag, FlagError, Kind, parse
from vcbatch.cli.vcctl.tree import Command, find, help_text, title

ARGUMENTS = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.sampled_from(["job", "list", "queue", "-n", "-N", "--name", "--", "-h", "--all-namespaces", "-m", "0x1"]),
        st.text("-=nNmhx_ü", max_size=6),
    ),
    max_size=6,
)
VALUES = st.text(st.characters(blacklist_categories=("Cs",)), max_size=12)


def leaves(command: Command, above: tuple[Command, ...] = ()) -> list[tuple[Command, ...]]:
    path = (*above, command)
    return [leaf for one in command.below for leaf in leaves(one, path)] or [path]


LEAVES = [leaf for program in PROGRAMS.values() for leaf in leaves(program)]


@given(st.sampled_from(sorted(PROGRAMS)), ARGUMENTS)
def test_nothing_that_is_typed_is_too_much(program: str, arguments: list[str]):
    path, left = find(PROGRAMS[program], arguments)
    assert len(left) + len(path) - 1 == len(arguments)
    try:
        read = parse(left, path[-1].all_flags())
    except FlagError as error:
        assert str(error)
    else:
        assert len(read.rest) <= len(left)


@given(st.sampled_from(LEAVES), st.data(), VALUES)
def test_each_way_to_write_a_flag_means_the_same(path: tuple[Command, ...], data: st.DataObject, value: str):
    flags = path[-1].all_flags()
    texts = [flag for flag in flags if flag.kind is Kind.TEXT and flag.short]
    if not texts:
        return
    flag = data.draw(st.sampled_from(texts))
    ways = [[f"--{flag.name}", value], [f"--{flag.name}={value}"], [f"-{flag.short}", value]]
    if value and not value.startswith("="):
        ways += [[f"-{flag.short}{value}"], [f"-{flag.short}={value}"]]
    assert {parse(way, flags).text(flag.name) for way in ways} == {value}


@given(st.integers(), st.sampled_from([Kind.INT, Kind.INT32]), st.sampled_from(["d", "#x", "#b", "#o"]))
def test_a_number_is_read_or_out_of_range(number: int, kind: Kind, form: str):
    flags = [Flag(name="number", kind=kind, default=0, help="")]
    bound = 2 ** (63 if kind is Kind.INT else 31)
    try:
        read = parse([f"--number={number:{form}}"], flags).number("number")
    except FlagError as error:
        assert "out of range" in str(error)
        assert not -bound <= number < bound
    else:
        assert read == number and -bound <= number < bound


def test_a_letter_is_one_flag_and_every_command_runs_something():
    import importlib
    from operator import attrgetter

    for path in LEAVES:
        letters = [flag.short for flag in path[-1].all_flags() if flag.short]
        assert len(letters) == len(set(letters)), title(path)
        assert help_text(path)
        module, _, function = path[-1].run.partition(":")
        assert callable(attrgetter(function)(importlib.import_module(module)))


def test_names_and_namespaces_have_the_letters_that_scripts_use():
    def letters(path: tuple[Command, ...]) -> dict[str, str]:
        return {flag.name: flag.short for flag in path[-1].flags}

    for path in LEAVES:
        found = letters(path)
        program, group = path[0].name, path[1].name if len(path) > 1 else ""
        alone_or_queue = program != "vcctl" or group == "queue"
        assert found.get("name", "n" if alone_or_queue else "N") == ("n" if alone_or_queue else "N"), title(path)
        assert found.get("namespace", "N" if program != "vcctl" else "n") == ("N" if program != "vcctl" else "n")
