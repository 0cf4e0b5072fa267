"""Manifests from standard input: what is wrong with them is told of as from a file."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from vcbatch.cli.base.output import CliError
from vcbatch.cli.files.manifests import read_manifests


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("x: [", "standard input:2:1: "),
        ("kind: Queue", "standard input:1:1: not an object: apiVersion, kind and metadata.name are required"),
        ("---", "standard input: no objects"),
    ],
)
def test_standard_input_is_called_by_its_name(monkeypatch: pytest.MonkeyPatch, text: str, reported: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    with pytest.raises(CliError) as refused:
        read_manifests([Path("-")])
    assert str(refused.value).startswith(reported)
