"""YAML bodies as JSON values, with the messages of Go's library; and JSON values as YAML."""

from __future__ import annotations

from typing import Any, Final

import yaml
from yaml.scanner import ScannerError

from vcbatch.api import yaml_writer
from vcbatch.api.yaml_reader import Limits, YamlError, only

DEPTH_LIMIT: Final = 200
_LIMITS: Final = Limits(size=64 * 1024 * 1024, depth=DEPTH_LIMIT, nodes=1_000_000, aliased=1_000_000, documents=1)
"""The size of a body is limited where it is received."""


class Unreadable(ValueError):
    """A text that isn't a YAML document, with the message of Go's library."""


def load(body: bytes) -> tuple[Any, list[str]]:
    """The document and its duplicate keys. Raises `Unreadable`."""
    try:
        document = only(body, _LIMITS)
    except YamlError as error:
        raise Unreadable(_worded(error)) from None
    return document.value, [f'line {one.line}: key "{one.key}" already set in map' for one in document.repeated]


def _worded(error: YamlError) -> str:
    """The problem with its line, which Go omits where it is the first."""
    cause = error.__cause__
    if not isinstance(cause, yaml.MarkedYAMLError):
        return f"line {error.line}, column {error.column}: {error}"
    line = next((mark.line for mark in (cause.context_mark, cause.problem_mark) if mark and mark.line), 0)
    if line and isinstance(cause, ScannerError):
        line += 1
    return f"line {line}: {cause.problem}" if line else str(cause.problem)


def dump(value: Any) -> bytes:
    """A JSON value as YAML, keys sorted as Kubernetes sorts them."""
    return yaml_writer.dump(value, sort_keys=True).encode()
