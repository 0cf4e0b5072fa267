"""The reader of YAML: what it takes, what it refuses and where, and that nobody goes past it."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vcbatch.api.yaml_reader import Limits, YamlError, documents, only

ROOT = Path(__file__).parents[3]
SMALL = Limits(size=100, depth=4, nodes=12, aliased=6, documents=2)
LOADERS = {"load", "load_all", "safe_load", "safe_load_all", "full_load", "full_load_all", "unsafe_load"} | {
    "unsafe_load_all", "compose", "compose_all", "parse", "scan", "CSafeLoader", "SafeLoader", "CLoader", "Loader",
    "FullLoader", "CFullLoader", "UnsafeLoader", "CUnsafeLoader", "BaseLoader", "CBaseLoader",
}  # fmt: skip


def read(text: str | bytes) -> list[Any]:
    return [document.value for document in documents(text)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[y, Yes, on, true, n, NO, off, False]", [True] * 4 + [False] * 4),
        ("['y', \"no\", yEs, !!str on]", ["y", "no", "yEs", "on"]),
        ("[~, null, NULL, 'null']", [None, None, None, "null"]),
        ("[017, 0o17, 0x1F, 0b11, 1_000, +1, -0]", [15, 15, 31, 3, 1000, 1, 0]),
        ("[08, 1e3, 1.5, .5, -.5, 1., 1.0]", [8, 1000, 1.5, 0.5, -0.5, 1, 1]),
        ("[9223372036854775807, 18446744073709551615]", [2**63 - 1, 2**64 - 1]),
        ("[99999999999999999999, -9223372036854775809]", [1e20, -(2**63)]),
        ("[22:22, 2026-01-01, 2026-01-01T00:00:00Z, 1e400]", ["22:22", "2026-01-01", "2026-01-01T00:00:00Z", "1e400"]),
        ("{1: a, 1.5: b, on: c, 1e6: d}", {"1": "a", "1.5": "b", "true": "c", "1e+06": "d"}),
        ("[!!binary aGk=, !thing x, !!int '5', !!float 1]", ["hi", "x", 5, 1]),
        ("!!python/object/apply:os.system [ls]", ["ls"]),
        ("a: &a {k: 1, j: 2}\nb: {<<: *a, k: 3}", {"a": {"k": 1, "j": 2}, "b": {"k": 3, "j": 2}}),
        ("{<<: [{a: 1}, {a: 2, b: 2}]}", {"a": 1, "b": 2}),
        ("9" * 400, "9" * 400),
        ("0x" + "F" * 5000, "0x" + "F" * 5000),
    ],
)
def test_values_are_what_kubectl_reads(text: str, value: Any) -> None:
    assert read(text) == [value]
    assert json.dumps(read(text)) == json.dumps([value])  # 1 is no 1.0 and no True


def test_single_letters_can_be_left_as_they_are() -> None:
    (document,) = documents("[y, N, yes]", letters=False)
    assert document.value == ["y", "N", True]


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("a: [1\n", 2, 1, "did not find expected ',' or ']', while parsing a flow sequence that begins in line 1"),
        ("a: b: c", 1, 5, "mapping values are not allowed in this context"),
        ("a:\n\t- x", 2, 1, "a tab where only spaces may be"),
        ("a: 1\nb: 'x\x01'", 2, 6, "character #x0001 isn't allowed in YAML"),
        ("ä: \ud800", 1, 4, "character '\\ud800' isn't allowed in YAML"),
        (b"a: 1\nb: \xff", 2, 4, "character #x00ff isn't allowed in YAML"),
        ("a:\n  null: 1", 2, 3, "a key is null: quote it if the word itself is meant"),
        ("a:\n  [1]: 1", 2, 3, "a key must be a string, not a mapping or a list"),
        ("a: .nan", 1, 4, ".nan isn't a number that JSON has"),
        ("a: !!int x", 1, 4, "cannot decode !!str `x` as a !!int"),
        ("a: !!binary '%'", 1, 4, "!!binary value contains invalid base64 data"),
        ("<<: 3", 1, 5, "map merge requires map or sequence of maps as the value"),
        ("a: *b", 1, 4, "unknown anchor 'b' referenced"),
        ("&a [*a]", 1, 5, "anchor 'a' value contains itself"),
        ("a: &a\n  - {b: [*a]}", 2, 10, "anchor 'a' value contains itself"),
    ],
)
def test_what_is_wrong_is_an_error_with_its_place(text: str | bytes, line: int, column: int, problem: str) -> None:
    with pytest.raises(YamlError) as refused:
        read(text)
    assert (refused.value.line, refused.value.column, str(refused.value)) == (line, column, problem)


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "[{a: ", "[? "])
@pytest.mark.parametrize("times", [300, 100_000])
def test_nesting_without_end_is_an_error(opening: str, times: int) -> None:
    with pytest.raises(YamlError, match="nested deeper than 200 levels") as refused:
        read("a: 1\n---\n" + opening * times)
    assert refused.value.line == 3


def test_nesting_through_aliases_is_an_error() -> None:
    text = "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 100_000))
    with pytest.raises(YamlError, match="nested deeper than 200 levels") as refused:
        read(text)
    assert refused.value.line == 200


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a" * 101, "larger than 100 bytes"),
        ("[[[[[1]]]]]", "nested deeper than 4 levels"),
        ("[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]", "more than 12 values"),
        ("[&a [1, 1], *a, *a, *a]", "its aliases stand for more than 6 values (excessive aliasing)"),
        ("1\n--- 2\n--- 3", "more than 2 documents"),
    ],
)
def test_each_limit_is_held(text: str, problem: str) -> None:
    with pytest.raises(YamlError) as refused:
        list(documents(text, SMALL))
    assert str(refused.value) == problem


def test_what_is_within_the_limits_is_read() -> None:
    found = list(documents("[[[[1]]]]\n---\n[&a [1, 1], *a, *a]", SMALL))
    assert [document.value for document in found] == [[[[[1]]]], [[1, 1]] * 3]


def test_aliases_share_nothing() -> None:
    (document,) = documents("a: &a {k: [1]}\nb: *a")
    document.value["b"]["k"].append(2)
    assert document.value == {"a": {"k": [1]}, "b": {"k": [1, 2]}}


def test_documents_before_an_error_are_read() -> None:
    found = documents("a: 1\n---\nb: [")
    assert next(found).value == {"a": 1}
    with pytest.raises(YamlError):
        next(found)


def test_repeated_keys_are_told_with_their_places() -> None:
    document = only("a: 1\nb: {1: x, '1': z}\na: 2")
    assert document.value == {"a": 2, "b": {"1": "z"}}
    assert [(one.key, one.line, one.column) for one in document.repeated] == [("1", 2, 11), ("a", 3, 1)]


def test_a_second_document_is_an_error_where_one_is_expected() -> None:
    assert only("").value is None
    with pytest.raises(YamlError, match="found another document"):
        only("a: 1\n---\nb: 1")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8"))
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not x.is_integer()),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(_JSON)
def test_what_is_written_as_yaml_is_read_back(value: Any) -> None:
    text = yaml.dump(value, Dumper=yaml.CSafeDumper, allow_unicode=True)
    if any(char in text for char in "\x7f\ufeff") or not text.isprintable():
        text = yaml.dump(value, Dumper=yaml.CSafeDumper)
    # PyYAML writes some words bare that YAML 1.1 takes for booleans.
    assert [one.value for one in documents(text, letters=False)] == [value]


@given(st.text(alphabet="[]{}:,-?&*!|>'\"#% \t\nab1~<\\.0", max_size=80) | st.binary(max_size=60))
def test_any_text_is_read_or_refused_with_a_place(text: str | bytes) -> None:
    try:
        for document in documents(text):
            json.dumps(document.value, allow_nan=False)
    except YamlError as error:
        lines = (text.count("\n") if isinstance(text, str) else text.count(b"\n")) + 2
        assert 1 <= error.line <= lines and error.column >= 1 and str(error)


def test_no_other_module_reads_yaml() -> None:
    """A loader of PyYAML has no limits, and the one of libyaml overflows the stack of the process."""
    found: list[str] = []
    for file in sorted([*ROOT.glob("vcbatch/**/*.py"), *ROOT.glob("webhooks/**/*.py"), *ROOT.glob("examples/**/*.py")]):
        tree = ast.parse(file.read_text())
        names = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name.split(".")[0] == "yaml"
        }
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(value=ast.Name(id=module), attr=attribute) if module in names:
                    taken = {attribute}
                case ast.ImportFrom(module="yaml"):
                    taken = {one.name for one in node.names}
                case ast.Constant(value="CSafeLoader" | "SafeLoader"):
                    taken = {"SafeLoader"}
                case _:
                    continue
            if taken & LOADERS:
                found.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    readers = {"vcbatch/api/yaml_reader.py"}
    assert [place for place in found if place.partition(":")[0] not in readers] == []
    assert found, "the reader itself is found"
