"""What is written as YAML is read as the same values, by the rules of kubectl."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcbatch.api import yaml_writer
from vcbatch.api.yaml_reader import only

ROOT = Path(__file__).parents[3]
WORDS = [
    "n",
    "Y",
    "no",
    "on",
    "null",
    "~",
    "1e3",
    "0o17",
    "017",
    "0x1F",
    "1_000",
    ".5",
    "+.inf",
    "1:30",
    "2026-01-01",
    "=",
]
texts = st.sampled_from(WORDS) | st.from_regex(r"[-+.]?[0-9_.eExobn]{1,8}", fullmatch=True) | st.text(max_size=20)
values = st.recursive(
    texts
    | st.integers(-(2**63), 2**64 - 1)
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("block_if", ["", "\n"])
def test_a_word_that_kubectl_reads_as_something_else_is_quoted(word: str, block_if: str) -> None:
    document = {word: word, "list": [word]}
    assert only(yaml_writer.dump(document, block_if=block_if)).value == document


@given(
    value=values,
    flow=st.sampled_from([True, False, None]),
    ascii_only=st.booleans(),
    block_if=st.sampled_from(["", "\n", "'"]),
)
def test_what_is_written_is_read_as_the_same(value: Any, flow: bool | None, ascii_only: bool, block_if: str) -> None:
    text = yaml_writer.dump({"value": value}, flow=flow, ascii_only=ascii_only, block_if=block_if)
    assert only(text).value == {"value": value}


def test_shared_parts_are_written_without_anchors() -> None:
    shared = {"cpu": "1"}
    assert "&" not in yaml_writer.dump({"requests": shared, "limits": shared})


def test_no_other_module_writes_yaml() -> None:
    found: list[str] = []
    for file in sorted([*ROOT.glob("vcbatch/**/*.py"), *ROOT.glob("webhooks/**/*.py")]):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Attribute(value=ast.Name(id="yaml"), attr=name) if "dump" in name.lower():
                    found.append(f"{file.relative_to(ROOT)}: yaml.{name}")
    # `vcbatch.local.apiserver.yaml` is a module of that name.
    allowed = {"vcbatch/api/yaml_writer.py", "vcbatch/local/apiserver/response.py"}
    assert [place for place in found if place.partition(":")[0] not in allowed] == []
